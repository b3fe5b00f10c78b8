// Command retrofill plans and runs modeling-aware backfills on SQL engines.
package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/cli"
	"github.com/retrofill/retrofill/cmd/retrofill/internal/engines"
)

func main() { os.Exit(run()) }

func run() int {
	return cli.Main(os.Args[1:], cli.Env{
		Stdin:         os.Stdin,
		Stdout:        os.Stdout,
		Stderr:        os.Stderr,
		Getenv:        os.Getenv,
		Now:           time.Now,
		Dir:           ".",
		Notify:        notify,
		OpenEngine:    engines.Open,
		EngineVersion: engines.Version,
		NewParser:     engines.NewParser,
		Demo:          engines.Demo{},
	})
}

// notify delivers Ctrl-C and polite kills until stop is called; then they end
// the process again.
func notify() (<-chan struct{}, func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	out := make(chan struct{})
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
				select {
				case out <- struct{}{}:
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	}()
	return out, func() {
		signal.Stop(signals)
		close(done)
	}
}
