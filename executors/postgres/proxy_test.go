package postgres

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between an engine and the server and cuts connections.
type proxy struct {
	dsn    string // through the proxy
	target string

	mu     sync.Mutex
	open   map[net.Conn]bool
	refuse bool
	// on sees what the client sends; its answer says whether the server gets
	// it, and whether the connection ends then.
	on func(sent []byte) (forward, cut bool)
}

func newProxy(t *testing.T, dsn string) *proxy {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the server's URL cannot be read")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: u.Host, open: map[net.Conn]bool{}}
	u.Host = l.Addr().String()
	p.dsn = u.String()
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Add(1)
			go func() {
				defer running.Done()
				p.serve(c)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		p.cut(true)
		running.Wait()
	})
	return p
}

// cut ends all connections; refuse says whether new ones are refused.
func (p *proxy) cut(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
	for c := range p.open {
		c.Close()
	}
}

func (p *proxy) watch(on func([]byte) (forward, cut bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	refused := p.refuse
	p.open[client] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.open, client)
		p.mu.Unlock()
	}()
	if refused {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(client, server) // ends with either connection
		client.Close()
	}()
	defer server.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		on := p.on
		p.mu.Unlock()
		forward, cut := true, false
		if on != nil {
			forward, cut = on(buf[:n])
		}
		if cut { // the client hears nothing more
			client.Close()
		}
		if forward {
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
		if cut {
			if forward {
				// The server reads all of it before it sees the end.
				_ = server.(*net.TCPConn).CloseWrite()
				<-copied
				_, _ = io.Copy(io.Discard, server)
			}
			return
		}
	}
}

// atCommit answers what a client's COMMIT meets, once.
func (p *proxy) atCommit(forward bool, then func()) {
	var once sync.Once
	p.watch(func(sent []byte) (bool, bool) {
		if !bytes.Contains(sent, []byte("COMMIT\x00")) {
			return true, false
		}
		result := [2]bool{true, false}
		once.Do(func() {
			result = [2]bool{forward, true}
			if then != nil {
				then()
			}
		})
		return result[0], result[1]
	})
}

var errSurprise = errors.New("it worked")
