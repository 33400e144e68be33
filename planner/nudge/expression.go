package nudge

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var errLookaround = errors.New("its form is not one that is known")

// Whoever writes argocd-cmd-params-cm may fill it with one expression. People's have some hundred bytes, and as many
// lookaheads as there are namespaces to leave out.
const (
	maxExpression = 64 << 10 // bytes: Go compiles them to some 10 MiB
	maxLookaheads = 256      // each takes a pass over the rest
)

var (
	errLongExpression = fmt.Errorf("it has more than %d KiB: name the namespaces, or use globs", maxExpression>>10)
	errManyLookaheads = fmt.Errorf("it has more than %d lookaheads at its beginning: put what they leave out into one, as in ^(?!a|b)", maxLookaheads)
)

// compileExpression makes a regular expression of Argo CD's engine, which has lookaheads, into a function. Go's has none,
// so the two forms in which they are used to leave namespaces out are taken apart: ^(?!a)(?!b)rest, and ^((?!a).)*$, which
// is Argo CD's own example. Any other one is an error.
func compileExpression(text string) (func(string) bool, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("reading the regular expression %q: %w", shown(text), errLongExpression)
	}
	var heads []lead
	for rest := text; ; {
		match, err := compileRest(rest)
		if err == nil {
			return func(s string) bool {
				return !slices.ContainsFunc(heads, func(h lead) bool { return !h.match(s) }) && match(s)
			}, nil
		}
		head, after, known := compileLeading(rest)
		switch {
		case !known:
			return nil, fmt.Errorf("reading the regular expression %q: %w: %w", shown(text), errLookaround, err)
		case len(heads) == maxLookaheads:
			return nil, fmt.Errorf("reading the regular expression %q: %w", shown(text), errManyLookaheads)
		}
		heads, rest = append(heads, head), after
	}
}

// shown is an expression for people, or the beginning of one that is long.
func shown(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// compileRest reads what has no lookahead at its beginning.
func compileRest(text string) (func(string) bool, error) {
	plain, err := regexp.Compile(text)
	if err == nil {
		return plain.MatchString, nil
	}
	if match, known := compileTempered(text); known {
		return match, nil
	}
	return nil, err
}

// lead is a lookahead at an expression's beginning.
type lead struct {
	ahead    *regexp.Regexp
	negative bool
}

func (l lead) match(s string) bool { return l.ahead.MatchString(s) != l.negative }

// compileLeading cuts one off ^(?!a)rest and ^(?=a)rest: at the beginning a does not, or does, follow, and ^rest does.
func compileLeading(text string) (lead, string, bool) {
	inside, negative, after, found := lookahead(strings.TrimPrefix(text, "^"))
	if !found || !strings.HasPrefix(text, "^") || alternates(after) || after != "" && strings.Contains("*+?{", after[:1]) {
		return lead{}, "", false
	}
	ahead, err := regexp.Compile("^(?:" + inside + ")")
	if err != nil {
		return lead{}, "", false
	}
	return lead{ahead, negative}, "^" + after, true
}

// compileTempered reads ^((?!a).)*$ and the like with + and ?: : a follows at no place of the text.
func compileTempered(text string) (func(string) bool, bool) {
	body, found := strings.CutPrefix(text, "^(")
	if !found {
		return nil, false
	}
	inside, negative, after, found := lookahead(strings.TrimPrefix(body, "?:"))
	if !found || !negative || after != ".)*$" && after != ".)+$" || strings.Contains(inside, "^") || strings.Contains(inside, `\`) {
		return nil, false // ^ and \b look back, to what is cut off below
	}
	ahead, err := regexp.Compile("^(?:" + inside + ")")
	if err != nil {
		return nil, false
	}
	return func(s string) bool {
		for i := range s {
			if ahead.MatchString(s[i:]) {
				return false
			}
		}
		return s != "" || after == ".)*$"
	}, true
}

// lookahead cuts one off at the beginning of an expression.
func lookahead(text string) (inside string, negative bool, after string, found bool) {
	body, negative := strings.CutPrefix(text, "(?!")
	if !negative {
		if body, found = strings.CutPrefix(text, "(?="); !found {
			return "", false, "", false
		}
	}
	end := -1
	scan(body, func(i, depth int) bool {
		if depth < 0 {
			end = i
		}
		return end < 0
	})
	if end < 0 {
		return "", false, "", false
	}
	return body[:end], negative, body[end+1:], true
}

// alternates tells whether there is a | outside of all groups: what stands before the expression is in its first branch only.
func alternates(text string) bool {
	found := false
	scan(text, func(i, depth int) bool {
		found = found || depth == 0 && text[i] == '|'
		return !found
	})
	return found
}

// scan visits the operators of an expression, with how many groups are open after each, until visit says no. It steps over
// what is escaped and over [sets].
func scan(text string, visit func(i, depth int) bool) {
	depth, set := 0, -1 // set: where one was opened
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
			continue
		case set >= 0:
			first := i == set+1 || i == set+2 && text[set+1] == '^' // a ] that is the set's first is one of its characters
			if c == ']' && !first {
				set = -1
			}
			continue
		case c == '[':
			set = i
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if !visit(i, depth) {
			return
		}
	}
}
