package diff

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/observed/fixture"
	"ballast/planner/plan"
)

func TestSteps(t *testing.T) {
	three := func(change func(*plan.Plan)) plan.Plan {
		p := fixture.Plan(3, 3, map[string]int{"a": 0, "b": 1, "c": 2})
		if change != nil {
			change(&p)
		}
		return p
	}
	rollout := func(stage plan.Stage, from, to plan.Count) *plan.Rollout {
		return &plan.Rollout{Mode: plan.ModeDefault, Stage: stage, Since: fixture.Start, From: from, Replicas: to.Replicas, ControllerReplicas: to.ControllerReplicas}
	}
	inPlace := []observed.Secret{fixture.Carried("a", 0), fixture.Carried("b", 1), fixture.Carried("c", 2)}
	for name, test := range map[string]struct {
		plan       plan.Plan
		pins       plan.Pins
		seen       observed.State
		breakGlass bool
		now        time.Time
		want       Result
	}{
		"nothing differs": {plan: three(nil), seen: fixture.Stands(fixture.Standing(3, fixture.Ptr(3)), inPlace)},
		"observing writes nothing": {
			plan: three(func(p *plan.Plan) { p.Mode = plan.Observe }), seen: fixture.Stands(fixture.Standing(0, nil), []observed.Secret{fixture.Carried("a", 2)}),
		},
		"a broken glass writes nothing": {
			plan: three(nil), breakGlass: true, seen: fixture.Stands(fixture.Standing(0, nil), []observed.Secret{fixture.Carried("a", 2)}),
		},
		"holding stamps and heals": {
			plan: three(func(p *plan.Plan) { p.Mode = plan.Hold }),
			seen: fixture.Stands(fixture.Standing(2, fixture.Ptr(3)), []observed.Secret{{Name: "a", Absent: true}, fixture.Carried("b", 0)}),
			want: Result{Steps: []Step{
				PatchWorkload{Replicas: fixture.Ptr(3), Why: Drifted},
				PatchShard{Secret: "a", Shard: 0, Was: "-", Why: Unstamped},
				PatchShard{Secret: "b", Shard: 1, Was: "0", Why: Drifted},
			}},
		},
		"one broken Secret stops nobody": { // the peer halts: peer.md, hazard 8
			plan: three(nil),
			seen: fixture.Stands(fixture.Standing(3, fixture.Ptr(3)), []observed.Secret{fixture.Carried("c", 0), {Name: "b"}, {Name: "a", Shard: -1, Valid: true}}),
			want: Result{Steps: []Step{
				PatchShard{Secret: "a", Shard: 0, Was: "-1", Why: Broken},
				PatchShard{Secret: "b", Shard: 1, Was: "invalid", Why: Broken},
				PatchShard{Secret: "c", Shard: 2, Was: "0", Why: Drifted},
			}},
		},
		"a number too long to be shown is mended and not shown": {
			plan: three(nil), seen: fixture.Stands(fixture.Standing(3, fixture.Ptr(3)), []observed.Secret{fixture.Carried("a", 4294967296)}),
			want: Result{Steps: []Step{PatchShard{Secret: "a", Shard: 0, Was: "invalid", Why: Drifted}}},
		},
		"immutable and unmanaged Secrets are left alone": {
			plan: three(nil),
			seen: fixture.Stands(fixture.Standing(3, fixture.Ptr(3)), []observed.Secret{{Name: "b", Absent: true, Immutable: true}, {Name: "c", Shard: 1, Valid: true, Unmanaged: true}}),
			want: Result{Held: []Held{{Secret: "b", Reason: HeldImmutable, Shard: 1}, {Secret: "c", Reason: HeldUnmanaged, Shard: 2}}},
		},
		"a Secret that the plan does not know is left alone": {
			plan: three(nil), seen: fixture.Stands(fixture.Standing(3, fixture.Ptr(3)), []observed.Secret{fixture.Carried("new", 7)}),
		},
		"a pin comes before the row": {
			plan: three(nil), pins: plan.Pins{"a": 2, "b": 3}, seen: fixture.Stands(fixture.Standing(3, fixture.Ptr(3)), inPlace),
			want: Result{Steps: []Step{PatchShard{Secret: "a", Shard: 2, Was: "0", Why: Pinned}}},
		},
		"a workload found at 0 is brought back, and stamps wait": { // peer.md, hazard 13
			plan: three(nil), seen: fixture.Stands(fixture.Standing(0, fixture.Ptr(3)), []observed.Secret{fixture.Carried("b", 0)}),
			want: Result{
				Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(3), Why: Stopped}},
				Held:  []Held{{Secret: "b", Reason: HeldBeyondReach, Shard: 1}},
			},
		},
		"a plan of 0 replicas still runs one": {
			plan: fixture.Plan(0, 0, nil), seen: fixture.Stands(fixture.Standing(0, nil), nil),
			want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(1), Why: Stopped}}},
		},
		"an x0y rollout that drains may stand at 0": {
			plan: three(func(p *plan.Plan) {
				p.Replicas, p.Rollout = 0, rollout(plan.Draining, plan.Count{Replicas: 3, ControllerReplicas: 3}, plan.Count{Replicas: 4, ControllerReplicas: 4})
				p.Rollout.Mode = plan.ModeX0Y
			}),
			seen: fixture.Stands(fixture.Standing(0, fixture.Ptr(3)), inPlace),
		},
		"without a workload nothing is written": {
			plan: three(nil), seen: fixture.Stands(nil, []observed.Secret{fixture.Carried("b", 0)}),
			want: Result{Held: []Held{{Reason: HeldNoWorkload}}},
		},
		"an unmanaged workload is left alone": {
			plan: three(nil), seen: fixture.Stands(&observed.Workload{Replicas: 5, ControllerReplicas: fixture.Ptr(5), Unmanaged: true}, inPlace),
			want: Result{Held: []Held{{Reason: HeldUnmanaged}}},
		},
		"an absent env of a fleet as found is left absent, and its stamps come first": {
			plan: fixture.Plan(3, 0, map[string]int{"a": 2}), seen: fixture.Stands(fixture.Standing(3, nil), []observed.Secret{{Name: "a", Absent: true}}),
			want: Result{Steps: []Step{PatchShard{Secret: "a", Shard: 2, Was: "-", Why: Unstamped}}},
		},
		"an env that went missing is put back": {
			plan: three(nil), seen: fixture.Stands(fixture.Standing(3, nil), inPlace),
			want: Result{Steps: []Step{PatchWorkload{ControllerReplicas: fixture.Ptr(3), Why: Drifted}}},
		},
		"a Deployment has no env": {
			plan: three(func(p *plan.Plan) { p.Target.Kind = plan.Deployment }), seen: fixture.Stands(fixture.Standing(3, nil), inPlace),
		},
		"a scaling Deployment restarts": {
			plan: three(func(p *plan.Plan) {
				p.Target.Kind, p.Rollout = plan.Deployment, rollout(plan.Scaling, plan.Count{Replicas: 2}, plan.Count{Replicas: 3})
			}),
			seen: fixture.Stands(fixture.Standing(2, nil), []observed.Secret{fixture.Carried("a", 0), fixture.Carried("b", 1)}),
			want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(3), RestartedAt: "2026-08-01T12:00:00Z", Why: Rolling}}},
		},
		"while pods of two counts run, no stamp is above either": { // peer.md, hazard 14
			plan: three(func(p *plan.Plan) {
				p.Rollout = rollout(plan.Scaling, plan.Count{Replicas: 2, ControllerReplicas: 2}, plan.Count{Replicas: 3, ControllerReplicas: 3})
			}),
			pins: plan.Pins{"b": 2}, seen: fixture.Stands(fixture.Standing(3, fixture.Ptr(3)), []observed.Secret{fixture.Carried("a", 1), fixture.Carried("b", 1), fixture.Carried("c", 1)}),
			want: Result{
				Steps: []Step{PatchShard{Secret: "a", Shard: 0, Was: "1", Why: Drifted}},
				Held:  []Held{{Secret: "c", Reason: HeldBeyondReach, Shard: 2}},
			},
		},
		"replicas that the plan leaves free are people's, the env is not": {
			plan: three(func(p *plan.Plan) { p.FreeReplicas = true }), seen: fixture.Stands(fixture.Standing(2, fixture.Ptr(2)), inPlace[:2]),
			want: Result{Steps: []Step{PatchWorkload{ControllerReplicas: fixture.Ptr(3), Why: Drifted}}},
		},
		"the workload does not shrink below a shard that is carried, whoever manages it": {
			plan: three(nil), seen: fixture.Stands(fixture.Standing(5, fixture.Ptr(5)), append([]observed.Secret{{Name: "z", Shard: 4, Valid: true, Unmanaged: true}}, inPlace...)),
			want: Result{Held: []Held{{Reason: HeldStillCarried, Shard: 4, By: "z"}}},
		},
		"what is held back in one half grows in the other": {
			plan: three(nil), seen: fixture.Stands(fixture.Standing(5, fixture.Ptr(2)), append(inPlace[:2:2], fixture.Carried("c", 1))),
			want: Result{
				Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(3), ControllerReplicas: fixture.Ptr(3), Why: Drifted}},
				Held:  []Held{{Secret: "c", Reason: HeldBeyondReach, Shard: 2}},
			},
		},
		"a shard that no replica owns is in nobody's way": {
			plan: three(nil), seen: fixture.Stands(fixture.Standing(5, fixture.Ptr(5)), append([]observed.Secret{{Name: "z", Shard: 99, Valid: true, Unmanaged: true}}, inPlace...)),
			want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(3), ControllerReplicas: fixture.Ptr(3), Why: Drifted}}},
		},
		"a fleet that is not seen does not shrink its workload": {
			plan: fixture.Plan(2, 2, map[string]int{"a": 0, "b": 1, "c": 0, "d": 1}), seen: fixture.Stands(fixture.Standing(4, fixture.Ptr(4)), []observed.Secret{fixture.Carried("a", 0)}),
			want: Result{Held: []Held{{Reason: HeldUnseen}}},
		},
		"but for one that a person says is that small": {
			plan: fixture.Plan(2, 2, map[string]int{"a": 0, "b": 1, "c": 0, "d": 1}),
			seen: fixture.But(fixture.Stands(fixture.Standing(4, fixture.Ptr(4)), []observed.Secret{fixture.Carried("a", 0)}), func(s *observed.State) { s.Accepted = fixture.Ptr(1) }),
			want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(2), ControllerReplicas: fixture.Ptr(2), Why: Drifted}}},
		},
		"and not for another number of Secrets": {
			plan: fixture.Plan(2, 2, map[string]int{"a": 0, "b": 1, "c": 0, "d": 1}),
			seen: fixture.But(fixture.Stands(fixture.Standing(4, fixture.Ptr(4)), []observed.Secret{fixture.Carried("a", 0)}), func(s *observed.State) { s.Accepted = fixture.Ptr(2) }),
			want: Result{Held: []Held{{Reason: HeldUnseen}}},
		},
		"a restart is asked for once": {
			plan: three(func(p *plan.Plan) {
				p.Rollout = rollout(plan.Restarting, plan.Count{Replicas: 3, ControllerReplicas: 3}, plan.Count{Replicas: 3, ControllerReplicas: 3})
			}),
			seen: fixture.Stands(fixture.Standing(3, fixture.Ptr(3)), inPlace),
			want: Result{Steps: []Step{PatchWorkload{RestartedAt: "2026-08-01T12:00:00Z", Why: Rolling}}},
		},
		"a later restart by a person serves too": {
			plan: three(func(p *plan.Plan) {
				p.Rollout = rollout(plan.Restarting, plan.Count{Replicas: 3, ControllerReplicas: 3}, plan.Count{Replicas: 3, ControllerReplicas: 3})
			}),
			seen: fixture.Stands(&observed.Workload{Replicas: 3, ControllerReplicas: fixture.Ptr(3), RestartedAt: fixture.Start.Add(time.Minute).Format(time.RFC3339)}, inPlace),
		},
		"one that lies ahead does not": {
			plan: three(func(p *plan.Plan) {
				p.Rollout = rollout(plan.Restarting, plan.Count{Replicas: 3, ControllerReplicas: 3}, plan.Count{Replicas: 3, ControllerReplicas: 3})
			}),
			seen: fixture.Stands(&observed.Workload{Replicas: 3, ControllerReplicas: fixture.Ptr(3), RestartedAt: fixture.Start.Add(6 * time.Hour).Format(time.RFC3339)}, inPlace),
			now:  fixture.Start.Add(time.Minute),
			want: Result{Steps: []Step{PatchWorkload{RestartedAt: "2026-08-01T12:00:00Z", Why: Rolling}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Between(plan.NewView(test.plan, test.pins), test.seen, Options{BreakGlass: test.breakGlass, Now: test.now})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStepsReadAsLinesAndAsJSON(t *testing.T) {
	for name, test := range map[string]struct {
		step Step
		line string
		json string
	}{
		"a shard": {
			PatchShard{Secret: "prod-eu", Shard: 3, Was: "1", Why: Drifted}, "shard of prod-eu: 1 -> 3 (Drifted)",
			`{"step":"PatchShard","secret":"prod-eu","shard":3,"was":"1","why":"Drifted"}`,
		},
		"a workload": {
			PatchWorkload{Replicas: fixture.Ptr(4), ControllerReplicas: fixture.Ptr(5), RestartedAt: "2026-08-01T12:00:00Z", Why: Rolling},
			"workload: replicas=4 ARGOCD_CONTROLLER_REPLICAS=5 restartedAt=2026-08-01T12:00:00Z (Rolling)",
			`{"step":"PatchWorkload","replicas":4,"controllerReplicas":5,"restartedAt":"2026-08-01T12:00:00Z","why":"Rolling"}`,
		},
		"a nudge": {
			Nudge{Cluster: "prod-eu", Server: "https://eu", Name: "eu", Shard: 3, Since: fixture.Start}, "nudge of prod-eu on 3",
			`{"step":"Nudge","cluster":"prod-eu","server":"https://eu","name":"eu","shard":3,"since":"2026-08-01T12:00:00Z"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(test.step)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.line, test.json}, []string{test.step.String(), string(text)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryHeldReasonHasItsSentence(t *testing.T) {
	for held, want := range map[Held]string{
		{Secret: "a", Reason: HeldImmutable, Shard: 3}:   `Secret "a" is immutable, so it cannot be given shard 3`,
		{Secret: "a", Reason: HeldUnmanaged, Shard: 3}:   `Secret "a" is annotated as unmanaged, so it is not given shard 3`,
		{Reason: HeldUnmanaged}:                          `the workload is annotated as unmanaged, so it is left as it is`,
		{Secret: "a", Reason: HeldBeyondReach, Shard: 3}: `Secret "a" waits for shard 3: too few replicas run yet, and Argo CD would take it for shard 0`,
		{Reason: HeldStillCarried, Shard: 4, By: "z"}:    `the workload is not made smaller while Secret "z" carries shard 4`,
		{Reason: HeldUnseen}:                             `the workload is not made smaller while most of the plan's Secrets are not seen`,
		{Reason: HeldNoWorkload}:                         `the workload was not found, so nothing is written`,
	} {
		if got := held.Message(); got != want {
			t.Errorf("%+v says %q, want %q", held, got, want)
		}
	}
}

// TestWhatFollowsIsWrittenLast: thousands of Secrets of one server, turned by one pin, come before no wave and before nobody's own Secret.
func TestWhatFollowsIsWrittenLast(t *testing.T) {
	p := fixture.Plan(3, 3, map[string]int{"a-1": 1, "a-2": 1, "b": 1, "z": 2})
	p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: fixture.Start, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 3, ControllerReplicas: 3,
		Was: map[string]int{"z": 0}}
	twin := func(name string) observed.Secret {
		s := fixture.Carried(name, 0)
		s.Follows = true
		return s
	}
	v := plan.NewView(p, nil)
	seen := fixture.Stands(fixture.Standing(3, fixture.Ptr(3)), []observed.Secret{twin("a-1"), twin("a-2"), fixture.Carried("b", 0), fixture.Carried("z", 0)})
	var got []string
	for _, s := range Between(v, seen, Options{Now: fixture.Start}).Steps {
		if s, ok := s.(PatchShard); ok {
			got = append(got, fmt.Sprintf("%s to %d, follows %t", s.Secret, s.Shard, s.Follows))
		}
	}
	want := []string{"z to 2, follows false", "b to 1, follows false", "a-1 to 1, follows true", "a-2 to 1, follows true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}
