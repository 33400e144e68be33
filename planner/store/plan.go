package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/configmap"
)

// Read reads the plan ConfigMap.
func (s *Store) Read(ctx context.Context) (Snapshot, error) {
	cm, err := s.get(ctx, s.Plan)
	if err != nil || cm == nil {
		return Snapshot{}, err
	}
	return s.snapshotOf(cm), nil
}

// WritePlan writes the next plan over the snapshot it was decided on, at a revision above every one that the snapshot
// shows and above floor, the highest that the caller knows: a plan restored from a backup must not turn the count back.
// Where neither knows any, it is above the one that the leader's status says.
// Only data.plan and ballast's own annotations are written; people's pins, annotations and labels stay to the letter.
// Where the snapshot's plan enforces the same, matches its digest and is not below floor, nothing is, and the snapshot
// is answered as it was.
func (s *Store) WritePlan(ctx context.Context, base Snapshot, next plan.Plan, floor int64, m configmap.Meta) (Snapshot, error) {
	if p := base.Document.Plan; p != nil && p.Revision >= floor && next.SameEnforced(*p) {
		return base, nil
	}
	newest := base.newest(floor)
	if base.Document.Plan == nil && floor <= 0 {
		newest = max(newest, s.saidRevision(ctx))
	}
	next.Revision = plan.RevisionAfter(newest)
	text, err := codec.Encode(next)
	if err != nil {
		return base, err
	}
	c := change{
		Metadata: patchable.Meta{Annotations: s.annotations(next, text, m)},
		Data:     map[string]*string{plan.KeyPlan: &text},
		// A key stands in data or in binaryData: what somebody put there would keep the plan out for good.
		BinaryData: map[string]*[]byte{plan.KeyPlan: nil},
	}
	if base.words != nil {
		base.words.into(&c)
	}
	cm, err := s.put(ctx, s.Plan, base.object, c)
	if err != nil {
		return base, err
	}
	if cm.Data[plan.KeyPlan] != text {
		return s.snapshotOf(cm), fmt.Errorf("writing plan revision %d: %w", next.Revision, ErrNotKept)
	}
	return s.snapshotOf(cm), nil
}

// saidRevision is the one that the leader's status says, 0 where that is none that could be: nobody vouches for it.
func (s *Store) saidRevision(ctx context.Context) int64 {
	says, err := s.ReadStatus(ctx)
	if err != nil || says == nil || says.Revision > maxJump {
		return 0
	}
	return max(says.Revision, 0)
}

// annotations are ballast's; nil takes one away.
func (s *Store) annotations(p plan.Plan, text string, m configmap.Meta) map[string]*string {
	set := map[string]*string{plan.AnnotationStage: nil, plan.AnnotationMAC: nil}
	for name, value := range map[string]string{
		plan.AnnotationRevision:  strconv.FormatInt(p.Revision, 10),
		plan.AnnotationDecidedAt: m.DecidedAt.UTC().Format(time.RFC3339),
		plan.AnnotationDecidedBy: m.DecidedBy,
		plan.AnnotationReason:    m.Reason,
		plan.AnnotationDigest:    plan.Digest(text),
	} {
		set[name] = &value
	}
	if p.Rollout != nil {
		stage := string(p.Rollout.Stage)
		set[plan.AnnotationStage] = &stage
	}
	if mac := s.voucher().vouch(text); mac != "" {
		set[plan.AnnotationMAC] = &mac
	}
	return set
}

// Annotate writes annotations beside the plan, over the snapshot; nil takes one away.
func (s *Store) Annotate(ctx context.Context, base Snapshot, set map[string]*string) (Snapshot, error) {
	cm, err := s.put(ctx, s.Plan, base.object, change{Metadata: patchable.Meta{Annotations: set}})
	if err != nil {
		return base, err
	}
	return s.snapshotOf(cm), nil
}

// Patchable answers the snapshot as everybody can patch it: where somebody brought a list of managers that the API
// server cannot read back, or what is no text, nobody but the planner knows how to, and break-glass and freeze would
// fail.
func (s *Store) Patchable(ctx context.Context, base Snapshot) (Snapshot, error) {
	if base.object == nil {
		return base, nil
	}
	clean := change{}.withoutBytes(base.object)
	texts := len(clean.Data)+len(clean.Metadata.Annotations) == 0
	if texts && !patchable.Unpatchable(base.object.ManagedFields) {
		return base, nil
	}
	return s.Annotate(ctx, base, nil)
}
