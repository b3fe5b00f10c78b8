//go:build unix

package bench

import (
	"os"
	"runtime"
	"syscall"
)

// peakMB gives the greatest resident memory of an ended process.
func peakMB(p *os.ProcessState) float64 {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" { // bytes; elsewhere kilobytes
		return float64(u.Maxrss) / (1 << 20)
	}
	return float64(u.Maxrss) / (1 << 10)
}
