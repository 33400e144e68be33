package plan

import (
	"context"
	"errors"
	"io"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/controller/archive"
	"ballast/planner/controller/inforce"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/status"
	"ballast/planner/store"
)

// keptBy is what the leader keeps, as a person reads it: without the key that says what of it is its own.
func keptBy(c client.Client, cfg config.PlannerConfig) *store.Store {
	return store.New(store.Options{Client: c, Reader: c, Namespace: cfg.Target.Namespace, Plan: cfg.Plan.ConfigMap, History: cfg.Plan.History})
}

// remembered is the history, and what the next leader would take of it into its memory.
func remembered(ctx context.Context, kept *store.Store, in *input.Inputs, progress io.Writer) store.History {
	known, history, err := readHistory(ctx, kept)
	if err != nil {
		say.To(progress, "note: what the leader remembers is not known whole, moves that were made already may not be counted: %v\n", err)
	}
	in.Memory = known
	return history
}

// readHistory is what the next leader would begin with: votes, last good values, hold-offs and all, up to five minutes old; nothing
// where no leader ever saved anything. And the plans that a person may go back to.
func readHistory(ctx context.Context, kept *store.Store) (memory.Memory, store.History, error) {
	h, _, err := kept.ReadHistory(ctx)
	if err != nil {
		return memory.Memory{}, store.History{}, err
	}
	known, problems := memory.Of(h.Parts)
	return known, h, errors.Join(problems...)
}

// takeIn takes over what the plan ConfigMap says, judged by the history as the leader judges it.
func takeIn(in *input.Inputs, snapshot store.Snapshot, history store.History) {
	doc := snapshot.Document
	newest := history.LastPlan()
	in.InForce, in.Last, in.PlanFault = inforce.Judge(doc, newest)
	in.Pins, in.PinProblems, in.Paused, in.BreakGlass = doc.Pins, doc.PinProblems, doc.Paused, doc.BreakGlass
	in.Cordon, in.Tripped, in.Rebase = doc.Cordon, doc.Tripped, doc.Rebase
	in.Rollback = archive.RollbackTo(history.Plans, doc.Rollback)
	if !snapshot.Exists() {
		in.Memory.Changes.TripTold = false // that the annotation is gone is nobody's word
	}
	switch {
	case in.InForce != nil:
		in.PlannerUser = in.InForce.PlannerUser
	case in.Last != nil:
		in.PlannerUser = in.Last.PlannerUser
	}
}

// probedBy is whether the webhooks hold the plan, as the leader says that it found them last; nil where it does not say.
func probedBy(ctx context.Context, kept *store.Store, progress io.Writer) (*bool, []string) {
	said, err := kept.ReadStatus(ctx)
	if err != nil {
		say.To(progress, "note: whether the webhooks hold the plan is not known: %v\n", err)
	}
	if err != nil || said == nil {
		return nil, nil
	}
	at := slices.IndexFunc(said.Conditions, func(c status.Condition) bool { return c.Type == status.Enforced })
	if at < 0 {
		return nil, nil
	}
	switch c := said.Conditions[at]; c.Reason {
	case status.Held:
		holds := true
		return &holds, nil
	case status.NotHeld:
		holds := false
		return &holds, []string{c.Message}
	}
	return nil, nil
}
