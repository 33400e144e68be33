package source

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/belief"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/status"
	"ballast/planner/store/history"
)

// emptyPrometheus has no samples at all: what is measured is the same for leader and person.
func emptyPrometheus(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// leaves writes what a leader left in the history, beside the plans that are kept.
func leaves(t *testing.T, c client.Client, cfg config.PlannerConfig, m memory.Memory) {
	t.Helper()
	kept := keptBy(c, cfg)
	h, _, err := kept.ReadHistory(t.Context())
	fixture.MustDo(t, err)
	parts, stale := m.Parts(nil)
	if len(stale) > 0 {
		t.Fatal(stale)
	}
	h.Parts = parts
	_, err = kept.WriteHistory(t.Context(), h, time.Now())
	fixture.MustDo(t, err)
}

// kept is a plan as the history keeps it.
func kept(t *testing.T, p plan.Plan) history.Record {
	t.Helper()
	text, err := codec.Encode(p)
	fixture.MustDo(t, err)
	return history.Record{Revision: p.Revision, Text: text}
}

// TestThePlanBeginsWithWhatTheLeaderKnows: a rollback that a person asked for, all that is remembered, a webhook that does not hold the
// plan, a plan that is not the newest. A cycle by it ends as the leader's.
func TestThePlanBeginsWithWhatTheLeaderKnows(t *testing.T) {
	yes, no := true, false
	before := fixture.Revision(15, nil)
	for name, test := range map[string]struct {
		change func(*fixture.World)
		leader func(*input.Inputs, plan.Plan)
	}{
		"a rollback": {func(w *fixture.World) { w.People[plan.AnnotationRollback] = "15" }, func(in *input.Inputs, stands plan.Plan) {
			in.InForce, in.Rollback, in.Enforcement = &stands, &input.Rollback{Revision: 15, Plan: &before}, &yes
		}},
		"a webhook that does not hold the plan": {func(w *fixture.World) {
			w.Turns(status.Enforced, status.False, status.NotHeld, "webhook a lets shards pass")
		}, func(in *input.Inputs, stands plan.Plan) {
			in.InForce, in.Enforcement, in.Unheld = &stands, &no, []string{"webhook a lets shards pass"}
		}},
		"a webhook that nobody asked": {func(w *fixture.World) { w.Turns(status.Enforced, status.Unknown, status.NotAsked, "") },
			func(in *input.Inputs, stands plan.Plan) { in.InForce = &stands }},
		"a webhook that was asked long ago": {func(w *fixture.World) { w.Said.LookedAt = time.Now().Add(-status.Outdated - time.Minute) },
			func(in *input.Inputs, stands plan.Plan) { in.InForce = &stands }},
		"a backup that somebody restored": {func(w *fixture.World) { w.Plan.Revision = 14 },
			func(in *input.Inputs, _ plan.Plan) { in.Last, in.PlanFault = &before, belief.PlanOlder }},
		"switched off": {func(w *fixture.World) { w.People[plan.AnnotationEnforcement] = "off" },
			func(in *input.Inputs, stands plan.Plan) { in.InForce, in.BreakGlass = &stands, true }},
	} {
		t.Run(name, func(t *testing.T) {
			w := fixture.QuietWorld()
			w.Kept = []history.Record{kept(t, before)}
			w.Said.LookedAt = time.Now()
			test.change(w)
			cfg := config.Default()
			cfg.Mode, cfg.Poll.Prometheus.URL = plan.Enforce, emptyPrometheus(t)
			c := w.Client(t)
			now := time.Now().UTC().Truncate(time.Second)
			left := memory.Memory{HoldOff: now.Add(-time.Minute), Known: discover.Known{Clusters: []string{"dev", "prod-eu"}},
				Votes: evaluate.Vote{Basis: "b", Since: now.Add(-time.Hour), Ballots: []evaluate.Ballot{{At: now.Add(-time.Minute), Key: "k"}}}}
			left.Changes.Counted = now.Add(-time.Hour)
			leaves(t, c, cfg, left)
			got, err := observe(t.Context(), c, func(context.Context) (bool, error) { return false, nil }, cfg, io.Discard)
			fixture.MustDo(t, err)
			// What both ask for anew is the same; the rest is as a leader has it.
			leader := input.Inputs{Now: got.Now, Config: cfg, PlannerUser: w.Plan.PlannerUser, Resizes: &no, Memory: left, Discovered: got.Discovered,
				Workload: got.Workload, Fetched: got.Fetched, Owners: got.Owners, Observed: got.Observed, Surroundings: got.Surroundings}
			test.leader(&leader, w.Plan)
			told := func(in input.Inputs) []any {
				return []any{in.InForce, in.Last, in.PlanFault, in.Rollback, in.Enforcement, in.Unheld, in.Resizes, in.BreakGlass, in.PlannerUser,
					in.Memory.HoldOff, in.Memory.Votes, in.Memory.Known.Clusters, in.Memory.Changes.Counted}
			}
			if diff := cmp.Diff(told(leader), told(got)); diff != "" {
				t.Errorf("what it begins with (-leader +plan):\n%s", diff)
			}
			want, would := cycle.Run(leader), cycle.Run(got)
			if diff := cmp.Diff([]any{want.Next, want.Reason, want.Problems, want.Done}, []any{would.Next, would.Reason, would.Problems, would.Done}); diff != "" {
				t.Errorf("what comes of it (-leader +plan):\n%s", diff)
			}
		})
	}
}

// TestThePlanSaysHowOldTheLeadersWordIs, and goes by none that is old or that cannot be read.
func TestThePlanSaysHowOldTheLeadersWordIs(t *testing.T) {
	for name, test := range map[string]struct {
		said  func(*status.Status, time.Time) *status.Status
		holds bool
		want  string
	}{
		"of now": {func(s *status.Status, now time.Time) *status.Status {
			s.LookedAt = now.Add(-90 * time.Second)
			return s
		}, true,
			"by what the leader said 1m30s ago of whether the webhooks hold the plan\n"},
		"as old as it may be": {func(s *status.Status, now time.Time) *status.Status { s.LookedAt = now.Add(-5 * time.Minute); return s }, true,
			"by what the leader said 5m ago of whether the webhooks hold the plan\n"},
		"old": {func(s *status.Status, now time.Time) *status.Status {
			s.LookedAt = now.Add(-301 * time.Second)
			return s
		}, false,
			"note: whether the webhooks hold the plan is not known: the leader looked last 5m1s ago, and what it said is old\n"},
		"of a clock that is ahead": {func(s *status.Status, now time.Time) *status.Status {
			s.LookedAt = now.Add(301 * time.Second)
			return s
		}, false,
			"note: whether the webhooks hold the plan is not known: the leader's clock is 5m1s ahead of this machine's, so that nobody can tell how old what it said is\n"},
		"nothing": {func(*status.Status, time.Time) *status.Status { return nil }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, now := fixture.QuietWorld(), time.Now().UTC().Truncate(time.Second)
			w.Said = test.said(w.Said, now)
			var notes bytes.Buffer
			holds, unheld := probedBy(t.Context(), keptBy(w.Client(t), config.Default()), now, &notes)
			if (holds != nil && *holds) != test.holds || len(unheld) > 0 || notes.String() != test.want {
				t.Errorf("the webhooks hold it: %v, %q; it says %q, want %q", holds, unheld, notes.String(), test.want)
			}
		})
	}
}

// TestWhoeverMayNotReadThePlanIsToldWhichRightsItTakes, as of Secrets.
func TestWhoeverMayNotReadThePlanIsToldWhichRightsItTakes(t *testing.T) {
	w := fixture.QuietWorld()
	w.Forbidden = []string{"ballast-plan"}
	_, err := observe(t.Context(), w.Client(t), func(context.Context) (bool, error) { return false, nil }, config.Default(), io.Discard)
	const want = "plan needs get and list on secrets, configmaps, statefulsets and deployments in \"argocd\""
	if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("it says %v, want it to end with %q", err, want)
	}
}
