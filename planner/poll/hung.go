package poll

import (
	"slices"
	"sync"
	"time"

	"ballast/planner/plan"
	"ballast/planner/poll/promql"
)

// asked is of which metric and cluster a query asks.
type asked struct{ metric, id string }

// question is a query for one cluster.
type question struct {
	of       asked
	template *promql.Template
	shard    *plan.Shard
	into     *reply
}

// hung remembers which queries had no answer in time when they were asked last, and when that was: the few that hang
// keep the others from being asked no more than once.
type hung struct {
	mu sync.Mutex
	at map[asked]time.Time
}

// last puts those that hung behind all others, and the one that did so last behind all.
func (h *hung) last(questions []question) {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortStableFunc(questions, func(a, b question) int { return h.at[a.of].Compare(h.at[b.of]) })
}

// note takes over what came of the queries. What is asked no more is forgotten.
func (h *hung) note(questions []question, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := map[asked]time.Time{}
	for _, q := range questions {
		before, found := h.at[q.of]
		switch {
		case q.into.hung:
			at[q.of] = now
		case found && q.into.err != nil: // it may not have been asked
			at[q.of] = before
		}
	}
	h.at = at
}
