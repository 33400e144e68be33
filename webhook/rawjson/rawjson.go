// Package rawjson reads JSON in place: a document is asked for the values it is needed for, and the rest is passed
// over.
package rawjson

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrMalformed says that a document is not the JSON it should be; it names no content, which may be a credential.
var ErrMalformed = errors.New("malformed JSON")

// WorstEscape is how many bytes JSON has one byte in, at worst: '<', a control character, a byte that is no UTF-8.
const WorstEscape = 6

// Node is one JSON value within a document, read in place: what nobody asks for is skipped, not decoded, so that a
// Secret's other keys never become values of their own, keys are matched by case (encoding/json takes "Shard" for
// "shard"), and a call's cost is one pass over the bytes. A nil Node is an absent value.
//
// sigs.k8s.io/json, into structs of the fields that are read, was measured beside it (package webhook's BenchmarkServe,
// "mini"): it makes a value of each token, so that a Secret of 64 KiB costs 319 KB of garbage instead of 8, some thirty
// times the time, and whoever reaches the port as much memory as a body has.
//
// The API server sends well-formed documents. Others are either found malformed or read leniently, and never crash.
type Node []byte

// Parse finds the one value of a document.
func Parse(doc []byte) (Node, error) {
	start := skipSpace(doc, 0)
	end := skipValue(doc, start)
	if end < 0 || skipSpace(doc, end) != len(doc) {
		return nil, ErrMalformed
	}
	return Node(doc[start:end]), nil
}

// Kind is the value's first byte, which tells its type; 0 when it is absent.
func (n Node) Kind() byte {
	if len(n) == 0 {
		return 0
	}
	return n[0]
}

// Absent reports whether there is no value, or null, which the API server takes for the same.
func (n Node) Absent() bool { return n.Kind() == 0 || n.Kind() == 'n' }

// Members walks an object's keys and values, or an array's values under nil keys. It is an iterator itself, `range
// n.Members`, so that a walk allocates nothing.
func (n Node) Members(yield func(key, value Node) bool) {
	keyed := n.Kind() == '{'
	if !keyed && n.Kind() != '[' {
		return
	}
	for i := skipSpace(n, 1); i < len(n) && n[i] != '}' && n[i] != ']'; {
		var key Node
		if keyed {
			if key, i = n.key(i); key == nil {
				return
			}
		}
		end := skipValue(n, i)
		if end < 0 || !yield(key, n[i:end]) {
			return
		}
		if i = skipSpace(n, end); i < len(n) && n[i] == ',' {
			i = skipSpace(n, i+1)
		}
	}
}

// key is the key that starts at i, and where its value does.
func (n Node) key(i int) (Node, int) {
	end := skipValue(n, i)
	if end < 0 || n[i] != '"' {
		return nil, 0
	}
	colon := skipSpace(n, end)
	if colon >= len(n) || n[colon] != ':' {
		return nil, 0
	}
	return n[i:end], skipSpace(n, colon+1)
}

// ObjectOrAbsent says that a value is neither an object nor absent.
func (n Node) ObjectOrAbsent(what string) error { return n.shape('{', what) }

// ArrayOrAbsent says that a value is neither an array nor absent.
func (n Node) ArrayOrAbsent(what string) error { return n.shape('[', what) }

func (n Node) shape(kind byte, what string) error {
	if n.Absent() || n.Kind() == kind {
		return nil
	}
	return fmt.Errorf("reading %q: %w", what, ErrMalformed)
}

// Field is an object's value under a key, the last one where a key stands twice, as encoding/json has it.
func (n Node) Field(key string) Node {
	var found Node
	for k, v := range n.Members {
		if k.Is(key) {
			found = v
		}
	}
	return found
}

// Is reports whether the value is the string s.
func (n Node) Is(s string) bool {
	if n.Kind() != '"' || len(n) < 2 {
		return false
	}
	inner := n[1 : len(n)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == s
	}
	equal, plain := unescapesTo(inner, s)
	if !plain {
		return n.Text(len(s)) == s // what cannot be read is no string
	}
	return equal
}

// unescapesTo compares without a copy, since whoever reaches the port may escape thousands of keys. It leaves what is
// not ASCII to others.
func unescapesTo(inner []byte, s string) (equal, plain bool) {
	for len(inner) > 0 && s != "" {
		r, size := rune(inner[0]), 1
		if r == '\\' {
			r, size = escaped(inner)
		}
		switch {
		case s[0] >= utf8.RuneSelf:
			return false, false
		case size == 0 || r != rune(s[0]):
			return false, true
		}
		inner, s = inner[size:], s[1:]
	}
	return len(inner) == 0 && s == "", true
}

// fits reports whether the value may have at most so many bytes once its escapes are gone.
func (n Node) fits(most int) bool { return len(n) <= WorstEscape*most+len(`""`) }

// Text is the string value; empty when the value is no string, is no UTF-8, or has more than so many bytes: what is
// longer than its field holds is not copied, since whoever reaches the port may send 27 MiB of it.
func (n Node) Text(most int) string {
	if n.Kind() != '"' || len(n) < 2 || !n.fits(most) {
		return ""
	}
	s := n.unquoted()
	if len(s) > most {
		return ""
	}
	return s
}

// Unreadable stands for a string that is too long, or no UTF-8, where an empty one would mean something.
const Unreadable = "(an unreadable value)"

// Legible is the string value, or a mark where it cannot be read.
func (n Node) Legible(most int) string {
	s := n.Text(most)
	if s == "" && n.Kind() == '"' && !n.Is("") {
		return Unreadable
	}
	return s
}

func (n Node) unquoted() string {
	inner := n[1 : len(n)-1]
	if !utf8.Valid(inner) || slices.ContainsFunc(inner, isControl) {
		return "" // the API server writes none, and what encoding/json makes of it is three, and six, times as long
	}
	if s, ok := unescape(inner); ok {
		return s
	}
	var s string
	if json.Unmarshal(n, &s) != nil {
		return ""
	}
	return s
}

// isControl reports whether JSON has a character in escapes alone.
func isControl(c byte) bool { return c < ' ' }

// unescape is a string's value, made at once: a plan is one string of 0.8 MB with two escapes a row, for which
// encoding/json takes eight times as long and twice the memory. It leaves surrogates and what is no escape to that.
func unescape(inner []byte) (string, bool) {
	var b strings.Builder
	b.Grow(len(inner))
	for {
		i := bytes.IndexByte(inner, '\\')
		if i < 0 {
			b.Write(inner)
			return b.String(), true
		}
		b.Write(inner[:i])
		r, size := escaped(inner[i:])
		if size == 0 {
			return "", false
		}
		b.WriteRune(r)
		inner = inner[i+size:]
	}
}

// escaped is the character of the escape that b begins with, and its length; 0 for one that is none.
func escaped(b []byte) (rune, int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'u':
		if len(b) < 6 {
			return 0, 0
		}
		var unit [2]byte
		if _, err := hex.Decode(unit[:], b[2:6]); err != nil {
			return 0, 0
		}
		r := rune(unit[0])<<8 | rune(unit[1])
		if utf16.IsSurrogate(r) {
			return 0, 0
		}
		return r, 6
	}
	return 0, 0
}

// Integer is the value as a whole number.
func (n Node) Integer() (int, bool) {
	if len(n) == 0 || len(n) > 12 {
		return 0, false
	}
	v, err := strconv.Atoi(string(n))
	return v, err == nil
}

// True reports whether the value is the literal true.
func (n Node) True() bool { return n.Kind() == 't' }

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue is the index behind the value that starts at i, or -1 where none does. It counts depth instead of
// recursing, so that nesting costs no stack.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) && isScalar(b[i]) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func isScalar(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// skipString jumps from quote to quote: the values of Secrets are long and hold no backslash.
func skipString(b []byte, i int) int {
	for j := i + 1; j < len(b); {
		quote := bytes.IndexByte(b[j:], '"')
		if quote < 0 {
			return -1
		}
		j += quote
		slashes := 0
		for b[j-1-slashes] == '\\' {
			slashes++
		}
		if j++; slashes%2 == 0 {
			return j
		}
	}
	return -1
}

func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}
