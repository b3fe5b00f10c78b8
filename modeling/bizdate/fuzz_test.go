package bizdate

import "testing"

// FuzzParseWindow: a window that is read lies inside one day, ends included,
// and reads the same when it is written.
func FuzzParseWindow(f *testing.F) {
	for _, s := range [][2]string{{"00:00", "23:59"}, {"", ""}, {"08:00", ""}, {"", "07:59"}, {"12:00", "11:59"}, {"1:00", "02:00"}, {"24:00", ""}, {"12:00:00", "13:00"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, from, to string) {
		w, diags := ParseWindow(from, to)
		if diags.HasErrors() {
			if w != (Window{}) {
				t.Errorf("%q, %q: both %s and %v", from, to, w, diags)
			}
			return
		}
		if w.From > w.To || w.From < 0 || w.To > LastMinute {
			t.Errorf("%q, %q reads as %s", from, to, w)
		}
		again, diags := ParseWindow(w.From.String(), w.To.String())
		if len(diags) > 0 || again != w {
			t.Errorf("%q, %q reads as %s, then as %s %v", from, to, w, again, diags)
		}
	})
}
