package ownership

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// readLabels reads a label set, if there is one, and returns the value of one label with the trailing slashes of a server
// URL cut off. What it returns is valid until the next call.
func (t *text) readLabels(rest []byte, want string) (server, after []byte, err error) {
	if len(rest) == 0 || rest[0] != '{' {
		return nil, rest, nil
	}
	rest = skipBlanks(rest[1:])
	for len(rest) > 0 && rest[0] != '}' {
		name, value := splitLabelName(rest)
		value = skipBlanks(value)
		if len(name) == 0 || len(value) == 0 || value[0] != '=' {
			return nil, nil, errors.New("a label has no name or no value")
		}
		value = skipBlanks(value[1:])
		keep := string(name) == want
		text, next, err := t.readQuoted(value, keep)
		if err != nil {
			return nil, nil, fmt.Errorf("label %q: %w", name, err)
		}
		if keep {
			server = text
		}
		rest = skipBlanks(next)
		if len(rest) > 0 && rest[0] == ',' {
			rest = skipBlanks(rest[1:])
		} else if len(rest) == 0 || rest[0] != '}' {
			return nil, nil, fmt.Errorf("label %q: neither a comma nor the end of the labels follows", name)
		}
	}
	if len(rest) == 0 {
		return nil, nil, errors.New("the labels do not end")
	}
	return bytes.TrimRight(server, "/"), rest[1:], nil
}

// readQuoted reads a quoted value. Only a value that is kept and has escapes is copied.
func (t *text) readQuoted(in []byte, keep bool) (value, after []byte, err error) {
	if len(in) == 0 || in[0] != '"' {
		return nil, nil, errors.New("its value is not quoted")
	}
	in = in[1:]
	end, escaped := 0, false
	for ; end < len(in) && in[end] != '"'; end++ {
		if in[end] != '\\' {
			continue
		}
		escaped = true
		if end++; end == len(in) || in[end] != '\\' && in[end] != 'n' && in[end] != '"' {
			return nil, nil, errors.New("its value has an unknown escape")
		}
	}
	if end == len(in) {
		return nil, nil, errors.New("its value does not end")
	}
	value = in[:end]
	if !utf8.Valid(value) {
		return nil, nil, errors.New("its value is not UTF-8")
	}
	if keep && escaped {
		t.label = unescape(t.label[:0], value)
		value = t.label
	}
	return value, in[end+1:], nil
}

func unescape(out, value []byte) []byte {
	for i := 0; i < len(value); i++ {
		b := value[i]
		if b == '\\' {
			i++
			if b = value[i]; b == 'n' {
				b = '\n'
			}
		}
		out = append(out, b)
	}
	return out
}

// readValue reads a sample's value and, behind it, the timestamp that there may be.
func readValue(rest []byte) (float64, error) {
	number, rest := splitField(skipBlanks(rest))
	value, err := strconv.ParseFloat(string(number), 64)
	if err != nil || bytes.ContainsAny(number, "pP_") { // hexadecimal and grouped numbers are Go's, not the format's
		return 0, errors.New("its value is no number")
	}
	timestamp, rest := splitField(skipBlanks(rest))
	if len(timestamp) > 0 {
		if _, err := strconv.ParseInt(string(timestamp), 10, 64); err != nil {
			return 0, errors.New("its timestamp is no number")
		}
	}
	if len(skipBlanks(rest)) > 0 {
		return 0, errors.New("there is more than a value and a timestamp")
	}
	return value, nil
}

func splitName(line []byte) (name, rest []byte) {
	i := 0
	for i < len(line) && (isNameByte(line[i]) || line[i] == ':') {
		i++
	}
	if i > 0 && line[0] >= '0' && line[0] <= '9' {
		return nil, line
	}
	return line[:i], line[i:]
}

func splitLabelName(line []byte) (name, rest []byte) {
	i := 0
	for i < len(line) && isNameByte(line[i]) {
		i++
	}
	if i > 0 && line[0] >= '0' && line[0] <= '9' {
		return nil, line
	}
	return line[:i], line[i:]
}

func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_'
}

// splitField cuts at the first blank.
func splitField(line []byte) (field, rest []byte) {
	i := bytes.IndexAny(line, " \t")
	if i < 0 {
		return line, nil
	}
	return line[:i], line[i:]
}

func skipBlanks(line []byte) []byte {
	for len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		line = line[1:]
	}
	return line
}
