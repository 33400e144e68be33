package webhook

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is what of a string may stand in a log line or on a terminal: without control and format characters, which
// would forge a line or turn text round, and of at most that many bytes, a cut marked by three dots.
func Printable(s string, most int) string {
	if len(s) <= most && strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(min(len(s), most))
	for _, r := range s {
		if unprintable(r) {
			r = '?'
		}
		if b.Len()+utf8.RuneLen(r) > most {
			return cutAt(b.String(), most-len("...")) + "..."
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unprintable: control and format characters, line separators, and what is no UTF-8.
func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// cutAt is at most n bytes of valid UTF-8, without half a character.
func cutAt(s string, n int) string {
	n = min(max(n, 0), len(s))
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
