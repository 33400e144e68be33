package controller

import (
	"context"
	"errors"

	"ballast/planner/controller/archive"
	"ballast/planner/controller/inforce"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/configmap"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// writer writes the plan.
type writer struct {
	*wiring.Options
	plan    *inforce.Known
	archive *archive.Archive
	keyless *keyless
	changed signal
	full    bool // people were told that the plan's ConfigMap has no room left
}

// patchable sees to it that people can patch the plan ConfigMap, whether or not a plan is written to it.
func (w *writer) patchable(ctx context.Context, base store.Snapshot) store.Snapshot {
	mended, err := w.Store.Patchable(ctx, base)
	if err != nil {
		w.Log.Error(err, "starting the plan ConfigMap's managedFields anew, which nobody can patch with; it is tried again")
		return base
	}
	return mended
}

// write stores a plan that changed. A lost race is no error: the winner's ConfigMap starts the next cycle.
func (w *writer) write(ctx context.Context, in input.Inputs, out cycle.Outcome, base store.Snapshot) (string, store.Snapshot, error) {
	base = w.patchable(ctx, base)
	if !out.Changed {
		for _, p := range out.Problems {
			if p.Keeps {
				return "kept", base, nil
			}
		}
		return "quiet", base, nil
	}
	decided := configmap.Meta{DecidedAt: in.Now, DecidedBy: w.Identity, Reason: out.Reason}
	written, err := w.Store.WritePlan(ctx, base, out.Next, w.archive.Floor(), decided)
	if errors.Is(err, store.ErrConflict) {
		w.Metrics.Writes.WithLabelValues("plan", "conflict").Inc()
		w.changed.raise()
		return "conflict", base, nil
	}
	if err != nil {
		w.Metrics.Writes.WithLabelValues("plan", "failed").Inc()
		if full := errors.Is(err, store.ErrFull) || errors.Is(err, codec.ErrTooLarge); full && !w.full {
			w.full = full
			w.Tell(in, telemetry.PlanFull(err))
		}
		w.keyless.goesBackUnwritten(in, base, err)
		return "failed", base, err
	}
	w.full = false
	w.plan.SetEnforced(written.Document)
	p := written.Document.Plan
	if before := base.Document.Plan; before != nil && before.Revision == p.Revision {
		return "quiet", written, nil // it enforces the same, so the store left it alone
	}
	w.Metrics.Writes.WithLabelValues("plan", "written").Inc()
	w.Log.Info("wrote the plan", "revision", p.Revision, "mode", p.Mode, "replicas", p.Replicas, "clusters",
		len(p.Clusters), "reason", out.Reason)
	events := []telemetry.Event{telemetry.PlanWritten(*p, out.Reason)}
	if base.Restores() {
		events = append(events, telemetry.WordsPutBack(w.Store.Plan))
	}
	if e, ok := telemetry.RolloutTurned(out.Progress); ok {
		events = append(events, e)
	}
	w.Tell(in, events...)
	return "changed", written, nil
}
