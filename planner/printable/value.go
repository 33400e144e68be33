package printable

import (
	"strings"
	"unicode/utf8"
)

// Invalid is printed for a value that is not what its field holds: people paste tokens into the wrong key.
const Invalid = "invalid"

// Count prints a count or a shard that a person wrote; only `^-?[0-9]{1,6}$` is shown as it stands.
func Count(s string) string {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 6 {
		return Invalid
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return Invalid
		}
	}
	return s
}

// Name prints a name that may be anything a person typed: of what a Secret's name holds, or "invalid".
func Name(s string) string {
	if s == "" || len(s) > 253 || !utf8.ValidString(s) {
		return Invalid
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return Invalid
		}
	}
	return s
}

// maxNote is the longest name of an annotation that is printed, in characters.
const maxNote = 30

// Note prints an annotation's name, without the prefix: of what one can hold, and not at length, or "invalid".
func Note(s string) string {
	if s == "" {
		return Invalid
	}
	for i := range min(len(s), maxNote+1) {
		if c := s[i]; !isAlphanumeric(c) && !strings.ContainsRune("-_.", rune(c)) {
			return Invalid
		}
	}
	if len(s) > maxNote {
		return s[:maxNote-3] + "..."
	}
	return s
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
