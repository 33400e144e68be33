package rollout

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
	"ballast/planner/rollout/readiness"
)

func TestBeginInModesLiveAndX0Y(t *testing.T) {
	deployment := func(p plan.Plan) plan.Plan {
		p.Target.Kind = plan.Deployment
		return p
	}
	free := func(p plan.Plan) plan.Plan {
		p.FreeReplicas = true
		return p
	}
	for name, c := range map[string]struct {
		mode string
		now  plan.Plan
		next Proposal
		want string
	}{
		"live: the same again is no rollout": {
			plan.ModeLive, newPlan(2, 16, old), Proposal{2, 2, rows(old)}, "<nil>: 2/16 rows [a0 b1 c1]",
		},
		"live: a new cluster is no rollout": {
			plan.ModeLive, newPlan(2, 16, old), Proposal{2, 2, rows(shards{"a": 0, "b": 1, "c": 1, "new": 0})}, "<nil>: 2/16 rows [a0 b1 c1 new0]",
		},
		"live: growing scales, and nothing moves": {
			plan.ModeLive, newPlan(2, 16, old), Proposal{3, 3, rows(grown)}, "<nil>: Scaling 3/16 rows [a0 b1 c1]",
		},
		"live: a new cluster on a replica that comes is left where it was created": {
			plan.ModeLive, newPlan(2, 16, old), Proposal{3, 3, rows(shards{"a": 0, "b": 1, "c": 1, "near": 1, "far": 2})}, "<nil>: Scaling 3/16 rows [a0 b1 c1 near1]",
		},
		"live: another env comes first, and the replicas stay": {
			plan.ModeLive, newPlan(2, 2, old), Proposal{3, 3, rows(grown)}, "<nil>: Scaling 2/16 rows [a0 b1 c1]",
		},
		"live: another env is a rollout where nothing else changes": {
			plan.ModeLive, newPlan(2, 2, old), Proposal{2, 2, rows(old)}, "<nil>: Scaling 2/16 rows [a0 b1 c1]",
		},
		"live: an absent env comes first": {
			plan.ModeLive, newPlan(2, 0, old), Proposal{1, 1, rows(shards{"a": 0, "b": 0, "c": 0})}, "<nil>: Scaling 2/16 rows [a0 b1 c1]",
		},
		"live: an env found larger stays": {
			plan.ModeLive, newPlan(2, 40, old), Proposal{3, 3, rows(grown)}, "<nil>: Scaling 3/40 rows [a0 b1 c1]",
		},
		"live: level moves": {
			plan.ModeLive, newPlan(2, 16, old), Proposal{2, 2, rows(shards{"a": 1, "b": 1, "c": 0})}, "<nil>: Moving 2/16 rows [a0 b1 c1]",
		},
		"live: shrinking moves first": {
			plan.ModeLive, newPlan(3, 16, before), Proposal{2, 2, rows(shrunken)}, "<nil>: Moving 3/16 rows [a0 b1 c2]",
		},
		"live: a Deployment has no env": {
			plan.ModeLive, deployment(newPlan(2, 0, old)), Proposal{3, 0, rows(grown)}, "<nil>: Scaling 3/0 rows [a0 b1 c1]",
		},
		"live: no row is beyond the replicas": {
			plan.ModeLive, newPlan(2, 16, old), Proposal{2, 2, rows(grown)}, `beginning a rollout to 2 replicas: cluster "b" has replica 2 of 2: 2/16 rows [a0 b1 c1]`,
		},
		"x0y: every replica goes, and where clusters go is said": {
			plan.ModeX0Y, newPlan(2, 2, old), Proposal{3, 3, rows(grown)}, "<nil>: Draining 0/2 rows [a0 b1 c1] moves [b2] was []",
		},
		"x0y: an absent env stays absent until then": {
			plan.ModeX0Y, newPlan(2, 0, old), Proposal{3, 3, rows(grown)}, "<nil>: Draining 0/0 rows [a0 b1 c1] moves [b2] was []",
		},
		"x0y: a new cluster on a replica that comes waits": {
			plan.ModeX0Y, newPlan(2, 2, old), Proposal{3, 3, rows(shards{"a": 0, "b": 1, "c": 1, "near": 1, "far": 2})}, "<nil>: Draining 0/2 rows [a0 b1 c1 near1] moves [far2] was []",
		},
		"x0y: people's replicas cannot be stopped": {
			plan.ModeX0Y, free(newPlan(2, 2, old)), Proposal{3, 3, rows(grown)}, "beginning a rollout to 3 replicas: " + ErrFreeReplicas.Error() + ": 2/2 rows [a0 b1 c1]",
		},
		"x0y: people's replicas need not be stopped where nothing changes": {
			plan.ModeX0Y, free(newPlan(2, 2, old)), Proposal{2, 2, rows(old)}, "<nil>: 2/2 rows [a0 b1 c1]",
		},
		"a mode of another version": {
			"future", newPlan(2, 2, old), Proposal{3, 3, rows(grown)}, `beginning a rollout to 3 replicas: this version knows no mode "future": 2/2 rows [a0 b1 c1]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Begin(c.now, c.next, basis.Options{Mode: c.mode}, start)
			outcome := "<nil>"
			if err != nil {
				outcome = err.Error()
			}
			if diff := cmp.Diff(c.want, told(p, Progress{Outcome: Outcome(outcome)})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if p.Rollout != nil && (p.Rollout.Mode != c.mode || !p.Rollout.Since.Equal(start)) {
				t.Errorf("the rollout is in mode %s since %s", p.Rollout.Mode, p.Rollout.Since)
			}
		})
	}
}

func TestNoModeBeginsInAnotherRollout(t *testing.T) {
	for _, mode := range []string{plan.ModeLive, plan.ModeX0Y, plan.ModeDefault} {
		if _, err := Begin(growing(plan.Moving, nil), Proposal{2, 2, nil}, basis.Options{Mode: mode}, start); !errors.Is(err, ErrUnderWay) {
			t.Errorf("mode %s: got %v, want %v", mode, err, ErrUnderWay)
		}
	}
}

func TestMissingNamesWhatModeLiveLacksAndTheMend(t *testing.T) {
	p := newPlan(2, 2, old)
	with := func(s observed.Secret) observed.State {
		return but(fit(2, 2, old), func(seen *observed.State) { seen.Secrets = append(seen.Secrets, s) })
	}
	for name, test := range map[string]struct {
		seen observed.State
		want []string
	}{
		"nothing": {fit(2, 2, old), nil},
		"a Secret without a shard": {with(observed.Secret{Name: "z", Absent: true}),
			[]string{`Secret "z" carries no shard: ballast writes it in mode Hold or Enforce; look for the writer that takes it away if this stays`}},
		"a Secret with a shard that is none": {with(observed.Secret{Name: "z"}),
			[]string{`Secret "z" carries a shard that is no number: ballast writes it in mode Hold or Enforce; look for the writer that takes it away if this stays`}},
		"a Secret beyond the replicas": {with(observed.Secret{Name: "z", Shard: 2, Valid: true}),
			[]string{`Secret "z" carries shard 2, and there are 2 replicas: ballast writes it in mode Hold or Enforce; look for the writer that takes it away if this stays`}},
		"an orphan of ballast's": {with(observed.Secret{Name: "z", Shard: -1, Valid: true}),
			[]string{`Secret "z" carries shard -1, and there are 2 replicas: ballast writes it in mode Hold or Enforce; look for the writer that takes it away if this stays`}},
		"an immutable one": {with(observed.Secret{Name: "z", Absent: true, Immutable: true}),
			[]string{`immutable Secret "z" carries no shard: delete it and create it again with one from 0 to 1, or without immutable`}},
		"an unmanaged one": {with(observed.Secret{Name: "z", Shard: 7, Valid: true, Unmanaged: true}),
			[]string{`unmanaged Secret "z" carries shard 7, and there are 2 replicas: give it one from 0 to 1, or take the annotation ballast.argoproj.io/unmanaged off`}},
		"people's orphan is nobody's to every pod":             {with(observed.Secret{Name: "z", Shard: -1, Valid: true, Unmanaged: true}), nil},
		"a cluster that Argo CD is told to leave is not asked": {with(observed.Secret{Name: "z", Absent: true, Skip: true}), nil},
		"an in-cluster on a ring": {but(fit(2, 2, old), func(s *observed.State) {
			s.InCluster = observed.InCluster{Implicit: true, Algorithm: "consistent-hashing"}
		}),
			[]string{"the in-cluster https://kubernetes.default.svc has no Secret, and under consistent-hashing its shard changes with ARGOCD_CONTROLLER_REPLICAS: create a cluster Secret for it, or set the algorithm to legacy or round-robin"}},
		"an in-cluster on shard 0": {but(fit(2, 2, old), func(s *observed.State) { s.InCluster = observed.InCluster{Implicit: true, Algorithm: "round-robin"} }), nil},
		"no workload":              {observed.State{}, []string{`StatefulSet "argocd-application-controller" was not found: set target`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, readiness.Missing(p, test.seen)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatPeopleLackKeepsTheEnvAlone: under an env that stays, what has no shard has the owner that it had, whatever replicas come
// and go.
func TestWhatPeopleLackKeepsTheEnvAlone(t *testing.T) {
	ours := observed.Secret{Name: "y", Absent: true}
	people := []observed.Secret{{Name: "z1", Absent: true, Unmanaged: true}, {Name: "z2", Immutable: true}, {Name: "z3", Shard: 99, Valid: true, Unmanaged: true}}
	lacks := []string{
		`unmanaged Secret "z1" carries no shard: give it one from 0 to 1, or take the annotation ballast.argoproj.io/unmanaged off`,
		`immutable Secret "z2" carries a shard that is no number: delete it and create it again with one from 0 to 1, or without immutable`,
		`unmanaged Secret "z3" carries shard 99, and there are 2 replicas: give it one from 0 to 1, or take the annotation ballast.argoproj.io/unmanaged off`,
		"the in-cluster https://kubernetes.default.svc has no Secret, and under consistent-hashing its shard changes with ARGOCD_CONTROLLER_REPLICAS: create a cluster Secret for it, or set the algorithm to legacy or round-robin",
	}
	written := `Secret "y" carries no shard: ballast writes it in mode Hold or Enforce; look for the writer that takes it away if this stays`
	deployment := newPlan(2, 0, old)
	deployment.Target.Kind = plan.Deployment
	for name, test := range map[string]struct {
		p               plan.Plan
		env             int
		missing, forEnv []string
	}{
		"the env is live's":              {newPlan(2, 16, old), 16, []string{written}, lacks},
		"it is larger":                   {newPlan(2, 20, old), 20, []string{written}, lacks},
		"the plan is to change it":       {newPlan(2, 2, old), 2, append([]string{written}, lacks...), nil},
		"the workload has another one":   {newPlan(2, 16, old), 2, append([]string{written}, lacks...), nil},
		"a Deployment's is its replicas": {deployment, 0, append([]string{written}, lacks...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			seen := fit(2, test.env, old)
			seen.Secrets = append(append(seen.Secrets, ours), people...)
			seen.InCluster = observed.InCluster{Implicit: true, Algorithm: "consistent-hashing"} // as a setting says that no pod has read yet
			if diff := cmp.Diff(test.missing, readiness.Missing(test.p, seen)); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.forEnv, readiness.EnvLacks(test.p, seen)); diff != "" {
				t.Errorf("for another env (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAbandonLeavesWhatStandsButNoWorkloadAt0(t *testing.T) {
	x0y := func(stage plan.Stage, replicas int, rows, was shards) plan.Plan {
		p := stopped(stage, rows, func(p *plan.Plan) { p.Replicas, p.FreeReplicas = replicas, true })
		p.Rollout.Was = was
		return p
	}
	for name, test := range map[string]struct {
		plan plan.Plan
		want string
		free bool
	}{
		"no rollout":             {newPlan(2, 2, old), ": 2/2 rows [a0 b1 c1]", false},
		"live in a wave":         {growing(plan.Moving, moved), ": 3/16 rows [a0 b2 c1]", false},
		"live shrinking":         {shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 }), ": 2/16 rows [a0 b1 c0]", false},
		"x0y draining":           {x0y(plan.Draining, 0, old, nil), ": 2/2 rows [a0 b1 c1]", false},
		"x0y assigning":          {x0y(plan.Assigning, 0, grown, shards{"b": 1, "gone": 1}), ": 2/2 rows [a0 b1 c1]", false},
		"x0y restoring":          {x0y(plan.Restoring, 3, grown, shards{"b": 1}), ": 3/2 rows [a0 b2 c1]", true},
		"a row beyond it all":    {shrinking(plan.Shrinking, before, func(p *plan.Plan) { p.Replicas = 2 }), ": 2/16 rows [a0 b1 c0]", false},
		"another version's at 0": {func() plan.Plan { p := x0y("Future", 0, old, nil); p.Rollout.From = plan.Count{}; return p }(), ": 1/0 rows [a0 b0 c0]", false},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.plan.Clone()
			p := Abandon(test.plan)
			if diff := cmp.Diff(test.want, told(p, Progress{})) + cmp.Diff(before, test.plan) + cmp.Diff(test.free, p.FreeReplicas); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// after is x0y's options and a time within the deadline or past it.
func after(late bool) (basis.Options, time.Time) {
	o := basis.Options{Mode: plan.ModeX0Y, StageTimeout: 10 * time.Minute, DrainTimeout: 10 * time.Minute}
	if late {
		return o, start.Add(10 * time.Minute)
	}
	return o, start.Add(9 * time.Minute)
}
