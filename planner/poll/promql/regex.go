package promql

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

var errTooManySteps = errors.New("its regular expressions take too many steps: shorten them, or use replace")

// compile makes a regular expression of at most maxPattern bytes for a number of searches in a text, and gives the
// steps of one. To read one may take longer than to search by it, and is charged before it is done.
func (a *account) compile(pattern, text string, searches int) (re *regexp.Regexp, once int, err error) {
	if len(pattern) > maxPattern {
		return nil, 0, fmt.Errorf("a regular expression has more than %d bytes: shorten it", maxPattern)
	}
	if err := a.read(pattern, text); err != nil {
		return nil, 0, err
	}
	read := reading(pattern)
	if read > a.steps {
		return nil, 0, errTooManySteps
	}
	a.steps, a.took = a.steps-read, a.took+read
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf("reading a regular expression: %w", err)
	}
	program := program(tree)
	made := program*(stepMade+len(pattern)) + ranges(pattern, tree)*(stepRange+program)
	once = program * (1 + len(text))
	steps := made + once*searches
	if program > maxProgram || steps > a.steps {
		return nil, 0, errTooManySteps
	}
	a.steps -= steps
	a.took += made + once
	re, err = regexp.Compile(pattern)
	return re, once, err
}

// What it takes at most to read and compile a regular expression, in steps of some 8 ns of a processor, by what
// patterns took that take long.
const (
	stepsRead = 256       // of any
	stepByte  = 16        // a byte
	stepClass = 12 << 10  // a class such as \pL, with 700 ranges: in an alternation they are sorted together
	stepFold  = 512       // a range of ASCII where case is folded, letter by letter, or a class such as \w
	stepCode  = 2 << 10   // such a range that ends at \777
	stepTwo   = 8 << 10   // at a letter of two bytes
	stepWide  = 384 << 10 // or beyond
	stepMade  = 96        // a step of the program
	stepRange = 32        // a letter of a class's ranges, beside one a step of the program: see ranges
)

// folds is what has case folded. More may match, and costs more.
var folds = regexp.MustCompile(`\(\?[a-zA-Z]*i`)

// reading is how many steps it takes at most to read a regular expression, by its text.
func reading(pattern string) int {
	steps := stepsRead + stepByte*len(pattern)
	steps += stepClass * (strings.Count(pattern, `\p`) + strings.Count(pattern, `\P`))
	if !folds.MatchString(pattern) {
		return steps
	}
	steps += stepFold*(strings.Count(pattern, "-")+strings.Count(pattern, `\`)+strings.Count(pattern, "[")) +
		stepCode*strings.Count(pattern, `-\`) + stepWide*strings.Count(pattern, `-\x{`)
	_, ends, _ := strings.Cut(pattern, "-")
	for _, end := range strings.Split(ends, "-") {
		switch _, bytes := utf8.DecodeRuneInString(end); bytes {
		case 2:
			steps += stepTwo
		case 3, 4:
			steps += stepWide
		}
	}
	return steps
}

// ranges is how many letters the ranges of all classes have that are compared with each other, and copied for each
// choice: those of a regular expression that begins at the text's beginning, which Go makes one that needs no way back.
// What is repeated counts as often.
func ranges(pattern string, re *syntax.Regexp) int {
	if !strings.Contains(pattern, "^") && !strings.Contains(pattern, `\A`) {
		return 0
	}
	n := len(re.Rune)
	for _, sub := range re.Sub {
		n += ranges(pattern, sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min+1, re.Max)
	}
	return n
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
