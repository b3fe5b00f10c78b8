package param

// StatementSpans cuts SQL code at the semicolons that stand outside literals,
// quoted names and comments, and gives the byte range of each statement
// without its semicolon and the blanks around it. Pieces that hold nothing but
// blanks and comments are left out.
func StatementSpans(sql string) []Span {
	l := lexer{s: sql}
	l.run()
	var out []Span
	start, code := 0, false
	add := func(end int) {
		if code {
			s := Span{start, end}
			for s.Start < s.End && isBlank(sql[s.Start]) {
				s.Start++
			}
			for s.End > s.Start && isBlank(sql[s.End-1]) {
				s.End--
			}
			out = append(out, s)
		}
		start, code = end+1, false
	}
	r := 0
	for i := 0; i < len(sql); i++ {
		if r < len(l.regions) && i == l.regions[r].Start {
			code = code || l.regions[r].ctx != Comment
			i = l.regions[r].End - 1
			r++
			continue
		}
		switch c := sql[i]; {
		case c == ';':
			add(i)
		case !isBlank(c):
			code = true
		}
	}
	add(len(sql))
	return out
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' }
