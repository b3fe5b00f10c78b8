package sqlast

// Lexeme is the lexical class of a Token.
type Lexeme int

// The classes.
const (
	Blank   Lexeme = iota // blanks and line ends
	Comment               // -- … and /* … */
	String                // '…', E'…', $$…$$
	Quoted                // "…"
	Word                  // a bare run of letters, digits, _ and placeholders
	Punct                 // one other character
)

// Token is a slice of a SQL text.
type Token struct {
	Kind       Lexeme
	Start, End int // bytes
}

// Tokenize cuts any SQL text, also one with placeholders or one that does not
// parse, into tokens that together are the whole text.
func Tokenize(text string) []Token {
	toks := tokenize(text)
	out := make([]Token, len(toks))
	for i, t := range toks {
		out[i] = Token{Kind: lexemes[t.kind], Start: t.start, End: t.end}
	}
	return out
}

var lexemes = [...]Lexeme{tokSpace: Blank, tokComment: Comment, tokString: String, tokQuoted: Quoted, tokWord: Word, tokPunct: Punct}
