package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

func TestX0Y(t *testing.T) {
	draining := func(change func(*plan.Plan)) plan.Plan {
		return stopped(plan.Draining, old, func(p *plan.Plan) {
			p.Rollout.Moves = shards{"b": 2}
			if change != nil {
				change(p)
			}
		})
	}
	was := func(p *plan.Plan) { p.Rollout.Was = shards{"b": 1} }
	restoring := stopped(plan.Restoring, grown, func(p *plan.Plan) {
		was(p)
		p.Replicas, p.ControllerReplicas = 3, 3
	})
	level := stopped(plan.Restoring, shards{"a": 1, "b": 1, "c": 1}, func(p *plan.Plan) {
		p.Replicas, p.ControllerReplicas, p.Rollout.Replicas, p.Rollout.ControllerReplicas = 2, 2, 2, 2
	})
	// from 3 to 2: c came from the replica that went.
	smaller := func(stage plan.Stage, change func(*plan.Plan)) plan.Plan {
		return stopped(stage, shrunken, func(p *plan.Plan) {
			p.Rollout.From, p.Rollout.Replicas, p.Rollout.ControllerReplicas = plan.Count{Replicas: 3, ControllerReplicas: 3}, 2, 2
			p.Rollout.Was = shards{"c": 2, "a": 1}
			p.Replicas, p.ControllerReplicas = 3, 3
			if change != nil {
				change(p)
			}
		})
	}
	unready := func(s *observed.State) { s.Workload.Ready = 1 }
	for name, c := range map[string]struct {
		plan plan.Plan
		seen observed.State
		late bool
		want string
	}{
		"draining waits until no pod is left": {
			plan: draining(nil), seen: none(1, 2, old),
			want: "Waiting: Draining 0/2 rows [a0 b1 c1] moves [b2] was []; waiting: 1 pods run",
		},
		"draining waits until the status speaks of it": {
			plan: draining(nil), seen: but(none(0, 2, old), func(s *observed.State) { s.Workload.ObservedCurrent = false }),
			want: "Waiting: Draining 0/2 rows [a0 b1 c1] moves [b2] was []; waiting: 0 pods run",
		},
		"draining waits for the workload to be found": {
			plan: draining(nil), seen: observed.State{},
			want: "Waiting: Draining 0/2 rows [a0 b1 c1] moves [b2] was []; waiting: the workload was not found",
		},
		"draining is done, and the rows are the new ones": {
			plan: draining(func(p *plan.Plan) { p.Rollout.Moves["far"], p.Rollout.Moves["gone"] = 2, 1 }),
			seen: but(none(0, 2, old), func(s *observed.State) { s.Secrets = append(s.Secrets, carried("far", 0)) }),
			want: "Advanced: Assigning 0/2 rows [a0 b2 c1 far2] moves [] was [b1]; no replica runs",
		},
		"draining past its deadline comes back": {
			plan: draining(nil), seen: none(1, 2, old), late: true,
			want: "TurnedBack: Reverting 2/2 rows [a0 b1 c1]; not done after 10m0s: 1 pods run",
		},
		"draining does not go on while people hold it": {
			plan: draining(func(p *plan.Plan) { p.Mode = plan.Hold }), seen: none(0, 2, old),
			want: "TurnedBack: Reverting 2/2 rows [a0 b1 c1]; the mode is Hold, and no replica runs",
		},
		"draining does not go on once the replicas are people's": {
			plan: draining(func(p *plan.Plan) { p.FreeReplicas = true }), seen: none(0, 2, old),
			want: "TurnedBack: Reverting 2/2 rows [a0 b1 c1]; the replicas are people's now, and none runs",
		},
		"draining that is only observed stays": {
			plan: draining(func(p *plan.Plan) { p.Mode = plan.Observe }), seen: none(0, 2, old),
			want: "Waiting: Draining 0/2 rows [a0 b1 c1] moves [b2] was []; the mode is Observe, so the rollout stays where it is",
		},
		"assigning waits for the Secrets": {
			plan: stopped(plan.Assigning, grown, was), seen: none(0, 2, old),
			want: `Waiting: Assigning 0/2 rows [a0 b2 c1] moves [] was [b1]; waiting: 1 Secrets do not carry their replica yet, the first is "b"`,
		},
		"assigning waits while pods run": {
			plan: stopped(plan.Assigning, grown, was), seen: none(1, 2, grown),
			want: "Waiting: Assigning 0/2 rows [a0 b2 c1] moves [] was [b1]; waiting: 1 pods run",
		},
		"assigning is done, and the replicas come with their env": {
			plan: stopped(plan.Assigning, grown, was), seen: none(0, 2, grown),
			want: "Advanced: Restoring 3/3 rows [a0 b2 c1] moves [] was [b1]; every cluster Secret carries its replica",
		},
		"assigning goes on past its deadline": {
			plan: stopped(plan.Assigning, grown, was), seen: none(0, 2, old), late: true,
			want: `Advanced: Restoring 3/3 rows [a0 b2 c1] moves [] was [b1]; going on after 10m0s, though 1 Secrets do not carry their replica yet, the first is "b"`,
		},
		"assigning past its deadline comes back where pods of the old env run": {
			plan: stopped(plan.Assigning, grown, was), seen: none(1, 2, grown), late: true,
			want: "TurnedBack: Reverting 2/2 rows [a0 b1 c1] moves [] was [b1]; not done after 10m0s: 1 pods run",
		},
		"assigning does not go on while people hold it": {
			plan: stopped(plan.Assigning, grown, func(p *plan.Plan) { was(p); p.Mode = plan.Hold }), seen: none(0, 2, old),
			want: "TurnedBack: Reverting 2/2 rows [a0 b1 c1] moves [] was [b1]; the mode is Hold, and no replica runs",
		},
		"restoring waits for the pods": {
			plan: restoring, seen: but(fit(3, 3, grown), unready),
			want: "Waiting: Restoring 3/3 rows [a0 b2 c1] moves [] was [b1]; waiting: of 3 replicas 3 are updated and 1 ready",
		},
		"restoring is finished, and holding does not stop it": {
			plan: func() plan.Plan { p := restoring.Clone(); p.Mode = plan.Hold; return p }(), seen: fit(3, 3, grown),
			want: "Finished: 3/3 rows [a0 b2 c1]; of 3 replicas 3 are updated and 3 ready",
		},
		"restoring past its deadline comes back": {
			plan: restoring, seen: but(fit(3, 3, grown), unready), late: true,
			want: "TurnedBack: Reverting 2/2 rows [a0 b1 c1] moves [] was [b1]; not done after 10m0s: of 3 replicas 3 are updated and 1 ready",
		},
		"a cluster that came meanwhile goes with the one that has its server": {
			plan: stopped(plan.Assigning, shards{"a": 0, "b": 2, "c": 1, "twin": 2, "new": 2}, func(p *plan.Plan) {
				was(p)
				p.Clusters["twin"] = plan.Row{Replica: 2, Server: plan.ServerHash("https://b")}
				p.Mode = plan.Hold
			}), seen: none(0, 2, old),
			want: "TurnedBack: Reverting 2/2 rows [a0 b1 c1 new0 twin1] moves [] was [b1]; the mode is Hold, and no replica runs",
		},
		"and back with it": {
			plan: stopped(plan.Assigning, shards{"a": 0, "b": 0, "c": 1, "twin": 0}, func(p *plan.Plan) {
				was(p)
				p.Clusters["twin"] = plan.Row{Replica: 0, Server: plan.ServerHash("https://b")}
				p.Mode = plan.Hold
			}), seen: none(0, 2, old),
			want: "TurnedBack: Reverting 2/2 rows [a0 b1 c1 twin1] moves [] was [b1]; the mode is Hold, and no replica runs",
		},
		"restoring to the count it came from has no other to come back to": {
			plan: level, seen: but(fit(2, 2, shards{"a": 1, "b": 1, "c": 1}), unready), late: true,
			want: "GaveUp: 2/2 rows [a1 b1 c1]; not done after 10m0s: of 2 replicas 2 are updated and 1 ready",
		},
		"no deadline leaves the workload at 0": {
			plan: level, seen: none(0, 2, shards{"a": 1, "b": 1, "c": 1}), late: true,
			want: "Waiting: Restoring 2/2 rows [a1 b1 c1]; waiting: of 2 replicas 0 are updated and 0 ready",
		},
		"but where it is not ballast's": {
			plan: level, seen: but(none(0, 2, shards{"a": 1, "b": 1, "c": 1}), func(s *observed.State) { s.Workload.Unmanaged = true }), late: true,
			want: "GaveUp: 2/2 rows [a1 b1 c1]; not done after 10m0s: of 2 replicas 0 are updated and 0 ready",
		},
		"coming back to more replicas, rows are below both counts first": {
			plan: smaller(plan.Restoring, func(p *plan.Plan) { p.Replicas, p.ControllerReplicas = 2, 2 }), seen: but(fit(2, 2, shrunken), unready), late: true,
			want: "TurnedBack: Reverting 3/3 rows [a1 b1 c0] moves [] was [a1 c2]; not done after 10m0s: of 2 replicas 2 are updated and 1 ready",
		},
		"but not while a Secret carries a shard beyond the smaller one": {
			plan: smaller(plan.Restoring, func(p *plan.Plan) { p.Replicas, p.ControllerReplicas = 2, 2 }), seen: but(fit(2, 2, before), unready), late: true,
			want: `Waiting: Restoring 2/2 rows [a0 b1 c0] moves [] was [a1 c2]; waiting: 1 Secrets do not carry their replica yet, the first is "c"`,
		},
		"and the rest when all pods are of one count": {
			plan: smaller(plan.Reverting, func(p *plan.Plan) { p.Clusters = rows(shards{"a": 1, "b": 1, "c": 0}) }), seen: fit(3, 3, shards{"a": 1, "b": 1, "c": 0}),
			want: "Advanced: Reverting 3/3 rows [a1 b1 c2] moves [c2] was []; of 3 replicas 3 are updated and 3 ready",
		},
		"and it waits until they are there": {
			plan: smaller(plan.Reverting, func(p *plan.Plan) {
				p.Clusters = rows(before)
				p.Rollout.Moves, p.Rollout.Was = shards{"c": 2}, nil
			}), seen: fit(3, 3, shrunken),
			want: `Waiting: Reverting 3/3 rows [a0 b1 c2] moves [c2] was []; waiting: 1 Secrets do not carry their replica yet, the first is "c"`,
		},
		"and then has come back": {
			plan: smaller(plan.Reverting, func(p *plan.Plan) {
				p.Clusters = rows(before)
				p.Rollout.Moves, p.Rollout.Was = shards{"c": 2}, nil
			}), seen: fit(3, 3, before),
			want: "Reverted: 3/3 rows [a0 b1 c2]; every cluster is back where it was",
		},
		"or its deadline ends it": {
			plan: smaller(plan.Reverting, func(p *plan.Plan) {
				p.Clusters = rows(before)
				p.Rollout.Moves, p.Rollout.Was = shards{"c": 2}, nil
			}), seen: fit(3, 3, shrunken), late: true,
			want: `Reverted: 3/3 rows [a0 b1 c2]; not done after 10m0s: 1 Secrets do not carry their replica yet, the first is "c"`,
		},
		"coming back waits for the pods": {
			plan: stopped(plan.Reverting, old, func(p *plan.Plan) { p.Replicas = 2 }), seen: but(fit(2, 2, old), unready),
			want: "Waiting: Reverting 2/2 rows [a0 b1 c1]; waiting: of 2 replicas 2 are updated and 1 ready",
		},
		"coming back ends at its deadline": {
			plan: stopped(plan.Reverting, old, func(p *plan.Plan) { p.Replicas = 2 }), seen: but(fit(2, 2, old), unready), late: true,
			want: "Reverted: 2/2 rows [a0 b1 c1]; not done after 10m0s: of 2 replicas 2 are updated and 1 ready",
		},
		"and then leaves people's replicas an env that is large enough": {
			plan: stopped(plan.Reverting, old, func(p *plan.Plan) { p.Replicas, p.FreeReplicas = 2, true }), seen: fit(5, 5, old), late: true,
			want: "Reverted: 2/5 rows [a0 b1 c1]; not done after 10m0s: of 2 replicas 2 are updated and 2 ready",
		},
		"but not while pods of the smaller count may run": {
			plan: smaller(plan.Reverting, nil), seen: but(fit(3, 3, shrunken), func(s *observed.State) { s.Workload.Updated, s.Workload.Ready = 2, 2 }), late: true,
			want: "Waiting: Reverting 3/3 rows [a0 b1 c0] moves [] was [a1 c2]; waiting: of 3 replicas 2 are updated and 2 ready",
		},
		"and ends when they are replaced, ready or not": {
			plan: smaller(plan.Reverting, nil), seen: but(fit(3, 3, shrunken), func(s *observed.State) { s.Workload.Ready = 2 }), late: true,
			want: "Reverted: 3/3 rows [a0 b1 c0]; not done after 10m0s: of 3 replicas 3 are updated and 2 ready",
		},
		"a stage that x0y does not have ends, and not at 0": {
			plan: stopped(plan.Moving, old, nil), seen: none(0, 2, old),
			want: `GaveUp: 2/2 rows [a0 b1 c1]; this version knows no rollout in mode "x0y" with stage "Moving"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, at := after(c.late)
			p, progress := Advance(plan.NewView(c.plan, nil), c.seen, nil, o, at)
			if diff := cmp.Diff(c.want, told(p, progress)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAWayBackWaitsForASecretOnlySoLong: one that nobody may write keeps no fleet at pods that are not ready.
func TestAWayBackWaitsForASecretOnlySoLong(t *testing.T) {
	p := stopped(plan.Restoring, shrunken, func(p *plan.Plan) {
		p.Rollout.From, p.Rollout.Replicas, p.Rollout.ControllerReplicas = plan.Count{Replicas: 3, ControllerReplicas: 3}, 2, 2
		p.Replicas, p.ControllerReplicas, p.Rollout.Was = 2, 2, shards{"c": 2}
	})
	seen := but(fit(2, 2, before), func(s *observed.State) { s.Workload.Ready = 1 })
	for minutes, want := range map[int]Outcome{10: Waiting, 19: Waiting, 20: TurnedBack} {
		_, progress := Advance(plan.NewView(p, nil), seen, nil, basis.Options{StageTimeout: 10 * time.Minute}, start.Add(time.Duration(minutes)*time.Minute))
		if progress.Outcome != want {
			t.Errorf("after %d minutes: %+v, want %s", minutes, progress, want)
		}
	}
}

func TestDrainingHasADeadlineOfItsOwn(t *testing.T) {
	p := stopped(plan.Draining, old, nil)
	for name, test := range map[string]struct {
		o    basis.Options
		want Progress
	}{
		"said":    {basis.Options{StageTimeout: time.Hour, DrainTimeout: 2 * time.Minute}, Progress{Outcome: Waiting, Stage: plan.Draining, Left: time.Minute, Why: "waiting: 1 pods run"}},
		"unknown": {basis.Options{StageTimeout: time.Hour}, Progress{Outcome: Waiting, Stage: plan.Draining, Left: 4 * time.Minute, Why: "waiting: 1 pods run"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, progress := Advance(plan.NewView(p, nil), none(1, 2, old), nil, test.o, start.Add(time.Minute))
			if diff := cmp.Diff(test.want, progress); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
