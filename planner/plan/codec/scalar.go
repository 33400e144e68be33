package codec

import (
	"strconv"
	"strings"
)

// yamlWords are the plain words that some YAML reader takes for a boolean or null.
var yamlWords = map[string]bool{"true": true, "false": true, "null": true, "yes": true, "no": true, "on": true,
	"off": true, "y": true, "n": true}

// Scalar writes a string so that every YAML reader sees a string: plain where it starts with a letter and holds only
// what names hold, quoted otherwise ("1e5", "null", "0x1f" are valid Secret names).
func Scalar(s string) string {
	if s == "" || yamlWords[strings.ToLower(s)] || !isLetter(s[0]) || s[len(s)-1] == ':' {
		return quote(s)
	}
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' && c != ':' {
			return quote(s)
		}
	}
	return s
}

// quote writes a quoted string without the two characters by which a decoder knows aliases and anchors.
func quote(s string) string {
	return strings.NewReplacer("&", `\x26`, "*", `\x2a`).Replace(strconv.Quote(s))
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// unscalar reads a name as Scalar wrote it.
func unscalar(name string) (string, bool) {
	if !strings.HasPrefix(name, `"`) {
		return name, Scalar(name) == name
	}
	unquoted, err := strconv.Unquote(name)
	return unquoted, err == nil && Scalar(unquoted) == name
}
