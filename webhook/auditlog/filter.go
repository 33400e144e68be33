package auditlog

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"ballast/planner/plan"
)

// Filter says which writes are shown; the zero Filter shows what ballast changed, refused, failed at, or never saw, and
// what changes ballast.
type Filter struct {
	Since, Until time.Time // zero for no bound; Since is inside, Until is not
	Users        Globs     // of the user and of who impersonated it
	Objects      Globs     // of kind/name and of the name
	Namespaces   Globs
	Reasons      Globs // when given, shows those whatever their effect
	All          bool  // also what agreed with the plan, and what a rule lets pass
}

// Covers reports whether a write is within the bounds.
func (f Filter) Covers(w Write) bool {
	return !w.Time.Before(f.Since) && (f.Until.IsZero() || w.Time.Before(f.Until)) &&
		f.Users.match(w.User, w.By) && f.Objects.match(w.Object(), w.Name) && f.Namespaces.match(w.Namespace) &&
		f.Reasons.match(w.Reason)
}

// Shows reports whether a write within the bounds is worth a line.
func (f Filter) Shows(w Write) bool {
	if f.All || len(f.Reasons.include) > 0 || w.Panicked {
		return true
	}
	return w.Effect != Agreed && (w.Effect != Passed || w.Reason == string(plan.Immutable))
}

// Globs are patterns in which * stands for any text and ? for a character; one that begins with ! excludes.
type Globs struct{ include, exclude []*regexp.Regexp }

// NewGlobs reads patterns.
func NewGlobs(patterns ...string) Globs {
	var g Globs
	for _, p := range patterns {
		text, excludes := strings.CutPrefix(strings.ToValidUTF8(p, "\ufffd"), "!") // as a log's text is decoded
		text = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(text))
		// Everything that a glob may hold is quoted, so that this always compiles.
		compiled := regexp.MustCompile(`\A(?s:` + text + `)\z`)
		if excludes {
			g.exclude = append(g.exclude, compiled)
		} else {
			g.include = append(g.include, compiled)
		}
	}
	return g
}

// match reports whether none of the values is excluded and one is included. An empty value is none.
func (g Globs) match(values ...string) bool {
	matches := func(r *regexp.Regexp) bool {
		return slices.ContainsFunc(values, func(v string) bool { return v != "" && r.MatchString(v) })
	}
	return !slices.ContainsFunc(g.exclude, matches) && (len(g.include) == 0 || slices.ContainsFunc(g.include, matches))
}
