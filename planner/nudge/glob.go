package nudge

import (
	"strings"
	"unicode/utf8"
)

// globSpecial are the characters by which an entry is more than a name.
const globSpecial = `*?[]{}\`

// glob is a shell-style pattern of the dialect that Argo CD reads (gobwas/glob without separators): * and ** are any
// text, ? is any character, [abc] and [a-z] one of a set, [!abc] one that is not, \x is x itself. Braces group
// alternatives that have commas between; entries have no commas, so braces change nothing here, and one that is left
// open ends at the end.
//
// It is our own because gobwas/glob v0.2.3 cannot be stopped: a pattern of 250 characters, which a writer of the
// setting may choose, took it a minute on one name (measured). This one's time is at most the product of the lengths.
type glob []globPart

// globPart stands for any text, or for one character.
type globPart struct {
	any      bool
	all, not bool // every character; each but these
	lo, hi   rune // the bounds of a range
	set      string
}

func (p globPart) has(r rune) bool {
	if p.all {
		return true
	}
	in := strings.ContainsRune(p.set, r) || p.set == "" && p.lo <= r && r <= p.hi
	return in != p.not
}

// parseGlob is false for what the dialect refuses.
func parseGlob(text string) (glob, bool) {
	if !utf8.ValidString(text) {
		return nil, false
	}
	var g glob
	depth := 0
	rest := []rune(text)
	for len(rest) > 0 {
		r := rest[0]
		rest = rest[1:]
		switch {
		case r == '*':
			g = append(g, globPart{any: true})
		case r == '?':
			g = append(g, globPart{all: true})
		case r == '{':
			depth++
		case r == '}' && depth > 0:
			depth--
		case r == '[':
			part, after, ok := parseSet(rest)
			if !ok {
				return nil, false
			}
			g, rest = append(g, part), after
		case r == '\\':
			if len(rest) > 0 {
				g, rest = append(g, globPart{set: string(rest[0])}), rest[1:]
			}
		default:
			g = append(g, globPart{set: string(r)})
		}
	}
	return g, true
}

// parseSet reads what follows a [: either one range or a list of characters.
func parseSet(rest []rune) (part globPart, after []rune, ok bool) {
	if len(rest) > 0 && rest[0] == '!' {
		part.not, rest = true, rest[1:]
	}
	if len(rest) > 1 && rest[1] == '-' {
		if len(rest) < 4 || rest[3] != ']' || rest[0] > rest[2] {
			return globPart{}, nil, false
		}
		part.lo, part.hi = rest[0], rest[2]
		return part, rest[4:], true
	}
	var set []rune
	for len(rest) > 0 && rest[0] != ']' {
		if rest[0] == '\\' {
			if rest = rest[1:]; len(rest) == 0 {
				break
			}
		}
		set, rest = append(set, rest[0]), rest[1:]
	}
	if len(rest) == 0 || len(set) == 0 {
		return globPart{}, nil, false
	}
	part.set = string(set)
	return part, rest[1:], true
}

// match tells whether the whole text fits. It goes back to the last "any text" only, so that its time is at most the
// product of the lengths.
func (g glob) match(text string) bool {
	rest := []rune(text)
	at, part := 0, 0
	anyPart, anyAt := -1, 0
	for at < len(rest) {
		switch {
		case part < len(g) && g[part].any:
			anyPart, anyAt = part, at
			part++
		case part < len(g) && g[part].has(rest[at]):
			at, part = at+1, part+1
		case anyPart >= 0:
			anyAt++
			at, part = anyAt, anyPart+1
		default:
			return false
		}
	}
	for part < len(g) && g[part].any {
		part++
	}
	return part == len(g)
}
