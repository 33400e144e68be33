package telemetry

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"ballast/planner/apply"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/compare"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/people"
	"ballast/planner/poll"
	"ballast/planner/rollout"
	"ballast/planner/sim"
)

func TestEventsSayWhatHappenedAndWhatToDo(t *testing.T) {
	turned := func(o rollout.Outcome) Event {
		e, _ := RolloutTurned(rollout.Progress{Outcome: o, Why: "of 5 replicas 5 are updated and 3 ready"})
		return e
	}
	const why = "of 5 replicas 5 are updated and 3 ready"
	for name, test := range map[string]struct{ got, want Event }{
		"a plan": {PlanWritten(plan.Plan{Revision: 7}, "c003 is pinned to replica 4"),
			Event{"Normal", "PlanWritten", "revision 7: c003 is pinned to replica 4", false, SecretRef{}}},
		"a plan that rolls out is the workload's too": {PlanWritten(plan.Plan{Revision: 7, Rollout: &plan.Rollout{}}, "moves"),
			Event{"Normal", "PlanWritten", "revision 7: moves", true, SecretRef{}}},
		"a leader without a plan": {LeaderElected("planner-1", nil),
			Event{"Normal", "LeaderElected", "planner-1 plans from here on; there is no plan yet", false, SecretRef{}}},
		"a leader": {LeaderElected("planner-1", &plan.Plan{Revision: 7}),
			Event{"Normal", "LeaderElected", "planner-1 plans from here on, from revision 7", false, SecretRef{}}},
		"a rollout that ended":       {turned(rollout.Finished), Event{"Normal", "RolloutFinished", why, true, SecretRef{}}},
		"a rollout that turned back": {turned(rollout.TurnedBack), Event{"Warning", "RolloutTurnedBack", why, true, SecretRef{}}},
		"a rollout that is undone":   {turned(rollout.Reverted), Event{"Warning", "RolloutReverted", why, true, SecretRef{}}},
		"a rollout that gave up":     {turned(rollout.GaveUp), Event{"Warning", "RolloutGaveUp", why, true, SecretRef{}}},
		"a rollout that goes on":     {turned(rollout.Waiting), Event{}},
		"break-glass": {BreakGlassSeen("kubectl-annotate", time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)), Event{"Warning", "EnforcementOff",
			`field manager "kubectl-annotate", at 2026-11-20T17:00:00Z, wrote the annotation ballast.argoproj.io/enforcement: "off": every write passes but one to data.plan, and what the API server's policies refuse, and ballast writes nothing of Argo CD's, once replicas that rollout.x0y stopped are back; ` +
				"`ballast audit` names the user; remove it to enforce again", true, SecretRef{}}},
		"break-glass by nobody knows whom": {BreakGlassSeen("", time.Time{}), Event{"Warning", "EnforcementOff",
			`somebody whose field manager is unknown wrote the annotation ballast.argoproj.io/enforcement: "off": every write passes but one to data.plan, and what the API server's policies refuse, and ballast writes nothing of Argo CD's, once replicas that rollout.x0y stopped are back; ` +
				"`ballast audit` names the user; remove it to enforce again", true, SecretRef{}}},
		"a second writer of a Secret": {Contested(apply.Contested{Secret: "prod-eu", Reverted: 3, Manager: "helm"}), Event{"Warning", "Contested",
			`helm writes data.shard of Secret "prod-eu" back again and again (3 times): stop it, pin the cluster, or annotate the object with ballast.argoproj.io/unmanaged: "true"`, false, SecretRef{}}},
		"an unknown writer of the workload": {Contested(apply.Contested{Reverted: 4}), Event{"Warning", "Contested",
			`somebody whose field manager is unknown writes the workload back again and again (4 times): stop it, or annotate the object with ballast.argoproj.io/unmanaged: "true"`, true, SecretRef{}}},
		"a configuration": {ConfigRefused(errors.New("mode: unknown")),
			Event{"Warning", "ConfigRefused", "the new configuration is refused and the last good one stays in force: mode: unknown", false, SecretRef{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProblemIsToldWhenItAppears(t *testing.T) {
	var n News
	orphan := func(message string) problem.Problem {
		return problem.Problem{Phase: problem.PhaseDiscover, Subject: "c000", Kind: "Orphaned", Message: message}
	}
	other := problem.Problem{Phase: problem.PhasePoll, Subject: "apps", Kind: "LowCoverage", Message: "only 3 of 9"}
	for _, step := range []struct {
		name     string
		problems []problem.Problem
		want     []Event
	}{
		{"a first problem", []problem.Problem{orphan("of 3")}, []Event{{"Warning", "Orphaned", "of 3", false, SecretRef{}}}},
		{"the same in other words", []problem.Problem{orphan("of 4")}, nil},
		{"another beside it", []problem.Problem{orphan("of 4"), other}, []Event{{"Warning", "LowCoverage", "only 3 of 9", false, SecretRef{}}}},
		{"both over", nil, nil},
		{"the first again, reported twice", []problem.Problem{orphan("of 5"), orphan("of 6")}, []Event{{"Warning", "Orphaned", "of 5", false, SecretRef{}}}},
	} {
		if diff := cmp.Diff(step.want, n.Of(step.problems)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// TestManyProblemsAreToldInFew, and hide no other kind.
func TestManyProblemsAreToldInFew(t *testing.T) {
	var n News
	var many []problem.Problem
	for i := range 500 {
		many = append(many, problem.Problem{Phase: problem.PhaseDiscover, Subject: fmt.Sprintf("c%03d", i), Kind: "Orphaned", Message: fmt.Sprint(i)})
	}
	many = append(many, problem.Problem{Phase: problem.PhasePoll, Kind: "LowCoverage", Message: "only 3 of 9"})
	got := n.Of(many)
	want := make([]Event, 0, 22)
	for i := range 20 {
		want = append(want, Event{"Warning", "Orphaned", fmt.Sprint(i), false, SecretRef{}})
	}
	want = append(want, Event{"Warning", "LowCoverage", "only 3 of 9", false, SecretRef{}})
	want = append(want, Event{"Warning", "MoreProblems", "and 480 more of Orphaned; `ballast status` lists them", false, SecretRef{}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := n.Of(many); len(again) != 0 {
		t.Errorf("the next cycle tells %d of them again", len(again))
	}
}

// TestWhateverIsToldIsHarmless: an event is one line without control characters and credentials that the API server takes,
// whatever clusters, field managers and errors are called.
func TestWhateverIsToldIsHarmless(t *testing.T) {
	const secret = "s3cr3t-t0ken"
	pieces := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x1b[2J", "\u202e", "\u009b", "\n", " https://u:" + secret + "@h ", strings.Repeat("ö", 400)}))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(pieces, 0, 6).Draw(t, "text"), "")
		var told []Event
		emit := PrintableEvents(func(_ discover.Workload, events ...Event) { told = append(told, events...) })
		emit(discover.Workload{}, PlanWritten(plan.Plan{Revision: 7}, text), LeaderElected(text, nil), ConfigRefused(errors.New(text)),
			Contested(apply.Contested{Secret: "a", Manager: text, Reverted: 3}), Event{Message: text})
		for _, e := range told {
			checkHarmless(t, e.Message, secret)
			if len(e.Message) > 1000 {
				t.Fatalf("%d bytes: %q", len(e.Message), e.Message)
			}
		}
		if len(told) != 5 {
			t.Fatalf("%d events are told", len(told))
		}
	})
}

func checkHarmless(t *rapid.T, said, secret string) {
	t.Helper()
	if strings.ContainsFunc(said, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(said) || strings.Contains(said, secret) {
		t.Fatalf("%q", said)
	}
}

func TestNotesAreCutBetweenCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"short":                  "short",
		strings.Repeat("a", 999): strings.Repeat("a", 999),
		strings.Repeat("ö", 501): strings.Repeat("ö", 498) + "…",
		strings.Repeat("a", 2000) + "https://u:p@h": strings.Repeat("a", 997) + "…",
	} {
		var got string
		PrintableEvents(func(_ discover.Workload, events ...Event) { got = events[0].Message })(discover.Workload{}, Event{Message: text})
		if got != want {
			t.Errorf("%d bytes become %q", len(text), got)
		}
	}
}

// TestWhateverACycleSaysIsHarmless: problems and reasons have names and texts of clusters, pins, cordons, pods and Prometheus
// in them. An error of several lines is told as one.
func TestWhateverACycleSaysIsHarmless(t *testing.T) {
	const secret = "s3cr3t-t0ken"
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x1b[2J", "a\nb", "\u202e", "https://u:" + secret + "@h", "https://h?token=" + secret}))
	rapid.Check(t, func(t *rapid.T) {
		server := text.Draw(t, "server") + "x"
		secretOf := func(name, shard string) discover.Secret {
			return discover.Secret{Name: name, Cluster: text.Draw(t, "cluster"), Server: server, Shard: discover.ParseShard([]byte(shard)), HasData: true}
		}
		in := input.Inputs{Config: config.Default(), Discovered: discover.Input{Namespace: "argocd", Secrets: []discover.Secret{secretOf("a", "0"), secretOf("b", "1")}},
			Pins: plan.Pins{text.Draw(t, "pin"): 3}, PinProblems: []people.PinProblem{{Line: 1, Name: text.Draw(t, "bad pin"), Message: "x"}},
			Cordon: text.Draw(t, "cordon"), Tripped: text.Draw(t, "tripped"), Rollback: &input.Rollback{Revision: 3, Problem: text.Draw(t, "rollback")},
			Workload: discover.Workload{Kind: plan.StatefulSet, Name: text.Draw(t, "workload"), Replicas: 2},
			Fetched:  []poll.Fetched{{Metric: "apps", Err: text.Draw(t, "metric"), Warnings: []string{text.Draw(t, "warning")}}},
			Observed: input.Observed{Known: true, Trouble: []string{text.Draw(t, "trouble")}}}
		out := cycle.Run(in)
		said := []string{out.Reason, out.Progress.Why}
		for _, p := range out.Problems {
			said = append(said, p.Subject, p.Message)
		}
		for _, p := range compare.InForce(in).Problems {
			said = append(said, p.Message)
		}
		for _, s := range said {
			checkHarmless(t, s, secret)
		}
		if len(out.Problems) < 2 {
			t.Fatalf("only %d problems are told: %+v", len(out.Problems), out.Problems)
		}
	})
}

func TestAPinThatCannotBeReadIsAProblem(t *testing.T) {
	doc := configmap.Parse(map[string]string{plan.KeyPins: "a: 1\n---\nb: 2\n"}, nil)
	out := cycle.Run(input.Inputs{Config: config.Default(), PinProblems: doc.PinProblems, Pins: doc.Pins,
		Discovered: discover.Input{Namespace: "argocd", Secrets: []discover.Secret{{Name: "a", Cluster: "a", Server: "https://a", HasData: true}}}})
	for _, p := range out.Problems {
		if p.Kind == "PinRefused" {
			const want = "data.pins: pins line 3: stands behind the end of the YAML document (a --- or ... line, or an indented first pin), where nothing is read; " +
				"write every pin at the beginning of a line of one document"
			if p.Message != want {
				t.Errorf("it is told as %q, want %q", p.Message, want)
			}
			return
		}
	}
	t.Errorf("nobody is told: %+v", out.Problems)
}

// TestOrphanedAndDoubledClustersAreEventsAndMetrics, and neither once they are mended.
func TestOrphanedAndDoubledClustersAreEventsAndMetrics(t *testing.T) {
	m, told := NewMetrics(prometheus.NewRegistry()), News{}
	look := func(out cycle.Outcome) []string {
		m.ObserveOutcome(input.Inputs{Now: sim.Epoch}, out, sim.Epoch)
		said := []string{fmt.Sprintf("%v orphaned, %v doubled", testutil.ToFloat64(m.orphaned), testutil.ToFloat64(m.doubled))}
		for _, e := range told.Of(out.Problems) {
			said = append(said, e.Type+" "+e.Reason+" "+e.Message)
		}
		return said
	}
	ill := cycle.Outcome{Problems: []problem.Problem{
		{Phase: problem.PhaseOwnership, Kind: "Orphaned", Subject: "c1", Message: "no replica has c1"},
		{Phase: problem.PhaseOwnership, Kind: "Doubled", Subject: "c2", Message: "two replicas have c2"}}}
	ill.Verdict.Orphans, ill.Verdict.Doubled = []ownership.Orphan{{Cluster: "c1"}}, []ownership.Doubled{{Cluster: "c2"}}
	got := [][]string{look(cycle.Outcome{}), look(ill), look(ill), look(cycle.Outcome{})}
	want := [][]string{{"0 orphaned, 0 doubled"},
		{"1 orphaned, 1 doubled", "Warning Orphaned no replica has c1", "Warning Doubled two replicas have c2"},
		{"1 orphaned, 1 doubled"}, {"0 orphaned, 0 doubled"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
