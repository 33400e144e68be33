package promql

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Bounds of regular expressions. Go's take time in proportion to pattern and text, but .{0,900} is a short pattern of
// 900 steps a letter, and replacing all of a text begins anew after each match.
const (
	maxPattern = 256     // bytes
	maxProgram = 1000    // steps a letter; those that people write have some 50
	maxSteps   = 4 << 20 // of all searches of one rendering: 60 steps a letter, for each match in a URL of 250 letters
)

var errTooManySteps = errors.New("its regular expressions take too many steps: shorten them, or use replace")

// compile makes a regular expression of at most maxPattern bytes for a number of searches in a text, and gives the
// steps of one.
func (a *account) compile(pattern, text string, searches int) (re *regexp.Regexp, once int, err error) {
	if len(pattern) > maxPattern {
		return nil, 0, fmt.Errorf("a regular expression has more than %d bytes: shorten it", maxPattern)
	}
	if err := a.read(pattern, text); err != nil {
		return nil, 0, err
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf("reading a regular expression: %w", err)
	}
	program := program(tree)
	steps := program * (len(pattern) + (1+len(text))*searches)
	if program > maxProgram || steps > a.steps {
		return nil, 0, errTooManySteps
	}
	once = program * (1 + len(text))
	a.steps -= steps
	a.took += program*len(pattern) + once
	re, err = regexp.Compile(pattern)
	return re, once, err
}

// program is how many steps a letter a regular expression takes at most; what is repeated counts as often.
func program(re *syntax.Regexp) int {
	steps := 1
	for _, sub := range re.Sub {
		steps += program(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		steps += len(re.Rune)
	case syntax.OpRepeat:
		steps *= max(re.Min+1, re.Max)
	}
	return steps
}

func (a *account) regexMatch(pattern, text string) (bool, error) {
	re, _, err := a.compile(pattern, text, 1)
	if err != nil {
		return false, err
	}
	return re.MatchString(text), nil
}

func (a *account) regexFind(pattern, text string) (string, error) {
	re, _, err := a.compile(pattern, text, 1)
	if err != nil {
		return "", err
	}
	found := re.FindString(text)
	return found, a.made(len(found))
}

// regexReplaceAll replaces every match; $1 and the like stand for what was found, in all no longer than the text.
func (a *account) regexReplaceAll(pattern, text, with string) (string, error) {
	re, err := a.replacing(pattern, text, with, strings.Count(with, "$"))
	if err != nil {
		return "", err
	}
	return re.ReplaceAllString(text, with), nil
}

func (a *account) regexReplaceAllLiteral(pattern, text, with string) (string, error) {
	re, err := a.replacing(pattern, text, with, 0)
	if err != nil {
		return "", err
	}
	return re.ReplaceAllLiteralString(text, with), nil
}

// replacing charges the most that replacing all can make: matches are found twice, to count them first.
func (a *account) replacing(pattern, text, with string, found int) (*regexp.Regexp, error) {
	re, once, err := a.compile(pattern, text, 1+len(text))
	if err != nil {
		return nil, err
	}
	matches := len(re.FindAllStringIndex(text, -1))
	a.took += once * (1 + 2*matches)
	return re, a.made(len(text)*(1+found) + matches*len(with))
}
