package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ballast/planner/poll"
)

// gathered is an answer by cluster, before anything is made of it.
type gathered struct {
	got       []bool
	values    []float64
	at        []int64
	keys      []string // the label's value that was seen first
	bad       []string
	old       []string
	unmatched []string
	ambiguous []string
	shared    []string // that others have, too, and that count for the first
	matched   int
	duplicate string
}

func (g *gathered) add(i int, s poll.Sample, now time.Time) {
	at := int64(0)
	if !s.At.IsZero() {
		at = min(s.At.UnixMilli(), now.UnixMilli()) // a scraper's clock may be ahead
	}
	if !g.got[i] {
		g.got[i], g.values[i], g.at[i], g.keys[i] = true, s.Value, at, s.Key
		return
	}
	if g.keys[i] == s.Key && (g.duplicate == "" || s.Key < g.duplicate) {
		g.duplicate = s.Key
	}
	g.values[i] = min(g.values[i]+s.Value, math.MaxFloat64)
	g.at[i] = min(g.at[i], at) // of two ages the higher; unknown if one is
}

func (g *gathered) markOld(oldest int64) {
	for i, at := range g.at {
		if g.got[i] && at != 0 && at < oldest {
			g.old = append(g.old, g.keys[i])
		}
	}
}

func (g *gathered) report(report func(ProblemKind, string)) {
	if len(g.unmatched) > 0 {
		hint := ""
		if g.matched == 0 {
			hint = "; none does: compare match.label and match.to with the answer, or set match.aliases"
		}
		report(Unmatched, fmt.Sprintf("%s: no cluster is called so%s", some(g.unmatched), hint))
	}
	for _, p := range []struct {
		kind ProblemKind
		keys []string
		text string
	}{
		{SharedName, g.ambiguous, "several clusters are called so; match by server or id"},
		{SharedName, g.shared, "several clusters are called so, and the one that was first has the value; match by server or id"},
		{BadValue, g.bad, "the value is negative or not a number, so the last good one stands"},
		{OldValue, g.old, "the newest sample is older than maxAge, so the last good one stands"},
	} {
		if len(p.keys) > 0 {
			report(p.kind, some(p.keys)+": "+p.text)
		}
	}
}

// some names up to three keys, the first in the alphabet, and how many more there are.
func some(keys []string) string {
	slices.Sort(keys)
	shown := keys[:min(3, len(keys))]
	text := fmt.Sprintf("%q", shown)
	text = strings.Trim(text, "[]")
	if more := len(keys) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
