package status

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
	"ballast/planner/failover/health"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/planner/rollout"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// looked is a cycle at rest in which all is well.
func looked() (input.Inputs, cycle.Outcome, *plan.Plan) {
	in := input.Inputs{Now: noon, Enforcement: ptr.To(true)}
	in.Observed.Reported.Asked = true
	out := cycle.Outcome{Budget: change.Budget{Left: math.MaxInt}}
	return in, out, &plan.Plan{Revision: 7, Mode: plan.Enforce, Replicas: 3, Clusters: map[string]plan.Row{"a": {}, "b": {Replica: 1}, "c": {Replica: 2}}}
}

func underWay(p *plan.Plan) {
	p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: noon.Add(-time.Minute), Replicas: 3, Moves: map[string]int{"a": 1}, Was: map[string]int{"a": 0}}
}

// line is a condition in short.
func (c Condition) line() string {
	text := fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

func TestConditions(t *testing.T) {
	type world struct {
		in  *input.Inputs
		out *cycle.Outcome
		p   *plan.Plan
	}
	const planning, enforced, resting, sound = "Planning=True Measured", "Enforced=True Held", "Progressing=False AtRest", "Degraded=False AsPlanned"
	sick := health.Sick{Replica: 1, Reason: health.NotReady, Since: noon.Add(-time.Hour), Pod: "c-1"}
	for name, test := range map[string]struct {
		change func(world)
		want   []string
	}{
		"all is well": {func(world) {}, []string{planning, enforced, resting, sound}},
		"what keeps the plan": {func(w world) {
			w.out.Problems = []problem.Problem{{Kind: "Told", Message: "this does not"}, {Kind: "Shrunk", Message: "most clusters are gone", Keeps: true}}
			w.in.Paused = true
		}, []string{"Planning=False Shrunk: most clusters are gone", enforced, resting, sound}},
		"a trip goes before a freeze": {func(w world) { w.in.Tripped, w.in.Paused = "harm", true },
			[]string{"Planning=False Tripped: ballast stopped itself after a wave that did harm, or a rollout that failed three times in a day; look into it, then: ballast resume", enforced, resting, sound}},
		"a trip that is not written yet": {func(w world) { w.out.Memory.Changes.Trip = &harm.Trip{} },
			[]string{"Planning=False Tripped: ballast stopped itself after a wave that did harm, or a rollout that failed three times in a day; look into it, then: ballast resume", enforced, resting, sound}},
		"a freeze": {func(w world) { w.in.Paused = true }, []string{"Planning=False Paused: a person froze it; ballast resume ends that", enforced, resting, sound}},
		"a hold-off": {func(w world) { w.out.Memory.HoldOff = noon.Add(-10 * time.Minute) },
			[]string{"Planning=False HeldOff: a rollout failed or went back to an earlier plan; nothing that levels, grows or pins begins before 2026-11-20T12:20:00Z", enforced, resting, sound}},
		"mode Observe": {func(w world) { w.p.Mode, w.in.Enforcement = plan.Observe, nil },
			[]string{"Planning=True Observing: the mode is Observe: what is decided is shown and not done", "Enforced=False Observing: the mode is Observe, which enforces nothing", resting, sound}},
		"break-glass": {func(w world) { w.in.BreakGlass, w.in.Enforcement = true, nil },
			[]string{planning, "Enforced=False BreakGlass: a person switched it off by the annotation ballast.argoproj.io/enforcement", resting, sound}},
		"a webhook that is away": {func(w world) {
			w.in.Enforcement, w.in.Unheld = ptr.To(false), []string{"secrets: no answer", "plan: no answer"}
		},
			[]string{planning, "Enforced=False NotHeld: secrets: no answer; plan: no answer", resting, sound}},
		"nobody asked the webhook": {func(w world) { w.in.Enforcement = nil },
			[]string{planning, "Enforced=Unknown NotAsked: the webhook was not asked yet, or there is nothing to ask it with", resting, sound}},
		"a wave": {func(w world) {
			underWay(w.p)
			w.out.Progress = rollout.Progress{Outcome: rollout.Waiting, Stage: plan.Moving, Why: "waiting: replica 1 is not ready"}
		}, []string{planning, enforced, "Progressing=True Moving: live: it waits: replica 1 is not ready", sound}},
		"a stage that has just begun": {func(w world) { underWay(w.p); w.out.Changed = true },
			[]string{planning, enforced, "Progressing=True Moving: the stage has just begun", sound}},
		"an unwell replica goes before clusters without one": {func(w world) {
			w.out.Replicas.Sick = []health.Sick{sick}
			w.out.Verdict.Orphans = []ownership.Orphan{{Cluster: "b"}}
		}, []string{planning, enforced, resting, "Degraded=True Unwell: " + sick.String()}},
		"most of the fleet": {func(w world) { w.out.Replicas.Held, w.out.Replicas.Down = health.WholeFleet, []int{0, 1} },
			[]string{planning, enforced, resting, "Degraded=True WholeFleet: more than half of the fleet is ill (2 replicas are unwell or not ready): nothing moves, " +
				"for what ails most of them is not theirs alone and would come along; look at Redis, the repo-server, the API server, the nodes and the image first"}},
		"clusters without a replica": {func(w world) {
			w.out.Verdict.Orphans = []ownership.Orphan{{Cluster: "b", Since: noon, Intended: 1, Last: plan.NoReplica, Why: ownership.NoPod, Apps: 2}, {Cluster: "c"}}
		}, []string{planning, enforced, resting, "Degraded=True Orphaned: clusters without a replica: 2; the first: " +
			ownership.Orphan{Cluster: "b", Since: noon, Intended: 1, Last: plan.NoReplica, Why: ownership.NoPod, Apps: 2}.Message()}},
		"clusters with several": {func(w world) {
			w.out.Verdict.Doubled = []ownership.Doubled{{Cluster: "b", Since: noon, Owners: []int{0, 1}}}
		},
			[]string{planning, enforced, resting, "Degraded=True Doubled: clusters with several replicas: 1; the first: " + ownership.Doubled{Cluster: "b", Since: noon, Owners: []int{0, 1}}.Message()}},
		"pods that say nothing": {func(w world) { w.in.Observed.Reported.Asked = false },
			[]string{planning, enforced, resting, "Degraded=Unknown NotSaid: the pods do not say which clusters they have"}},
	} {
		t.Run(name, func(t *testing.T) {
			in, out, p := looked()
			test.change(world{&in, &out, p})
			var got []string
			for _, c := range Of(in, out, p, "me", Status{}).Conditions {
				got = append(got, c.line())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	in, out, _ := looked()
	if got := Of(in, out, nil, "me", Status{}).Conditions[1].line(); got != "Enforced=False NoPlan: there is no plan yet" {
		t.Errorf("without a plan: %s", got)
	}
}

func TestARolloutIsAsTheLeaderHasIt(t *testing.T) {
	since := noon.Add(-time.Minute)
	waits := rollout.Progress{Outcome: rollout.Waiting, Why: "waiting: replica 1 is not ready", Left: 9 * time.Minute}
	for name, test := range map[string]struct {
		change func(*input.Inputs, *cycle.Outcome)
		want   Rollout
	}{
		"what it waits for": {func(_ *input.Inputs, out *cycle.Outcome) { out.Progress = waits },
			Rollout{Waits: "replica 1 is not ready", Deadline: noon.Add(9 * time.Minute)}},
		"past its deadline": {func(_ *input.Inputs, out *cycle.Outcome) {
			out.Progress = waits
			out.Progress.Left, out.Progress.Late = 0, true
		},
			Rollout{Waits: "replica 1 is not ready", Late: true}},
		"the plan was written just now": {func(_ *input.Inputs, out *cycle.Outcome) { out.Progress, out.Changed = waits, true }, Rollout{}},
		"break-glass":                   {func(in *input.Inputs, _ *cycle.Outcome) { in.BreakGlass = true }, Rollout{Waits: "enforcement is off, so the rollout stays where it is"}},
		"a fleet that is not believed": {func(_ *input.Inputs, out *cycle.Outcome) {
			out.Problems = []problem.Problem{{Kind: "Told", Message: "no"}, {Kind: "Shrunk", Message: "most clusters are gone", Keeps: true}}
		}, Rollout{Waits: "most clusters are gone"}},
		"clusters of later waves": {func(_ *input.Inputs, out *cycle.Outcome) {
			out.Memory.Changes.Target = map[string]int{"a": 1, "b": 2, "c": 2, "gone": 1}
		}, Rollout{After: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			in, out, p := looked()
			underWay(p)
			test.change(&in, &out)
			test.want.Stage, test.want.Since = plan.Moving, since
			got := Of(in, out, p, "me", Status{})
			if diff := cmp.Diff(&test.want, got.Rollout); diff != "" || got.Revision != 7 || got.Leader != "me" {
				t.Errorf("of revision %d by %q (-want +got):\n%s", got.Revision, got.Leader, diff)
			}
		})
	}
}

func TestWhoIsUnwellAndWhatHasNoReplica(t *testing.T) {
	in, out, p := looked()
	sick := health.Sick{Replica: 1, Reason: health.OOMKilled, Since: noon.Add(-time.Hour), Pod: "c-1"}
	out.Replicas = health.Verdict{Sick: []health.Sick{sick}, Held: health.Settling}
	out.Verdict = ownership.Verdict{Orphans: []ownership.Orphan{{Cluster: "b", Since: noon, Last: 2}, {Cluster: "c", Since: noon, Last: plan.NoReplica}},
		Doubled: []ownership.Doubled{{Cluster: "a", Since: noon, Owners: []int{0, 1}}}}
	out.Candidate = &cycle.Candidate{Replicas: make([]plan.Replica, 4), Moves: make([]cycle.Move, 2), Verdict: "better by 3%"}
	out.Line = &cycle.Line{Load: 7, Since: noon.Add(-time.Hour), Fullest: 2, Share: 0.5}
	out.Budget = change.Budget{Left: 3, Next: noon, Windows: []change.Window{{Rate: change.Rate{Percent: 10, Period: time.Hour}, Allowed: 5, Used: 2}}, Causes: map[change.Cause]int{change.Balance: 2}}
	got := Of(in, out, p, "me", Status{})
	got.Conditions = nil
	want := Status{Leader: "me", LookedAt: noon, Revision: 7,
		Budget:    &Budget{Message: out.Budget.String(), Left: ptr.To(3), Windows: []Window{{"1h0m0s", 10, 5, 2}}, Causes: map[string]int{"Balance": 2}},
		Candidate: &Candidate{Replicas: 4, Moves: 2, Verdict: "better by 3%"},
		Line:      &Line{Load: 7, Since: noon.Add(-time.Hour)},
		Unwell:    []Unwell{{1, health.OOMKilled, noon.Add(-time.Hour), "c-1", sick.String()}}, FailoverHeld: out.Replicas.String(),
		Orphaned: []Fault{{Cluster: "b", Since: noon, Last: ptr.To(2)}, {Cluster: "c", Since: noon}}, Doubled: []Fault{{Cluster: "a", Since: noon, Owners: []int{0, 1}}}}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAConditionLastsForAsLongAsItHolds, over a change of its reason and of leaders, and anew when it turns.
func TestAConditionLastsForAsLongAsItHolds(t *testing.T) {
	in, out, p := looked()
	s := Of(in, out, p, "first", Status{})
	since := func() (at []string) {
		for _, c := range s.Conditions {
			at = append(at, fmt.Sprint(c.Type, " ", c.LastTransitionTime.Sub(noon)))
		}
		return at
	}
	step := func(leader string, change func()) {
		change()
		in.Now = in.Now.Add(time.Minute)
		s = Of(in, out, p, leader, s)
	}
	step("first", func() { in.Paused = true })
	step("second", func() { in.Tripped = "harm" })
	step("second", func() { underWay(p) })
	if diff := cmp.Diff([]string{"Planning 1m0s", "Enforced 0s", "Progressing 3m0s", "Degraded 0s"}, since()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s = Failed(s, errors.New("no API server:\nat all"), "third", noon.Add(time.Hour))
	if diff := cmp.Diff([]string{"Planning 1m0s", "Enforced 0s", "Progressing 3m0s", "Degraded 0s"}, since()); diff != "" {
		t.Errorf("a cycle that failed (-want +got):\n%s", diff)
	}
	if got := s.Conditions[0].line(); got != "Planning=False CycleFailed: no API server:; at all" || s.Leader != "third" || !s.LookedAt.Equal(noon.Add(time.Hour)) || s.Rollout == nil {
		t.Errorf("after a cycle that failed: %s, %+v", got, s)
	}
	in.Paused, in.Tripped = false, ""
	step("third", func() {})
	if got := s.Conditions[0]; got.Status != True || !got.LastTransitionTime.Equal(in.Now) {
		t.Errorf("and one that did not: %+v at %s", got, in.Now)
	}
}

// TestNothingThatWasForgedIsSaidInANewLeadersName: of the status that it finds it keeps since when conditions hold, and none that is ahead.
func TestNothingThatWasForgedIsSaidInANewLeadersName(t *testing.T) {
	in, out, p := looked()
	was := Of(in, out, p, "first", Status{})
	was.Conditions[0].Message, was.Conditions[3].LastTransitionTime = "all is well", noon.Add(24*time.Hour)
	was.Conditions = append(was.Conditions, Condition{Type: "Forged", Status: True, Reason: "Forged"})
	was.Problems = []problem.Problem{{Kind: "Forged"}}
	was.Orphaned = []Fault{{Cluster: "forged"}}
	lines := func(s Status) (all []string) {
		for _, c := range s.Conditions {
			all = append(all, fmt.Sprint(c.line(), ", since ", c.LastTransitionTime.Sub(noon)))
		}
		return all
	}
	const unknown = "=Unknown NotLooked: this leader has not ended a cycle yet, since "
	now := noon.Add(time.Hour)
	s := Failed(Heard(was, now), errors.New("no API server"), "second", now)
	want := []string{"Planning=False CycleFailed: no API server, since 1h0m0s", "Enforced" + unknown + "1h0m0s", "Progressing" + unknown + "1h0m0s", "Degraded" + unknown + "1h0m0s"}
	if diff := cmp.Diff(want, lines(s)); diff != "" {
		t.Errorf("its first cycle failed (-want +got):\n%s", diff)
	}
	s.Conditions = nil
	if diff := cmp.Diff(Status{Leader: "second", LookedAt: now, Revision: 7}, s); diff != "" { // which counts where no plan and no history do
		t.Errorf("its first cycle failed (-want +got):\n%s", diff)
	}
	in.Now = now
	s = Of(in, out, p, "second", Heard(was, now))
	if got, want := s.Conditions[0].LastTransitionTime, noon; !got.Equal(want) {
		t.Errorf("Planning is as it was since %s, want %s", got, want)
	}
	if got := s.Conditions[3].LastTransitionTime; !got.Equal(now) {
		t.Errorf("Degraded is as it is since %s, which is ahead; want %s", got, now)
	}
	if len(s.Orphaned)+len(s.Problems) > 0 {
		t.Errorf("the second leader says %+v and %+v", s.Orphaned, s.Problems)
	}
}

// TestTheRevisionOutlivesThePlan: a leader that finds neither plan nor history says the revision that was said last, until a plan is in
// force.
func TestTheRevisionOutlivesThePlan(t *testing.T) {
	in, out, p := looked()
	was := Heard(Of(in, out, p, "first", Status{}), noon)
	s := Of(in, out, nil, "second", was)
	if s.Revision != 7 || s.Rollout != nil || s.Budget != nil || len(s.Replicas) > 0 {
		t.Errorf("without a plan it says revision %d, %+v; want 7 and nothing else of the plan", s.Revision, s)
	}
	if s = Failed(s, errors.New("no API server"), "second", noon); s.Revision != 7 {
		t.Errorf("a cycle that failed says revision %d, want 7", s.Revision)
	}
	p.Revision = 3
	if s = Of(in, out, p, "second", s); s.Revision != 3 {
		t.Errorf("with a plan it says revision %d, want the plan's 3", s.Revision)
	}
}

// TestWhatIsNoNews: when it was said, and a deadline that was rounded another way.
func TestWhatIsNoNews(t *testing.T) {
	in, out, p := looked()
	underWay(p)
	out.Progress = rollout.Progress{Outcome: rollout.Waiting, Why: "waiting: pods", Left: time.Minute}
	first := Of(in, out, p, "me", Status{})
	again := func(change func()) bool {
		change()
		return Of(in, out, p, "me", first).Same(first)
	}
	if !again(func() { in.Now = in.Now.Add(30 * time.Second); out.Progress.Left = 29 * time.Second }) {
		t.Error("half a minute is news")
	}
	if again(func() { out.Progress.Left = time.Hour }) {
		t.Error("another deadline is none")
	}
	out.Progress.Left = 29 * time.Second
	if again(func() { out.Progress.Why = "waiting: Secrets" }) {
		t.Error("what else it waits for is none")
	}
	out.Progress.Why = "waiting: pods"
	if !again(func() {}) {
		t.Error("the same is news")
	}
	if again(func() { out.Candidate = &cycle.Candidate{Verdict: "1 of 5 votes"} }) {
		t.Error("a candidate is none")
	}
	first = Of(in, out, p, "me", first)
	if !again(func() { out.Candidate.Verdict = "2 of 5 votes" }) {
		t.Error("a vote is news")
	}
	if again(func() { out.Candidate.Moves = make([]cycle.Move, 1) }) {
		t.Error("another candidate is none")
	}
	first = Of(in, out, p, "me", first)
	if again(func() { in.Paused = true }) {
		t.Error("a condition that turned is none")
	}
}

// TestAStatusIsBounded, whatever happens to how many clusters, and reads as it was written.
func TestAStatusIsBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in, out, p := looked()
		text := func(name string) string {
			of := rapid.OneOf(rapid.SampledFrom([]string{"<", "\"", "😀"}), rapid.StringN(0, 30, -1)).Draw(rt, name)
			return printable.Text(strings.Repeat(of, rapid.IntRange(1, 2000).Draw(rt, "times")), 1000)
		}
		n := rapid.IntRange(0, 400).Draw(rt, "entries")
		problem := problem.Problem{Kind: "Kind", Subject: text("subject"), Message: text("message")}
		for range n {
			out.Problems = append(out.Problems, problem)
			out.Verdict.Orphans = append(out.Verdict.Orphans, ownership.Orphan{Cluster: strings.Repeat("c", 253), Since: noon})
			out.Verdict.Doubled = append(out.Verdict.Doubled, ownership.Doubled{Cluster: strings.Repeat("c", 253), Since: noon, Owners: make([]int, n)})
			out.Replicas.Sick = append(out.Replicas.Sick, health.Sick{Replica: n, Since: noon, Pod: strings.Repeat("p", 253)})
		}
		s := Of(in, out, p, "me", Status{})
		encoded, err := s.Encode()
		if err != nil || len(encoded) > MaxBytes {
			rt.Fatalf("%d bytes: %v", len(encoded), err)
		}
		if shown := len(s.Problems) + len(s.Unwell) + len(s.Orphaned) + len(s.Doubled); s.Omitted+shown != 4*n || n > 0 && len(s.Problems) == 0 {
			rt.Fatalf("%d entries are omitted, and %d of %d shown", s.Omitted, shown, 4*n)
		}
		read, err := Parse(encoded)
		if diff := cmp.Diff(s, read, cmpopts.EquateEmpty()); diff != "" || err != nil {
			rt.Fatalf("%v (-written +read):\n%s", err, diff)
		}
	})
}

// Whoever makes hundreds of Secrets with which something is wrong takes no room of others' orphans, or of problems of another kind.
func TestNobodysSecretsTakeOthersRoomInTheStatus(t *testing.T) {
	in, out, p := looked()
	add := func(name string, made time.Time, kinds ...string) {
		out.Fleet.Clusters = append(out.Fleet.Clusters, discover.Cluster{Shard: plan.Shard{ID: name}, Created: made})
		out.Verdict.Orphans = append(out.Verdict.Orphans, ownership.Orphan{Cluster: name, Since: noon})
		for _, kind := range kinds {
			out.Problems = append(out.Problems, problem.Problem{Kind: kind, Subject: name, Message: kind})
		}
	}
	for i := range 400 {
		add(fmt.Sprintf("a-own-%03d", i), noon.Add(time.Duration(i)*time.Second), "Orphaned", "InvalidPin", "InvalidShard")
	}
	add("prod", noon.Add(-time.Hour), "Orphaned", "SecretGone")
	out.Problems = append(out.Problems, problem.Problem{Kind: "KeyMissing", Message: "no key"})
	s := Of(in, out, p, "me", Status{})
	if len(s.Orphaned) != 50 || s.Orphaned[48].Cluster != "a-own-048" || s.Orphaned[49].Cluster != "prod" {
		t.Errorf("%d orphans are shown, the last %+v", len(s.Orphaned), s.Orphaned[len(s.Orphaned)-1])
	}
	var others []string
	for _, p := range s.Problems {
		if p.Subject == "prod" || p.Subject == "" {
			others = append(others, p.Kind)
		}
	}
	if diff := cmp.Diff([]string{"Orphaned", "SecretGone", "KeyMissing"}, others); diff != "" || len(s.Problems) != 50 {
		t.Errorf("%d problems are shown, of others (-want +got):\n%s", len(s.Problems), diff)
	}
	if want := 401 - 50 + 1203 - 50; s.Omitted != want {
		t.Errorf("%d are omitted, expected %d", s.Omitted, want)
	}
}

func TestWhatIsNoStatus(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":  {"", "the status cannot be read: unexpected end of JSON input"},
		"a number": {"7", "the status cannot be read: json: cannot unmarshal number into Go value of type status.Status"},
		"too much": {strings.Repeat(" ", MaxBytes+1), "the status has 262145 bytes, more than 262144"},
	} {
		if s, err := Parse(test.text); err == nil || err.Error() != test.want || s.Leader != "" {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	in, out, p := looked()
	underWay(p)
	text, err := Of(in, out, p, "me", Status{}).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(`{"conditions":[{"type":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > MaxBytes { // escapes may make it longer than it came
			return
		}
		read, err := Parse(again)
		if err != nil || !s.Same(read) {
			t.Fatalf("%v: %q is read as another one", err, again)
		}
	})
}
