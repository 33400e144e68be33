package nudge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// Whoever writes argocd-cmd-params-cm may fill it with expressions, and Argo CD's engine goes back over a text for as
// long as an expression asks. People's have some hundred bytes, and an answer takes microseconds.
const (
	maxExpression  = 4 << 10 // bytes: to compile it takes up to the square of that, some 20 ms, and 2 MiB
	maxExpressions = 32
	maxMatch       = 100 * time.Millisecond // of one answer; the engine looks at its clock each 100 ms
	maxMatches     = time.Second            // of all answers of a listing
)

var (
	errLongExpression  = fmt.Errorf("it has more than %d KiB", maxExpression>>10)
	errManyExpressions = fmt.Errorf("there are %d others before it (put several into one, as in /^(?:a|b)$/)",
		maxExpressions)
	errSlowExpression = errors.New("it takes too long to match")
)

// expression is one of application.namespaces, in Argo CD's own engine (dlclark/regexp2). One that fails is given up:
// it allows nothing from then on.
type expression struct {
	text     string
	compiled *regexp2.Regexp
	spent    time.Duration
	err      error
}

// newExpression reads what stands between the slashes.
func newExpression(entry string) *expression {
	e := &expression{text: entry}
	if len(entry) > maxExpression {
		e.err = errLongExpression
		return e
	}
	e.attempt(func() error {
		compiled, err := regexp2.Compile(entry[1:len(entry)-1], regexp2.None)
		if err == nil {
			compiled.MatchTimeout = maxMatch
		}
		e.compiled = compiled
		return err
	})
	return e
}

// match tells whether the expression is found in a text.
func (e *expression) match(text string) bool {
	found := false
	e.attempt(func() error {
		began := time.Now()
		is, err := e.compiled.MatchString(text)
		if e.spent += time.Since(began); err != nil || e.spent > maxMatches {
			return errSlowExpression
		}
		found = is
		return nil
	})
	return found
}

// attempt does something with the engine and keeps its error, or its panic, as the expression's; one that has failed
// does nothing more.
func (e *expression) attempt(do func() error) {
	if e.err != nil {
		return
	}
	defer func() {
		if recover() != nil {
			e.err = errors.New("its engine failed on it")
		}
	}()
	if err := do(); err != nil {
		e.err = errors.New(shown(err.Error()))
	}
}

// shown is a text for people, or the beginning of one that is long.
func shown(text string) string {
	const most = 200
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// failed are the expressions that allow nothing.
func failed(all []*expression) []*expression {
	return slices.DeleteFunc(slices.Clone(all), func(e *expression) bool { return e.err == nil })
}
