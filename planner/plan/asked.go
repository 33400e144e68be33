package plan

import (
	"strconv"
	"strings"
)

// What people may ask for by a number. The webhook notes these numbers in audit logs, whose fields have as many digits.
const (
	MaxAccepted = 999_999       // clusters, in AnnotationAcceptDiscovery
	MaxRollback = 9_999_999_999 // a revision, in AnnotationRollback; revisions go up by one, and from a forged one by a million
)

// ParseAsked reads the number of an annotation, from 0 to most.
func ParseAsked(text string, most int64) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, false
	}
	return n, true
}

// ParsePin reads a pin as it is written in one way only, so that "03", "+3" and "3.0" are none. It may be below 0 or
// too large: BadPin says so.
func ParsePin(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text {
		return 0, false
	}
	return n, true
}

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
