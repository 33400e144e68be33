package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
	"ballast/planner/store"
)

// mostBlocked is how many changes that wait the annotation names.
const mostBlocked = 10

// blockedText is what waits, in one line; when it may happen changes from cycle to cycle, and is left to the status.
func blockedText(out cycle.Outcome) string {
	var said []string
	waiting := out.Waiting()
	for i, b := range waiting {
		if i == mostBlocked {
			said = append(said, fmt.Sprintf("and %d more", len(waiting)-i))
			break
		}
		said = append(said, b.Steady().String())
	}
	return strings.Join(said, "; ")
}

// answer writes the annotations by which the leader speaks to people: that it stopped itself, and that what they asked
// for is done.
func (l *Loop) answer(ctx context.Context, in input.Inputs, out cycle.Outcome, written store.Snapshot) (store.Snapshot, error) {
	set := map[string]*string{}
	if t := out.Memory.Changes.Trip; t != nil && !out.Memory.Changes.TripTold {
		set[plan.AnnotationTripped] = &t.Why
	}
	if out.Done && in.Rollback != nil {
		set[plan.AnnotationRollback] = nil
	}
	if out.Rebased && in.Rebase != "" {
		set[plan.AnnotationRebase] = nil
	}
	if text := blockedText(out); text != written.Blocked() {
		set[plan.AnnotationBlocked] = &text
		if text == "" {
			set[plan.AnnotationBlocked] = nil
		}
	}
	if len(set) == 0 || !written.Exists() {
		return written, nil
	}
	annotated, err := l.Store.Annotate(ctx, written, set)
	if errors.Is(err, store.ErrConflict) {
		l.changed.raise() // somebody wrote meanwhile: the next cycle says it again
		return written, nil
	}
	if err != nil {
		return written, fmt.Errorf("answering on the plan ConfigMap: %w", err)
	}
	l.plan.RecordUserFields(annotated.ConfigMap())
	l.plan.SetEnforced(annotated.Document)
	if _, told := set[plan.AnnotationTripped]; told {
		l.memory.Changes.TripTold, l.archive.Unsaved = true, true
	}
	return annotated, nil
}
