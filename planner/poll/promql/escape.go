package promql

import (
	"fmt"
	"strings"
)

// Escape writes a value so that it stays inside a PromQL string. Quotes become \x22, \x27 and \x60, which both kinds of
// quotes allow, where \" would not be.
func Escape(value string) string {
	if !strings.ContainsFunc(value, needsEscape) {
		return strings.ToValidUTF8(value, "�")
	}
	var b strings.Builder
	for _, r := range value {
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case needsEscape(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func needsEscape(r rune) bool {
	return r < ' ' || r == 0x7f || r == '"' || r == '\'' || r == '`' || r == '\\'
}
