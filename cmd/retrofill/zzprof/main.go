package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/cli"
	"github.com/retrofill/retrofill/cmd/retrofill/internal/engines"
)

func main() {
	debug.SetGCPercent(70)
	f, _ := os.Create(os.Getenv("PROF"))
	runtime.SetCPUProfileRate(500)
	pprof.StartCPUProfile(f)
	t := time.Now()
	if d, err := time.ParseDuration(os.Getenv("SNAP")); err == nil {
		go func() {
			time.Sleep(d)
			runtime.GC()
			f, _ := os.Create("/tmp/heap.prof")
			pprof.Lookup("heap").WriteTo(f, 0)
			f.Close()
		}()
	}
	rc := cli.Main(os.Args[1:], cli.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Now: time.Now, Dir: ".",
		Notify: func() (<-chan struct{}, func()) { return make(chan struct{}), func() {} }, OpenEngine: engines.Open, EngineVersion: engines.Version, NewParser: engines.NewParser, Demo: engines.Demo{}})
	fmt.Fprintln(os.Stderr, time.Since(t))
	pprof.StopCPUProfile()
	f.Close()
	if m := os.Getenv("MEM"); m != "" {
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		fmt.Fprintln(os.Stderr, "alloc MB", ms.TotalAlloc>>20, "gcs", ms.NumGC, "sys", ms.Sys>>20)
		f, _ := os.Create(m)
		pprof.Lookup("allocs").WriteTo(f, 0)
	}
	os.Exit(rc)
}
