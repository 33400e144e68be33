package promql

import (
	"fmt"
	"sync/atomic"
)

// Bounds of all renderings of a round together, each some four seconds of one processor. Nine queries of 2 KiB for each
// of 5,000 clusters are 95 MiB of text, and 325 Mi steps where each replaces by one regular expression in the cluster's
// URL.
const (
	maxTextOfAll  = 128 << 20 // bytes that are rendered, and that functions read and make
	maxStepsOfAll = 512 << 20 // that regular expressions take
)

// ErrSpent is what becomes of the queries that are left when the others have taken all.
var ErrSpent = fmt.Errorf("the query templates of all metrics and clusters together take more than %d MiB of text "+
	"or %d Mi steps of regular expressions: "+
	"shorten them, or ask for all clusters by one query", maxTextOfAll>>20, maxStepsOfAll>>20)

// Budget is what the renderings of a round may take together. What is rendered when it ends is rendered to its end.
type Budget struct{ text, steps atomic.Int64 }

// NewBudget is that of one round.
func NewBudget() *Budget { return NewBudgetOf(maxTextOfAll, maxStepsOfAll) }

// NewBudgetOf has so many bytes of text and steps of regular expressions.
func NewBudgetOf(text, steps int64) *Budget {
	b := &Budget{}
	b.text.Store(text)
	b.steps.Store(steps)
	return b
}

func (b *Budget) spent() bool { return b.text.Load() <= 0 || b.steps.Load() <= 0 }

// take charges a rendering, whatever came of it.
func (b *Budget) take(a account, rendered int) {
	b.text.Add(-int64(rendered + maxWork - a.left))
	b.steps.Add(-int64(a.took))
}
