package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"ballast/planner/config"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/installation"
	"ballast/planner/plan"
	"ballast/planner/plan/probing"
	"ballast/planner/probe"
	"ballast/planner/sim"
	"ballast/planner/telemetry"
)

// TestTheProbeAsksForNoReplicasThatAreHeldNoMore: the webhook lets them pass where no planner ended a stop in time, and the next leader
// must not take it for broken.
func TestTheProbeAsksForNoReplicasThatAreHeldNoMore(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stopped := plan.Plan{Mode: plan.Enforce, Rollout: &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: since}}
	runs := stopped
	runs.Replicas = 2
	for name, test := range map[string]struct {
		plan  plan.Plan
		after time.Duration
		free  bool
	}{
		"a stop":                     {stopped, plan.StopHeld, false},
		"one that nobody ended":      {stopped, plan.StopHeld + time.Second, true},
		"replicas that came back":    {runs, time.Hour, false},
		"a stop that begins in time": {stopped, -time.Hour, false},
	} {
		got := Held(input.Inputs{Now: since.Add(test.after), InForce: &test.plan, Config: config.Default()}).View.Plan.FreeReplicas
		if got != test.free || test.plan.FreeReplicas {
			t.Errorf("%s: replicas are asked for: %t, want %t", name, !got, !test.free)
		}
	}
}

// TestAProbeIsToldWhatIsHeld: the Secrets that may be written, and where each is held, by the pins of both sources.
func TestAProbeIsToldWhatIsHeld(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		want   []string
	}{
		"all of it":               {func(*world) {}, []string{"c000 0", "c001 0", "c002 0"}},
		"a fleet without Secrets": {func(w *world) { w.in.Discovered.Secrets = nil }, nil},
		"Secrets that cannot be changed": {func(w *world) {
			w.in.Discovered.Secrets[0].Immutable, w.in.Discovered.Secrets[1].Unmanaged = true, true
		}, []string{"c002 0"}},
		"a Secret that cannot be written": {func(w *world) { w.in.Barred = map[string]string{"c000": "it is full"} }, []string{"c001 0", "c002 0"}},
		"a Secret without a shard": {func(w *world) {
			w.in.Discovered.Secrets[0].Shard = discover.ShardValue{}
		}, []string{"c001 0", "c002 0", "c000 0"}},
		"a Secret that no row names": {func(w *world) { w.add("new", 1) }, []string{"c000 0", "c001 0", "c002 0", "new unplanned"}},
		"pins of both sources": {func(w *world) {
			w.in.Pins, w.in.Discovered.Secrets[1].Pin = plan.Pins{"c000": 2}, "1"
		}, []string{"c000 2 pinned", "c001 1 pinned", "c002 0"}},
		"a twin that is older than the one that leads": {func(w *world) {
			first, second := &w.in.Discovered.Secrets[0], &w.in.Discovered.Secrets[1]
			second.Server, second.Pin, first.Created = first.Server, "1", epoch
			w.in.Memory.Servers = map[string]string{"c000": first.Server, "c001": sim.Server("c001")}
		}, []string{"c001 0", "c002 0", "c000 0"}}, // the youngest comes last
		"two pins of one cluster": {func(w *world) {
			w.in.Pins, w.in.Discovered.Secrets[0].Pin = plan.Pins{"c000": 2}, "1"
		}, []string{"c000 2 pinned", "c001 0", "c002 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, 1, 1)
			w.cycle()
			for name, row := range w.in.InForce.Clusters {
				row.Replica = 0
				w.in.InForce.Clusters[name] = row
			}
			test.change(w)
			h := Held(w.in)
			var got []string
			for _, name := range h.Secrets {
				said := name + " unplanned"
				if replica, _, planned := h.View.Effective(name); planned {
					said = name + " " + strconv.Itoa(replica)
				}
				if _, pinned := h.View.Pin(name); pinned {
					said += " pinned"
				}
				got = append(got, said)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Secrets (-want +got):\n%s", diff)
			}
			want := probe.Held{Workload: w.in.Workload, ConfigMap: "ballast-plan", Now: epoch}
			h.View, h.Secrets = nil, nil
			if diff := cmp.Diff(want, h); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhoMakesSecretsIsNotAllThatIsAsked, whatever they are called: the oldest come first, and of those none by whose texts a write that
// goes by JSON is refused.
func TestWhoMakesSecretsIsNotAllThatIsAsked(t *testing.T) {
	at := func(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }
	fleet := []discover.Cluster{
		{Shard: plan.Shard{ID: "000-new"}, Created: at(3)}, {Shard: plan.Shard{ID: "001-new"}, Created: at(3)}, {Shard: plan.Shard{ID: "no-text"}, Created: at(0), NoText: true},
		{Shard: plan.Shard{ID: "prod"}, Created: at(1)}, {Shard: plan.Shard{ID: "lab"}, Created: at(2)}, {Shard: plan.Shard{ID: "implicit"}, Implicit: true},
	}
	for i := range fleet {
		fleet[i].Explicit = discover.ShardValue{State: discover.ShardValid, N: 1}
	}
	before := slices.Clone(fleet)
	if diff := cmp.Diff([]string{"prod", "lab", "000-new", "001-new"}, askable(fleet, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, fleet); diff != "" {
		t.Errorf("the fleet is in another order (-before +after):\n%s", diff)
	}
}

// TestAnAnswerIsBelievedForAsLongAsItMay: one that failed is asked for again at once.
func TestAnAnswerIsBelievedForAsLongAsItMay(t *testing.T) {
	w := newWorld(1)
	w.cycle()
	asked, answer, time := 0, probe.Result{Asked: 2}, clocktesting.NewFakeClock(epoch)
	metrics := telemetry.NewMetrics(prometheus.NewRegistry())
	a := &Asker{Options: &wiring.Options{Metrics: metrics, Log: logr.Discard(), Clock: time, Probe: func(context.Context, probe.Held) probe.Result { asked++; return answer }}}
	says := func(want string) {
		t.Helper()
		holds, unheld := a.Enforcement(t.Context(), w.in, ProbeEvery)
		said := "unknown"
		if holds != nil {
			said = strconv.FormatBool(*holds)
		}
		gauge := "none"
		if testutil.CollectAndCount(metrics.Enforcement) > 0 {
			gauge = fmt.Sprint(testutil.ToFloat64(metrics.Enforcement))
		}
		if got := fmt.Sprintf("%s %v, asked %d times, gauge %s", said, unheld, asked, gauge); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	says("true [], asked 1 times, gauge 1")
	time.Step(ProbeEvery - 1)
	says("true [], asked 1 times, gauge 1")
	answer.Unheld = []string{"x is away", "y is away"}
	time.Step(1)
	says("false [x is away y is away], asked 2 times, gauge 0")
	says("false [x is away y is away], asked 3 times, gauge 0")
	answer = probe.Result{}
	says("unknown [], asked 4 times, gauge none")
	answer.Asked = 1
	says("true [], asked 5 times, gauge 1")
	w.in.BreakGlass = true
	says("unknown [], asked 5 times, gauge none")
}

// TestWhoseWritesWerePutBackIsAddedUp: each webhook's pod by what it said last, for an hour, and no more pods than are remembered.
func TestWhoseWritesWerePutBackIsAddedUp(t *testing.T) {
	time := clocktesting.NewFakeClock(epoch)
	a := &Asker{Options: &wiring.Options{Metrics: telemetry.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(), Clock: time}}
	said := func(webhook string, alice, bob int) probing.PutBack {
		return probing.PutBack{Webhook: webhook, Since: epoch.Add(-minutes(alice)), Others: 1, Users: []probing.UserWrites{
			{User: "alice", PutBack: alice, Last: epoch.Add(minutes(alice))}, {User: "bob", Refused: bob, Last: epoch}}}
	}
	if a.PutBacks() != nil {
		t.Error("something is known that none said")
	}
	a.hear([]probing.PutBack{said("one", 3, 1), said("two", 2, 9), said("one", 4, 1)})
	want := &probing.PutBack{Webhook: "all", Since: epoch.Add(-minutes(4)), Others: 2, Users: []probing.UserWrites{
		{User: "bob", Refused: 10, Last: epoch}, {User: "alice", PutBack: 6, Last: epoch.Add(minutes(4))}}}
	if diff := cmp.Diff(want, a.PutBacks()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	time.Step(heardFor / 2)
	a.hear([]probing.PutBack{said("two", 2, 9)})
	time.Step(heardFor / 2)
	for i := range 2 * mostWebhooks {
		a.hear([]probing.PutBack{said(fmt.Sprint("more", i), 0, 1)})
	}
	got := a.PutBacks()
	if len(a.putBack) != mostWebhooks || got.Users[0].Refused != 9+mostWebhooks-1 || got.Users[1].PutBack != 2 {
		t.Errorf("%d pods are remembered: %+v", len(a.putBack), got)
	}
}

// TestWhoseWritesWerePutBackIsForgotten an hour after it was said, though no webhook says anything since, and where nothing is enforced.
func TestWhoseWritesWerePutBackIsForgotten(t *testing.T) {
	said := []probing.PutBack{{Webhook: "one", Since: epoch, Users: []probing.UserWrites{{User: "alice", PutBack: 1, Last: epoch}}}}
	for name, test := range map[string]struct {
		then func(*input.Inputs, *clocktesting.FakeClock)
		told bool
	}{
		"nothing":      {func(*input.Inputs, *clocktesting.FakeClock) {}, true},
		"an hour":      {func(_ *input.Inputs, c *clocktesting.FakeClock) { c.Step(heardFor) }, false},
		"mode Observe": {func(in *input.Inputs, _ *clocktesting.FakeClock) { in.InForce.Mode = plan.Observe }, false},
		"break-glass":  {func(in *input.Inputs, _ *clocktesting.FakeClock) { in.BreakGlass = true }, false},
		"no plan":      {func(in *input.Inputs, _ *clocktesting.FakeClock) { in.InForce = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			time := clocktesting.NewFakeClock(epoch)
			a := &Asker{Options: &wiring.Options{Metrics: telemetry.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(), Clock: time}}
			in := input.Inputs{InForce: &plan.Plan{Mode: plan.Enforce}}
			a.hear(said)
			test.then(&in, time)
			a.Enforcement(t.Context(), in, ProbeEvery)
			if got := a.PutBacks(); (got != nil) != test.told {
				t.Errorf("told is %+v", got)
			}
		})
	}
}

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

// TestWhatIsInstalledIsTold to people and by the metric, and stops nothing.
func TestWhatIsInstalledIsTold(t *testing.T) {
	changed := installation.Finding{Kind: installation.Changed, Subject: "plan.ballast.argoproj.io rules", Message: "the rules differ"}
	old := installation.Finding{Kind: installation.TooOld, Subject: "Kubernetes", Message: "upgrade Kubernetes"}
	for name, test := range map[string]struct {
		seen     installation.Seen
		err      error
		gauge    float64 // -1: absent
		problems []string
	}{
		"as shipped":            {installation.Seen{Matches: ptr.To(true)}, nil, 1, nil},
		"changed":               {installation.Seen{Matches: ptr.To(false), Findings: []installation.Finding{changed}}, nil, 0, []string{"rollout/WebhookConfigurationChanged/plan.ballast.argoproj.io rules: the rules differ"}},
		"unknown":               {installation.Seen{Findings: []installation.Finding{old}}, nil, -1, []string{"rollout/KubernetesTooOld/Kubernetes: upgrade Kubernetes"}},
		"known, and then asked": {installation.Seen{Matches: ptr.To(true)}, errors.New("the API server is away"), 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(3, 2, 1)
			w.cycle()
			metrics := telemetry.NewMetrics(prometheus.NewRegistry())
			var asked installation.Names
			a := &Asker{Options: &wiring.Options{Metrics: metrics, Log: logr.Discard(), Clock: clock.RealClock{}, Installed: func(_ context.Context, n installation.Names) (installation.Seen, error) {
				asked = n
				return test.seen, test.err
			}}}
			before := cycle.Run(w.in)
			w.in.Installation = a.Installation(t.Context(), w.in)
			after := cycle.Run(w.in)
			gauge := -1.0
			if testutil.CollectAndCount(metrics.Configured) > 0 {
				gauge = testutil.ToFloat64(metrics.Configured)
			}
			var told []string
			for _, p := range after.Problems {
				if p.Keeps {
					t.Errorf("%s keeps the plan from changing", p.Kind)
				}
				told = append(told, string(p.Phase)+"/"+p.Kind+"/"+p.Subject+": "+p.Message)
			}
			if diff := cmp.Diff(test.problems, told); diff != "" || gauge != test.gauge {
				t.Errorf("gauge %v, want %v; problems (-want +got):\n%s", gauge, test.gauge, diff)
			}
			if diff := cmp.Diff(before.Next, after.Next); diff != "" {
				t.Errorf("the plan (-without +with):\n%s", diff)
			}
			want := installation.Names{Namespace: w.in.Workload.Namespace, Workload: w.in.Workload.Name, Plan: "ballast-plan", Planner: w.in.PlannerUser}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}
