package scrape

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longestLine is the bytes of a line that is read as a whole; labels of an Application take some 400. Of a longer one
// of an Application, which tells who owns a cluster, the server is read; any other is passed over: it is of a cluster
// whose name or URL somebody made as long as a Secret is, which no fleet has.
const longestLine = 64 << 10

// usualLine is the bytes that a line of a fleet stays below, whatever labels its Applications have.
const usualLine = 4 << 10

// mostLabels bounds the labels of a line, as whose square the parser's time grows: an Application's line has a dozen.
const mostLabels = 256

func trimBlanks(line []byte) []byte { return bytes.TrimLeft(line, " \t") }

// splitName cuts behind a metric's name.
func splitName(line []byte) (name, rest []byte) {
	end := bytes.IndexFunc(line, func(r rune) bool { return r != '_' && r != ':' && !isAlphanumeric(r) })
	if end < 0 {
		end = len(line)
	}
	return line[:end], line[end:]
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// labelsIn is how many labels a line has: each has its value in quotes, and in a value quotes are escaped. What stands
// in a value is a tenant's.
func labelsIn(line []byte) (quotes int) {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			quotes++
		}
	}
	return quotes / 2
}

// mostPlainLabels are more than any metric of Argo CD's has.
const mostPlainLabels = 16

// readPlain reads what stands behind a metric's name as Prometheus' own client writes it: labels without a blank
// between them, one blank, a number. A fleet of 5,000 clusters has some 300,000 such lines, one for each kind, and the
// parser takes a hundred times as long for one. What stands in a label's text is a tenant's (an Application's namespace
// is any text), and must make no line slow. What is written otherwise is the parser's.
func readPlain(rest []byte, label string) (value string, number float64, plain bool) {
	if len(rest) == 0 || rest[0] != '{' {
		return "", 0, false
	}
	var names [mostPlainLabels][]byte
	for count := 0; rest[0] != '}'; count++ {
		name, text, after, ok := plainLabel(rest[1:])
		if !ok || count == mostPlainLabels || contains(names[:count], name) {
			return "", 0, false
		}
		if names[count] = name; string(name) == label {
			value = unescaped(text)
		}
		rest = after
	}
	if len(rest) < 3 || rest[1] != ' ' {
		return "", 0, false
	}
	number, plain = plainNumber(rest[2:])
	return value, number, plain
}

func contains(names [][]byte, name []byte) bool {
	for _, other := range names {
		if bytes.Equal(other, name) {
			return true
		}
	}
	return false
}

// plainLabel reads name="text" and gives what follows, which begins with a comma or the closing brace.
func plainLabel(from []byte) (name, text, after []byte, ok bool) {
	name, quoted, found := bytes.Cut(from, []byte(`="`))
	if !found || !isPlainName(name) {
		return nil, nil, nil, false
	}
	end := closing(quoted)
	if end < 0 || end+1 >= len(quoted) || !isPlainText(quoted[:end]) {
		return nil, nil, nil, false
	}
	after = quoted[end+1:]
	return name, quoted[:end], after, after[0] == '}' || after[0] == ',' && len(after) > 1 && after[1] != '}'
}

func isPlainName(name []byte) bool {
	if len(name) == 0 || bytes.HasPrefix(name, []byte("__")) || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for _, c := range name {
		if c != '_' && !isAlphanumeric(rune(c)) {
			return false
		}
	}
	return true
}

// closing is where a label's text ends: at the first quote that is not escaped; below 0 where none is.
func closing(quoted []byte) int {
	for i := 0; i < len(quoted); i++ {
		switch quoted[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// isPlainText reports whether a text is one as the client writes it: UTF-8, in which a quote, a backslash and a line's
// end are escaped.
func isPlainText(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; i == len(text) || text[i] != '\\' && text[i] != '"' && text[i] != 'n' {
			return false
		}
	}
	return utf8.Valid(text)
}

// unescaped is a plain text's value.
func unescaped(text []byte) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text)
	}
	return unescape.Replace(string(text))
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// plainNumber reads digits with a sign, a point and an exponent.
func plainNumber(text []byte) (float64, bool) {
	for _, c := range text {
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != '+' && c != '-' {
			return 0, false
		}
	}
	number, err := strconv.ParseFloat(string(text), 64)
	return number, err == nil
}
