package rollout

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// stageWorld is a rollout from {2,2} with rows a:0 b:1, in the middle of a stage.
func stageWorld(t *testing.T, to int, shards map[string]int, stage plan.Stage) plan.Plan {
	t.Helper()
	p, err := Begin(newPlan(2, 2, map[string]int{"a": 0, "b": 1}), Proposal{Replicas: to, ControllerReplicas: to, Rows: rows(shards)}, basis.Options{}, start)
	if err != nil {
		t.Fatal(err)
	}
	if p.Rollout.Stage != stage {
		t := newTransition(basis.Basis{Plan: p, At: start})
		restarts{t}.enter(stage, Advanced, "")
		p = t.Plan
	}
	return p
}

func TestAdvance(t *testing.T) {
	grown, shrunken := map[string]int{"a": 0, "b": 2}, map[string]int{"a": 0, "b": 0}
	inTime, late := start.Add(9*time.Minute), start.Add(10*time.Minute)
	for name, test := range map[string]struct {
		to         int
		shards     map[string]int
		stage      plan.Stage
		seen       observed.State
		restart    bool
		options    basis.Options
		at         time.Time
		want       Outcome
		wantStage  plan.Stage // "" = the rollout ended
		wantCount  plan.Count
		wantRows   map[string]int
		wantWhy    string
		wantMoving bool
	}{
		"growing waits for its pods": {
			to: 3, shards: grown, stage: plan.Scaling, at: inTime,
			seen: stands(&observed.Workload{Replicas: 3, Ready: 3, Updated: 2, Current: 3, ObservedCurrent: true, ControllerReplicas: ptr(3)}, nil),
			want: Waiting, wantStage: plan.Scaling, wantCount: plan.Count{Replicas: 3, ControllerReplicas: 3}, wantMoving: true,
			wantRows: map[string]int{"a": 0, "b": 1}, wantWhy: "waiting: of 3 replicas 2 are updated and 3 ready",
		},
		"growing assigns once every pod runs the new env": {
			to: 3, shards: grown, stage: plan.Scaling, at: inTime, seen: stands(standing(3, ptr(3)), nil),
			want: Advanced, wantStage: plan.Assigning, wantCount: plan.Count{Replicas: 3, ControllerReplicas: 3}, wantMoving: true,
			wantRows: grown, wantWhy: "of 3 replicas 3 are updated and 3 ready",
		},
		"growing that never gets ready turns back, and nobody moved": {
			to: 3, shards: grown, stage: plan.Scaling, at: late,
			seen: stands(&observed.Workload{Replicas: 3, Ready: 2, Updated: 1, Current: 3, ObservedCurrent: true, ControllerReplicas: ptr(3)}, nil),
			want: TurnedBack, wantStage: plan.Reverting, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2},
			wantRows: map[string]int{"a": 0, "b": 1}, wantWhy: "not done after 10m0s: of 3 replicas 1 are updated and 2 ready",
		},
		"a clock that went back counts as no time": {
			to: 3, shards: grown, stage: plan.Scaling, at: start.Add(-48 * time.Hour), seen: stands(nil, nil),
			want: Waiting, wantStage: plan.Scaling, wantCount: plan.Count{Replicas: 3, ControllerReplicas: 3}, wantMoving: true,
			wantRows: map[string]int{"a": 0, "b": 1}, wantWhy: "waiting: the workload was not found",
		},
		"the way back waits for its pods too": {
			to: 3, shards: grown, stage: plan.Reverting, at: inTime, seen: stands(standing(3, ptr(3)), nil),
			want: Waiting, wantStage: plan.Reverting, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2},
			wantRows: map[string]int{"a": 0, "b": 1}, wantWhy: "waiting: the workload still asks for 3 replicas",
		},
		"the way back ends": {
			to: 3, shards: grown, stage: plan.Reverting, at: inTime, seen: stands(standing(2, ptr(2)), nil),
			want: Reverted, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2},
			wantRows: map[string]int{"a": 0, "b": 1}, wantWhy: "of 2 replicas 2 are updated and 2 ready",
		},
		"the way back ends at its deadline, whatever stands": {
			to: 3, shards: grown, stage: plan.Reverting, at: late, seen: stands(standing(3, ptr(3)), nil),
			want: Reverted, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2},
			wantRows: map[string]int{"a": 0, "b": 1}, wantWhy: "not done after 10m0s: the workload still asks for 3 replicas",
		},
		"assigning waits for the Secrets": {
			to: 3, shards: grown, stage: plan.Assigning, at: inTime, seen: stands(standing(3, ptr(3)), []observed.Secret{carried("b", 1)}),
			want: Waiting, wantStage: plan.Assigning, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantMoving: true,
			wantRows: grown, wantWhy: `1 Secrets do not carry their replica yet, the first is "b"`,
		},
		"assigning waits for no Secret that it may not write": {
			to: 3, shards: grown, stage: plan.Assigning, at: inTime,
			seen: stands(standing(3, ptr(3)), []observed.Secret{{Name: "a", Immutable: true}, {Name: "b", Shard: 1, Valid: true, Unmanaged: true}}),
			want: Finished, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantRows: grown, wantWhy: "every cluster Secret carries its replica",
		},
		"assigning to replicas that run goes on at its deadline": {
			to: 3, shards: grown, stage: plan.Assigning, at: late, seen: stands(standing(3, ptr(3)), []observed.Secret{carried("b", 1)}),
			want: Finished, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantRows: grown,
			wantWhy: `going on after 10m0s, though 1 Secrets do not carry their replica yet, the first is "b"`,
		},
		"assigning goes on to the restart that was asked for": {
			to: 3, shards: grown, stage: plan.Assigning, restart: true, at: inTime, seen: stands(standing(3, ptr(3)), nil),
			want: Advanced, wantStage: plan.Restarting, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantRows: grown,
			wantWhy: "every cluster Secret carries its replica",
		},
		"shrinking scales once nobody carries what goes": {
			to: 1, shards: shrunken, stage: plan.Assigning, at: inTime, seen: stands(standing(2, ptr(2)), []observed.Secret{carried("a", 0), carried("b", 0)}),
			want: Advanced, wantStage: plan.Scaling, wantCount: plan.Count{Replicas: 1, ControllerReplicas: 1}, wantRows: shrunken,
			wantWhy: "every cluster Secret carries its replica",
		},
		"shrinking gives up where a Secret keeps a replica": {
			to: 1, shards: shrunken, stage: plan.Assigning, at: late,
			seen: stands(standing(2, ptr(2)), []observed.Secret{carried("a", 0), {Name: "b", Shard: 1, Valid: true, Immutable: true}}),
			want: GaveUp, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantRows: shrunken,
			wantWhy: `the workload stays at 2 replicas after 10m0s: 1 Secrets carry a replica that is to go, the first is "b"`,
		},
		"shrinking waits while not all Secrets are believed to be seen": {
			to: 1, shards: shrunken, stage: plan.Assigning, at: inTime, seen: stands(standing(2, ptr(2)), []observed.Secret{carried("a", 0), carried("b", 0)}),
			options: basis.Options{Partial: true},
			want:    Waiting, wantStage: plan.Assigning, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantMoving: true, wantRows: shrunken,
			wantWhy: "most of the plan's Secrets are not seen",
		},
		"and gives up at its deadline": {
			to: 1, shards: shrunken, stage: plan.Assigning, at: late, seen: stands(standing(2, ptr(2)), []observed.Secret{carried("a", 0), carried("b", 0)}),
			options: basis.Options{Partial: true},
			want:    GaveUp, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantRows: shrunken,
			wantWhy: "the workload stays at 2 replicas after 10m0s: most of the plan's Secrets are not seen",
		},
		"a cluster created on a replica that goes is moved with the others": {
			to: 1, shards: shrunken, stage: plan.Assigning, at: inTime,
			seen: stands(standing(2, ptr(2)), []observed.Secret{carried("a", 0), carried("b", 0), carried("new", 1)}),
			want: Waiting, wantStage: plan.Assigning, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantMoving: true,
			wantRows: map[string]int{"a": 0, "b": 0, "new": 0}, wantWhy: `1 Secrets carry a replica that is to go, the first is "new"`,
		},
		"a smaller workload that never gets ready turns back": {
			to: 1, shards: shrunken, stage: plan.Scaling, at: late, seen: stands(standing(2, ptr(2)), nil),
			want: TurnedBack, wantStage: plan.Reverting, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantRows: shrunken,
			wantWhy: "not done after 10m0s: the workload still asks for 2 replicas",
		},
		"restarting waits for the restart itself": {
			to: 3, shards: grown, stage: plan.Restarting, restart: true, at: inTime, seen: stands(standing(2, ptr(2)), nil),
			want: Waiting, wantStage: plan.Restarting, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantRows: map[string]int{"a": 0, "b": 1},
			wantWhy: "waiting: of 2 replicas 2 are updated and 2 ready",
		},
		"restarting ends at its deadline": {
			to: 3, shards: grown, stage: plan.Restarting, restart: true, at: late, seen: stands(standing(2, ptr(2)), nil),
			want: Finished, wantCount: plan.Count{Replicas: 2, ControllerReplicas: 2}, wantRows: map[string]int{"a": 0, "b": 1},
			wantWhy: "not done after 10m0s: of 2 replicas 2 are updated and 2 ready",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := stageWorld(t, test.to, test.shards, test.stage)
			if test.stage == plan.Assigning || test.stage == plan.Restarting {
				p.Replicas, p.ControllerReplicas = 2, 2
			}
			o := test.options
			o.RolloutRestart, o.StageTimeout = test.restart, 10*time.Minute
			got, progress := Advance(plan.NewView(p, nil), test.seen, nil, o, test.at)
			type result struct {
				Outcome Outcome
				Stage   plan.Stage
				Count   plan.Count
				Rows    map[string]int
				Why     string
				Moving  bool
			}
			have := result{Outcome: progress.Outcome, Count: plan.Count{Replicas: got.Replicas, ControllerReplicas: got.ControllerReplicas}, Rows: map[string]int{}, Why: progress.Why}
			if got.Rollout != nil {
				have.Stage, have.Moving = got.Rollout.Stage, len(got.Rollout.Moves) > 0
			}
			for name, row := range got.Clusters {
				have.Rows[name] = row.Replica
			}
			want := result{test.want, test.wantStage, test.wantCount, test.wantRows, test.wantWhy, test.wantMoving}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdvanceLeavesAPlanAloneWhereNothingIsToBeDone(t *testing.T) {
	still := newPlan(2, 2, map[string]int{"a": 0})
	held := stageWorld(t, 3, map[string]int{"a": 0}, plan.Scaling)
	held.Mode = plan.Hold
	for name, test := range map[string]struct {
		plan plan.Plan
		want Progress
	}{
		"no rollout": {still, Progress{Outcome: Idle}},
		"holding":    {held, Progress{Outcome: Waiting, Stage: plan.Scaling, Why: "the mode is Hold, so the rollout stays where it is"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, progress := Advance(plan.NewView(test.plan, nil), observed.State{Workload: standing(3, ptr(3))}, nil, basis.Options{StageTimeout: time.Minute}, start.Add(time.Hour))
			if diff := cmp.Diff(test.plan, got) + cmp.Diff(test.want, progress); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARolloutOfAnotherVersionEndsWithoutAWorkloadAt0(t *testing.T) {
	p := newPlan(0, 4, map[string]int{"a": 0})
	p.Rollout = &plan.Rollout{Mode: "future", Stage: plan.Draining, Since: start, From: plan.Count{Replicas: 4, ControllerReplicas: 4}, Replicas: 5, ControllerReplicas: 5}
	got, progress := Advance(plan.NewView(p, nil), observed.State{Workload: standing(0, ptr(4))}, nil, basis.Options{StageTimeout: time.Minute}, start)
	want := newPlan(4, 4, map[string]int{"a": 0})
	wantProgress := Progress{Outcome: GaveUp, Stage: plan.Draining, Left: defaultDrain, Why: `this version knows no rollout in mode "future" with stage "Draining"`}
	if diff := cmp.Diff(want, got) + cmp.Diff(wantProgress, progress); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScalingReplicasThatArePeoplesHasNoWayBack(t *testing.T) {
	p := stageWorld(t, 3, map[string]int{"a": 0, "b": 2}, plan.Scaling)
	p.FreeReplicas = true
	got, progress := Advance(plan.NewView(p, nil), observed.State{Workload: standing(5, ptr(3))}, nil, basis.Options{StageTimeout: time.Minute}, start.Add(time.Hour))
	want := p.Clone()
	want.Rollout = nil
	if diff := cmp.Diff(want, got) + cmp.Diff(GaveUp, progress.Outcome); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBegin(t *testing.T) {
	now := newPlan(2, 2, map[string]int{"a": 0, "b": 1, "gone": 0})
	found := newPlan(3, 0, map[string]int{"a": 0, "b": 2})
	with := func(p plan.Plan, change func(*plan.Plan)) plan.Plan {
		p = p.Clone()
		change(&p)
		return p
	}
	rollout := func(stage plan.Stage, from, to plan.Count, moves map[string]int) *plan.Rollout {
		return &plan.Rollout{Mode: plan.ModeDefault, Stage: stage, Since: start, From: from, Replicas: to.Replicas, ControllerReplicas: to.ControllerReplicas, Moves: moves}
	}
	for name, test := range map[string]struct {
		now  plan.Plan
		next Proposal
		want plan.Plan
		err  string
	}{
		"the same again is no rollout": {now, Proposal{2, 2, now.Clusters}, now, ""},
		"a new cluster and one that is gone are no rollout": {
			now, Proposal{2, 2, rows(map[string]int{"a": 0, "b": 1, "new": 1})}, with(now, func(p *plan.Plan) { p.Clusters = rows(map[string]int{"a": 0, "b": 1, "new": 1}) }), "",
		},
		"a move between replicas that run": {
			now, Proposal{2, 2, rows(map[string]int{"a": 1, "b": 1})}, with(now, func(p *plan.Plan) {
				p.Clusters = rows(map[string]int{"a": 1, "b": 1})
				p.Rollout = rollout(plan.Assigning, plan.Count{Replicas: 2, ControllerReplicas: 2}, plan.Count{Replicas: 2, ControllerReplicas: 2}, map[string]int{"a": 1})
			}), "",
		},
		"growing keeps the rows, and leaves a new cluster where it was created": { // peer.md, hazard 14
			now, Proposal{3, 3, rows(map[string]int{"a": 2, "b": 1, "near": 1, "far": 2})}, with(now, func(p *plan.Plan) {
				p.Replicas, p.ControllerReplicas = 3, 3
				p.Clusters = rows(map[string]int{"a": 0, "b": 1, "near": 1})
				p.Rollout = rollout(plan.Scaling, plan.Count{Replicas: 2, ControllerReplicas: 2}, plan.Count{Replicas: 3, ControllerReplicas: 3}, map[string]int{"a": 2, "far": 2})
			}), "",
		},
		"shrinking moves first": {
			now, Proposal{1, 1, rows(map[string]int{"a": 0, "b": 0})}, with(now, func(p *plan.Plan) {
				p.Clusters = rows(map[string]int{"a": 0, "b": 0})
				p.Rollout = rollout(plan.Assigning, plan.Count{Replicas: 2, ControllerReplicas: 2}, plan.Count{Replicas: 1, ControllerReplicas: 1}, map[string]int{"b": 0})
			}), "",
		},
		"a fleet found without the env gets it, and its way back has one too": {
			found, Proposal{3, 0, rows(map[string]int{"a": 1, "b": 2})}, with(found, func(p *plan.Plan) {
				p.ControllerReplicas = 3
				p.Rollout = rollout(plan.Scaling, plan.Count{Replicas: 3, ControllerReplicas: 3}, plan.Count{Replicas: 3, ControllerReplicas: 3}, map[string]int{"a": 1})
			}), "",
		},
		"no replica at all is refused": {now, Proposal{0, 0, nil}, now, "beginning a rollout to 0 replicas: 0 replicas are fewer than one"},
		"a row beyond the replicas is refused": {
			now, Proposal{2, 2, rows(map[string]int{"a": 2})}, now, `beginning a rollout to 2 replicas: cluster "a" has replica 2 of 2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Begin(test.now, test.next, basis.Options{}, start)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(test.want, got) + cmp.Diff(test.err, message); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARolloutIsNotBegunInAnother(t *testing.T) {
	p := stageWorld(t, 3, map[string]int{"a": 0}, plan.Scaling)
	if _, err := Begin(p, Proposal{1, 1, nil}, basis.Options{}, start); !errors.Is(err, ErrUnderWay) {
		t.Errorf("got %v, want %v", err, ErrUnderWay)
	}
}

func TestMovesAreTheClustersThatBothPlansKnow(t *testing.T) {
	now := plan.Plan{Clusters: rows(map[string]int{"a": 0, "b": 1, "c": 2, "gone": 0})}
	next := plan.Plan{Clusters: rows(map[string]int{"a": 1, "b": 1, "c": 0, "new": 1})}
	want := []Move{{Cluster: "a", From: 0, To: 1}, {Cluster: "c", From: 2, To: 0}}
	if diff := cmp.Diff(want, Moves(now, next)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
