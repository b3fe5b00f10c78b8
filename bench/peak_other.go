//go:build !unix

package bench

import "os"

// peakMB is not known here.
func peakMB(*os.ProcessState) float64 { return 0 }
