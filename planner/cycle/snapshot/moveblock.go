package snapshot

import (
	"fmt"
	"time"

	"ballast/planner/change"
)

// MoveBlocks is why change.moves lets nothing that levels begin now, beside its rates.
func MoveBlocks(s *Snapshot) []change.Block {
	var h change.Past
	if n := len(s.Changes.Ledger); n > 0 {
		h.Last = s.Changes.Ledger[n-1].At.Unix()
	}
	return s.In.Config.Change.MoveRules().MayMove(s.In.Now, h)
}

// MoveBlock words the first of them; empty: there is none.
func MoveBlock(s *Snapshot) string {
	blocks := MoveBlocks(s)
	if len(blocks) == 0 {
		return ""
	}
	why := fmt.Sprintf("change.moves: %s (%s)", blocks[0].Why, blocks[0].Reason)
	if until := blocks[0].Until; !until.IsZero() {
		why += ", until " + until.UTC().Format(time.RFC3339)
	}
	return why
}
