package archive

import (
	"fmt"

	"ballast/planner/cycle/input"
	"ballast/planner/plan"
	"ballast/planner/store"
)

// RollbackTo is RollbackTo by the history as the leader knows it.
func (a *Archive) RollbackTo(asked string) *input.Rollback { return RollbackTo(a.history.Plans, asked) }

// RollbackTo reads the annotation by which a person asks for an earlier plan, of those that are kept.
func RollbackTo(kept []store.Record, asked string) *input.Rollback {
	if asked == "" {
		return nil
	}
	revision, ok := plan.ParseAsked(asked, plan.MaxRollback)
	if !ok {
		return &input.Rollback{Problem: fmt.Sprintf("annotation %s: %q is not a revision; `ballast rollback` lists those that are kept", plan.AnnotationRollback, asked)}
	}
	r := &input.Rollback{Revision: revision, Problem: fmt.Sprintf("revision %d is not kept any more; `ballast rollback` lists those that are", revision)}
	for _, record := range kept {
		if record.Revision != revision {
			continue
		}
		p, err := plan.Decode(record.Text)
		if err != nil {
			r.Problem = fmt.Sprintf("revision %d cannot be read: %v", revision, err)
			break
		}
		r.Plan, r.Problem = &p, ""
	}
	return r
}
