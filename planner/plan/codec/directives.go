package codec

import "strings"

// mostDirectives is how many lines of a document may begin as a YAML directive does. The library compares each with all
// before it, and nobody needs more than one.
const mostDirectives = 4

// ManyDirectives reports whether a YAML text has more directives than anybody needs: 256 KiB of them take the library
// seconds.
func ManyDirectives(text string) bool {
	found := 0
	for i := strings.IndexByte(text, '%'); i >= 0; {
		before := text[:i]
		if i == 0 || strings.ContainsRune("\n\r\u0085\u2028\u2029\ufeff", lastRune(before)) {
			if found++; found > mostDirectives {
				return true
			}
		}
		next := strings.IndexByte(text[i+1:], '%')
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

// lastRune is a text's last character; of a text without one it is none that breaks a line.
func lastRune(text string) rune {
	r := ' '
	for _, c := range text[max(len(text)-3, 0):] {
		r = c
	}
	return r
}
