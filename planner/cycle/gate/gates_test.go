package gate

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

// actions are all there are, by name.
func actions() map[Action]string {
	all := map[Action]string{}
	for act := SetEnv; act <= Scale; act <<= 1 {
		all[act] = act.String()
	}
	return all
}

// verdictOn is what gates say of a situation, in words: what may begin, why the first other thing may not, and what people are
// told, at once or of a rollout that does what is shut.
type verdictOn struct{ May, Because, Told string }

func judged(table []gate, s Situation) verdictOn {
	var told []string
	shut := Judge(table, s, func(p problem.Problem) {
		told = append(told, strings.TrimSuffix(p.Kind+" "+p.Subject, " ")+": "+p.Message)
	})
	on := verdicts(shut)
	for does := StopAll; does <= Scale; does <<= 1 {
		if kind, why := Refuses(table, s, does); why != "" {
			told = append(told, strings.TrimSuffix(does.String()+" "+kind, " ")+": "+why)
		}
	}
	on.Told = strings.Join(told, "; ")
	return on
}

// verdicts are those on what may begin, in words.
func verdicts(shut Verdicts) verdictOn {
	var may, because []string
	for act := SetEnv; act&Everything != 0; act <<= 1 {
		if why, is := shut[act]; is {
			because = append(because, why)
		} else {
			may = append(may, act.String())
		}
	}
	slices.Sort(because)
	return verdictOn{May: strings.Join(may, " "), Because: strings.Join(slices.Compact(because), "; ")}
}

// gated is the table of situations, one for each gate alone: what it blocks, by value.
func gated() map[string]struct {
	Situation
	want verdictOn
} {
	rest := Situation{Mode: plan.Enforce}
	with := func(change func(*Situation)) Situation {
		s := rest
		change(&s)
		return s
	}
	until := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	const all = "setEnv followUp followOut pinOut rollBack failOver drain balance sizeUp sizeDown sizeRestart"
	return map[string]struct {
		Situation
		want verdictOn
	}{
		"":           {rest, verdictOn{all, "", ""}},
		"breakGlass": {with(func(s *Situation) { s.BreakGlass = true }), verdictOn{"", "enforcement is off", ""}},
		"paused": {with(func(s *Situation) { s.Paused = true }),
			verdictOn{"followUp followOut rollBack drain", "a person paused it", ""}},
		"tripped": {with(func(s *Situation) { s.Tripped = true }),
			verdictOn{"followUp followOut rollBack failOver drain sizeUp", "ballast stopped itself and nobody has cleared it", ""}},
		"starved": {with(func(s *Situation) { s.Starved = true }),
			verdictOn{"setEnv followUp followOut pinOut rollBack drain balance sizeUp sizeDown sizeRestart", "ballast stopped itself and nobody has cleared it", ""}},
		"followFails": {with(func(s *Situation) { s.Failing = change.Pin }),
			verdictOn{"setEnv followOut pinOut rollBack failOver drain balance sizeUp sizeDown sizeRestart", "ballast stopped itself and nobody has cleared it", ""}},
		"rollbackFails": {with(func(s *Situation) { s.Failing = change.Rollback }),
			verdictOn{"setEnv followUp followOut pinOut failOver drain balance sizeUp sizeDown sizeRestart", "ballast stopped itself and nobody has cleared it", ""}},
		"drainFails": {with(func(s *Situation) { s.Failing = change.Drain }),
			verdictOn{"setEnv followUp followOut pinOut rollBack failOver balance sizeUp sizeDown sizeRestart", "ballast stopped itself and nobody has cleared it", ""}},
		"firstPlan": {with(func(s *Situation) { s.First = true }), verdictOn{"", "there is no plan yet", ""}},
		"shrunk": {with(func(s *Situation) { s.Partial = true }),
			verdictOn{"followOut failOver drain sizeUp", "too many cluster Secrets are gone at once", ""}},
		"heldOff": {with(func(s *Situation) { s.HeldUntil = until }),
			verdictOn{"followOut rollBack failOver drain sizeUp sizeDown", "a rollout failed or went back to an earlier plan a short while ago",
				"HeldOff: a rollout failed or went back to an earlier plan; nothing that levels, grows or pins begins before 2026-11-22T12:00:00Z"}},
		"keyless": {with(func(s *Situation) { s.Keyless = true }),
			verdictOn{"sizeUp sizeDown sizeRestart", "the plan's key is missing, and a leader after this one could not bring back what rollout.x0y stops", ""}},
		"unstamped": {with(func(s *Situation) { s.Unstamped = []string{"a", "b"} }),
			verdictOn{"followUp followOut failOver drain sizeUp sizeDown", "present owners are written",
				`Unstamped a: 2 Secrets without the replica that owns its cluster now, the first is "a": present owners are written before anything else begins but a failover, a drain and what follows the workload's replicas`}},
		"liveLacks": {with(func(s *Situation) { s.Missing = []string{"this", "that"} }),
			verdictOn{"followUp followOut failOver drain sizeUp sizeDown sizeRestart", "rollout.live waits", "LiveNotReady: rollout.live begins nothing yet but a failover, a drain and what follows the workload's replicas: this; that"}},
		"liveEnv": {with(func(s *Situation) { s.EnvLacks = []string{"this", "that"} }),
			verdictOn{"followUp followOut pinOut rollBack failOver drain balance sizeUp sizeDown sizeRestart", "rollout.live waits", "LiveNotReady: rollout.live changes no ARGOCD_CONTROLLER_REPLICAS: this; that"}},
		"liveBlind": {with(func(s *Situation) { s.OwnersUnknown = "pods are silent" }),
			verdictOn{"followUp followOut failOver sizeUp sizeDown sizeRestart", "rollout.live waits", "LiveNotReady: rollout.live begins nothing but a failover to replicas that say what they own: pods are silent"}},
		"renumbered": {with(func(s *Situation) { s.Renumbered = true }),
			verdictOn{"followUp followOut sizeUp sizeDown", "the pods are no replicas from 0", ""}},
		"shardAhead": {with(func(s *Situation) { s.ShardAhead = true }),
			verdictOn{"followUp followOut failOver sizeUp sizeDown", "each pod that starts from now on would take itself for the same replica", ""}},
		"onlyReplica0": {with(func(s *Situation) { s.OnlyReplica0 = true }),
			verdictOn{"setEnv followUp followOut failOver drain sizeUp sizeDown sizeRestart",
				"each pod of another replica would take itself for replica 0", ""}},
		"scaledDeployment": {with(func(s *Situation) { s.Scaled = "pods read their number once" }),
			verdictOn{"followOut failOver sizeUp sizeDown", "an autoscaler's Deployment", "ScaledDeployment: pods read their number once"}},
		"fault": {with(func(s *Situation) { s.Fault = "a cluster has two owners" }),
			verdictOn{"setEnv followUp followOut pinOut rollBack failOver drain sizeUp sizeDown sizeRestart", "a cluster has two owners", ""}},
		"changeMoves": {with(func(s *Situation) { s.MoveBlock = "change.moves: the mode is Off (UpdatePolicy)" }),
			verdictOn{"setEnv followUp followOut pinOut rollBack failOver drain sizeUp sizeDown sizeRestart", "change.moves: the mode is Off (UpdatePolicy)", ""}},
		"restartWaits": {with(func(s *Situation) { s.Restart = "for a change" }),
			verdictOn{"followUp followOut failOver drain sizeUp sizeDown sizeRestart", RestartWaits, "RestartWaits: for a change"}},
		"mode":      {with(func(s *Situation) { s.Mode = plan.Hold }), verdictOn{"", "the mode is Hold", ""}},
		"underWay":  {with(func(s *Situation) { s.UnderWay = true }), verdictOn{"sizeUp", "a rollout is under way", ""}},
		"stopAgain": {with(func(s *Situation) { s.StopAgain = "waits until dawn" }), verdictOn{all, "", "stopAll HeldOff: waits until dawn"}},
		"restartAgain": {with(func(s *Situation) { s.RestartAgain = "waits until noon" }),
			verdictOn{all, "", "restartAll RestartWaits: waits until noon"}},
		"unmanaged": {with(func(s *Situation) { s.Unmanaged = true }),
			verdictOn{all, "", "workload WorkloadUnmanaged: the workload is annotated as unmanaged, and nothing begins that changes its replicas or its env or restarts it; " +
				"take the annotation ballast.argoproj.io/unmanaged off for what waits"}},
		"containerGone": {with(func(s *Situation) { s.ContainerGone = true }),
			verdictOn{all, "", "workload ContainerGone: the pod template has no container that is the application-controller's, and nothing begins " +
				"that changes its replicas or its env or restarts it until it has one again"}},
		"unenforced": {with(func(s *Situation) { s.Unenforced = true }), verdictOn{all, "", "scale: the webhook does not hold the plan"}},
	}
}

// wrong says where a table of gates differs from what is expected of it; empty for nowhere.
func wrong(table []gate) string {
	for name, c := range gated() {
		if diff := cmp.Diff(c.want, judged(table, c.Situation)); diff != "" {
			return fmt.Sprintf("%s (-want +got):\n%s", name, diff)
		}
	}
	return ""
}

func TestEachGateBlocksWhatItsRowSays(t *testing.T) {
	if diff := wrong(Table()); diff != "" {
		t.Error(diff)
	}
	for _, g := range Table() {
		if _, there := gated()[g.Name]; !there {
			t.Errorf("gate %s has no situation in this test", g.Name)
		}
	}
}

// Every cell of the table is tried the other way round: a gate that blocks one action more, or one less, is found.
func TestNoCellOfTheGatesCanBeSwitchedUnseen(t *testing.T) {
	for at, g := range Table() {
		for act, name := range actions() {
			table := Table()
			table[at].Blocks ^= act
			if wrong(table) == "" {
				t.Errorf("%s of gate %s was switched, and no row of the test fails", name, g.Name)
			}
		}
		table := slices.Delete(Table(), at, at+1)
		if wrong(table) == "" {
			t.Errorf("gate %s was taken out, and no row of the test fails", g.Name)
		}
	}
}

// The first gate that is shut is named, and people are told once what has one cause.
func TestTheFirstGateThatIsShutIsNamed(t *testing.T) {
	all := Situation{Paused: true, Mode: plan.Enforce, Unstamped: []string{"a"}, Missing: []string{"this"}, OwnersUnknown: "pods are silent"}
	want := verdictOn{"failOver", "a person paused it; present owners are written; rollout.live waits", ""}
	got := judged(Table(), all)
	want.Told = `Unstamped a: 1 Secret without the replica that owns its cluster now, the first is "a": present owners are written before anything else begins but a failover, a drain and what follows the workload's replicas; ` +
		"LiveNotReady: rollout.live begins nothing but a failover to replicas that say what they own: pods are silent"
	want.May = "followUp followOut"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	quiet := all
	quiet.UnderWay = true
	if got := judged(Table(), quiet); got.Told != "" {
		t.Errorf("under way people are told %q", got.Told)
	}
}

// What sizes wait for beside the table, by value: each of its cells stands here, as those of the table do above.
func TestSizesWaitForARolloutThatBeganAndOnAnUnmanagedWorkload(t *testing.T) {
	const noSize = "setEnv followUp followOut pinOut rollBack failOver drain balance"
	frozenBefore := Judge(Table(), Situation{Mode: plan.Enforce, Paused: true}, func(problem.Problem) {})
	for name, c := range map[string]struct {
		before           Verdicts
		begun, unmanaged bool
		want             verdictOn
	}{
		"neither":       {want: verdictOn{May: noSize + " sizeUp sizeDown sizeRestart"}},
		"a rollout":     {begun: true, want: verdictOn{May: "sizeUp", Because: "a rollout is under way"}},
		"unmanaged":     {unmanaged: true, want: verdictOn{May: noSize, Because: "the workload is annotated as unmanaged"}},
		"both":          {begun: true, unmanaged: true, want: verdictOn{Because: "a rollout is under way; the workload is annotated as unmanaged"}},
		"frozen before": {before: frozenBefore, want: verdictOn{May: "followUp followOut rollBack drain", Because: "a person paused it"}},
		"frozen before, and unmanaged": {before: frozenBefore, unmanaged: true,
			want: verdictOn{May: "followUp followOut rollBack drain", Because: "a person paused it"}},
	} {
		if diff := cmp.Diff(c.want, verdicts(c.before.ForSizes(c.begun, c.unmanaged))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(verdictOn{May: "followUp followOut rollBack drain", Because: "a person paused it"}, verdicts(frozenBefore)); diff != "" {
		t.Errorf("the verdicts of before anything began changed with it (-want +got):\n%s", diff)
	}
	underWay := Judge(Table(), Situation{Mode: plan.Enforce, UnderWay: true}, func(problem.Problem) {})
	if diff := cmp.Diff(underWay, Verdicts{}.ForSizes(true, false)); diff != "" {
		t.Errorf("a rollout that began keeps others from changing than one that is under way (-was +begun):\n%s", diff)
	}
}
