// Package printable makes text that anybody may have written fit for people: one harmless line, without credentials.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxServer is the longest server URL that is printed, and maxShort the longest name or value within a message, in
// characters.
const maxServer, maxShort = 200, 63

// Text makes text that anybody may have written fit for a terminal, an event or a log: one line of at most `most`
// characters, the last one an ellipsis where more was cut. Line breaks and tabs become spaces. What a terminal acts on
// or hides (control characters, changes of the writing direction, zero-width characters) becomes visible as \u001b,
// which means the same within JSON; a byte that is no UTF-8 becomes U+FFFD. Credentials in URLs become a mark.
func Text(s string, most int) string {
	if most < 1 {
		return ""
	}
	s = MaskCredentials(s)
	if isPlain(s) && utf8.RuneCountInString(s) <= most {
		return s
	}
	var b strings.Builder
	count, fits := 0, 0 // characters so far, and how many bytes leave room for the ellipsis
	for _, r := range s {
		shown := " "
		if !unicode.IsSpace(r) {
			shown = visible(r)
		}
		if count += utf8.RuneCountInString(shown); count > most {
			return b.String()[:fits] + "…"
		}
		b.WriteString(shown)
		if count < most {
			fits = b.Len()
		}
	}
	return b.String()
}

// Server is a cluster's server URL for people: Text, and all that stands before an @ counts as a
// credential, however the URL is written.
func Server(url string) string { return Text(MaskServer(url), maxServer) }

// Short is Text of a name or a value, so that one that somebody pasted fills no message.
func Short(s string) string { return Text(s, maxShort) }

// Visible makes what a terminal acts on visible in output that was made of printable pieces, or is JSON, which means
// the same after it. Line breaks and tabs stay.
func Visible(s string) string {
	if isPlain(strings.NewReplacer("\n", "", "\t", "").Replace(s)) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' {
			b.WriteRune(r)
			continue
		}
		b.WriteString(visible(r))
	}
	return b.String()
}

func isPlain(s string) bool {
	for i, r := range s {
		if !shows(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return false
		}
	}
	return true
}

// shows reports whether a character is one that people see and that a terminal does nothing else with.
func shows(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// visible is a character for people; one beyond the first 65,536 is written as JSON does, in two halves.
func visible(r rune) string {
	switch {
	case shows(r):
		return string(r)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
