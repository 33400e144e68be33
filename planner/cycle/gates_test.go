package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/cycle/problem"
	"ballast/planner/plan"
)

var actions = map[action]string{setEnv: "setEnv", followUp: "followUp", followOut: "followOut", pinOut: "pinOut",
	rollBack: "rollBack", failOver: "failOver", drain: "drain", balance: "balance",
	sizeUp: "sizeUp", sizeDown: "sizeDown", sizeRestart: "sizeRestart"}

// verdictOn is what gates say of a situation, in words: what may begin, why the first other thing may not, and what people are
// told.
type verdictOn struct{ May, Because, Told string }

func judged(table []gate, s situation) verdictOn {
	var told []string
	shut := judge(table, s, func(p problem.Problem) {
		told = append(told, strings.TrimSuffix(p.Kind+" "+p.Subject, " ")+": "+p.Message)
	})
	var may, because []string
	for act := setEnv; act <= sizeRestart; act <<= 1 {
		if why, is := shut[act]; is {
			because = append(because, why)
		} else {
			may = append(may, actions[act])
		}
	}
	slices.Sort(because)
	return verdictOn{strings.Join(may, " "), strings.Join(slices.Compact(because), "; "), strings.Join(told, "; ")}
}

// gated is the table of situations, one for each gate alone: what it blocks, by value.
func gated() map[string]struct {
	situation
	want verdictOn
} {
	rest := situation{mode: plan.Enforce}
	with := func(change func(*situation)) situation {
		s := rest
		change(&s)
		return s
	}
	until := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	return map[string]struct {
		situation
		want verdictOn
	}{
		"":           {rest, verdictOn{"setEnv followUp followOut pinOut rollBack failOver drain balance sizeUp sizeDown sizeRestart", "", ""}},
		"breakGlass": {with(func(s *situation) { s.breakGlass = true }), verdictOn{"", "enforcement is off", ""}},
		"paused": {with(func(s *situation) { s.paused = true }),
			verdictOn{"followUp followOut rollBack drain", "a person paused it", ""}},
		"tripped": {with(func(s *situation) { s.tripped = true }),
			verdictOn{"followUp followOut rollBack failOver drain sizeUp", "ballast stopped itself and nobody has cleared it", ""}},
		"starved": {with(func(s *situation) { s.starved = true }),
			verdictOn{"setEnv followUp followOut pinOut rollBack drain balance sizeUp sizeDown sizeRestart", "ballast stopped itself and nobody has cleared it", ""}},
		"followFails": {with(func(s *situation) { s.failing = change.Pin }),
			verdictOn{"setEnv followOut pinOut rollBack failOver drain balance sizeUp sizeDown sizeRestart", "ballast stopped itself and nobody has cleared it", ""}},
		"rollbackFails": {with(func(s *situation) { s.failing = change.Rollback }),
			verdictOn{"setEnv followUp followOut pinOut failOver drain balance sizeUp sizeDown sizeRestart", "ballast stopped itself and nobody has cleared it", ""}},
		"drainFails": {with(func(s *situation) { s.failing = change.Drain }),
			verdictOn{"setEnv followUp followOut pinOut rollBack failOver balance sizeUp sizeDown sizeRestart", "ballast stopped itself and nobody has cleared it", ""}},
		"firstPlan": {with(func(s *situation) { s.first = true }), verdictOn{"", "there is no plan yet", ""}},
		"shrunk": {with(func(s *situation) { s.partial = true }),
			verdictOn{"followOut failOver drain", "too many cluster Secrets are gone at once", ""}},
		"heldOff": {with(func(s *situation) { s.heldUntil = until }),
			verdictOn{"followOut rollBack failOver drain sizeUp sizeDown", "a rollout failed or went back to an earlier plan a short while ago",
				"HeldOff: a rollout failed or went back to an earlier plan; nothing that levels, grows or pins begins before 2026-11-22T12:00:00Z"}},
		"keyless": {with(func(s *situation) { s.keyless = true }),
			verdictOn{"sizeUp sizeDown sizeRestart", "the plan's key is missing, and a leader after this one could not bring back what rollout.x0y stops", ""}},
		"unstamped": {with(func(s *situation) { s.unstamped = []string{"a", "b"} }),
			verdictOn{"followUp followOut failOver drain sizeUp sizeDown", "present owners are written",
				`Unstamped a: 2 Secrets without the replica that owns its cluster now, the first is "a": present owners are written before anything else begins but a failover, a drain and what follows the workload's replicas`}},
		"liveLacks": {with(func(s *situation) { s.missing = []string{"this", "that"} }),
			verdictOn{"followUp followOut failOver drain sizeUp sizeDown sizeRestart", "rollout.live waits", "LiveNotReady: rollout.live begins nothing yet but a failover, a drain and what follows the workload's replicas: this; that"}},
		"liveEnv": {with(func(s *situation) { s.envLacks = []string{"this", "that"} }),
			verdictOn{"followUp followOut pinOut rollBack failOver drain balance sizeUp sizeDown sizeRestart", "rollout.live waits", "LiveNotReady: rollout.live changes no ARGOCD_CONTROLLER_REPLICAS: this; that"}},
		"liveBlind": {with(func(s *situation) { s.unsaid = "pods are silent" }),
			verdictOn{"followUp followOut failOver sizeUp sizeDown sizeRestart", "rollout.live waits", "LiveNotReady: rollout.live begins nothing but a failover to replicas that say what they own: pods are silent"}},
		"scaledDeployment": {with(func(s *situation) { s.scaled = "pods read their number once" }),
			verdictOn{"followOut failOver sizeUp sizeDown", "an autoscaler's Deployment", "ScaledDeployment: pods read their number once"}},
		"fault": {with(func(s *situation) { s.fault = "a cluster has two owners" }),
			verdictOn{"setEnv followUp followOut pinOut rollBack failOver drain sizeUp sizeDown sizeRestart", "a cluster has two owners", ""}},
		"changeMoves": {with(func(s *situation) { s.moveBlock = "change.moves: the mode is Off (UpdatePolicy)" }),
			verdictOn{"setEnv followUp followOut pinOut rollBack failOver drain sizeUp sizeDown sizeRestart", "change.moves: the mode is Off (UpdatePolicy)", ""}},
		"mode":     {with(func(s *situation) { s.mode = plan.Hold }), verdictOn{"", "the mode is Hold", ""}},
		"underWay": {with(func(s *situation) { s.underWay = true }), verdictOn{"sizeUp", "a rollout is under way", ""}},
	}
}

// wrong says where a table of gates differs from what is expected of it; empty for nowhere.
func wrong(table []gate) string {
	for name, c := range gated() {
		if diff := cmp.Diff(c.want, judged(table, c.situation)); diff != "" {
			return fmt.Sprintf("%s (-want +got):\n%s", name, diff)
		}
	}
	return ""
}

func TestEachGateBlocksWhatItsRowSays(t *testing.T) {
	if diff := wrong(gates()); diff != "" {
		t.Error(diff)
	}
	for _, g := range gates() {
		if _, there := gated()[g.name]; !there {
			t.Errorf("gate %s has no situation in this test", g.name)
		}
	}
}

// Every cell of the table is tried the other way round: a gate that blocks one action more, or one less, is found.
func TestNoCellOfTheGatesCanBeSwitchedUnseen(t *testing.T) {
	for at, g := range gates() {
		for act, name := range actions {
			table := gates()
			table[at].blocks ^= act
			if wrong(table) == "" {
				t.Errorf("%s of gate %s was switched, and no row of the test fails", name, g.name)
			}
		}
		table := slices.Delete(gates(), at, at+1)
		if wrong(table) == "" {
			t.Errorf("gate %s was taken out, and no row of the test fails", g.name)
		}
	}
}

// The first gate that is shut is named, and people are told once what has one cause.
func TestTheFirstGateThatIsShutIsNamed(t *testing.T) {
	all := situation{paused: true, mode: plan.Enforce, unstamped: []string{"a"}, missing: []string{"this"}, unsaid: "pods are silent"}
	want := verdictOn{"failOver", "a person paused it; present owners are written; rollout.live waits", ""}
	got := judged(gates(), all)
	want.Told = `Unstamped a: 1 Secret without the replica that owns its cluster now, the first is "a": present owners are written before anything else begins but a failover, a drain and what follows the workload's replicas; ` +
		"LiveNotReady: rollout.live begins nothing but a failover to replicas that say what they own: pods are silent"
	want.May = "followUp followOut"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	quiet := all
	quiet.underWay = true
	if got := judged(gates(), quiet); got.Told != "" {
		t.Errorf("under way people are told %q", got.Told)
	}
}
