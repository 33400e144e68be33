package transitions

import (
	"cmp"
	"maps"
	"math"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/diff"
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/rollout/basis"
	"ballast/planner/rollout/readiness"
)

// rest lets cycles pass until nothing is left to do.
func (l *life) rest() {
	l.Helper()
	for range mostCycles {
		if l.cycle(); l.settled() {
			return
		}
	}
	l.Fatalf("not done after %d cycles: plan %+v, left %+v; %s", mostCycles, l.plan, diff.Between(plan.NewView(l.plan, l.pins), l.seen(), diff.Options{}), l)
}

// mostCycles is how long a transition may take. A stage that passes its deadline of 10 minutes takes 120 cycles of 5 s.
const mostCycles = 1000

// transition takes one decision into force. Nothing happens to every second one but lost writes: those end as decided.
func (l *life) transition() {
	l.Helper()
	from := l.plan.Clone()
	want := l.drawWant()
	quiet := rapid.Bool().Draw(l.T, "quiet")
	l.o = l.drawOptions(quiet)
	if missing := readiness.Missing(l.plan, l.seen()); len(missing) > 0 {
		l.Fatalf("a fleet between two transitions lacks %q", missing)
	}
	begun, err := rollout.Begin(l.plan, want, l.o, l.now)
	if err != nil {
		l.Fatal(err)
	}
	if begun.Rollout == nil {
		l.Fatalf("nothing begins: %+v", want)
	}
	replaced := l.figures.replaced
	l.began = map[string]int{}
	for name, s := range l.secrets {
		l.began[name] = len(s.versions)
	}
	l.constant = begun.Rollout.ControllerReplicas == l.plan.ControllerReplicas
	l.plan, l.target = l.stored(begun), map[string]int{}
	for name, row := range want.Rows {
		l.target[name] = row.Replica
	}
	if !quiet {
		l.disturb(rapid.IntRange(1, 40).Draw(l.T, "disturbed"))
	}
	l.rest()
	if l.constant && l.figures.replaced != replaced {
		l.Fatalf("pods were replaced, though the environment is what mode live holds it at; %s", l)
	}
	if l.plan.Replicas != from.Replicas && l.plan.Replicas != want.Replicas {
		l.Fatalf("it ends at %d replicas, neither %d nor %d; %s", l.plan.Replicas, from.Replicas, want.Replicas, l)
	}
	if quiet {
		l.endsAs(want)
	}
	l.forget()
	l.figures.transitions[direction(from.Replicas, want.Replicas)]++
}

func (l *life) drawOptions(quiet bool) basis.Options {
	o := basis.Options{Mode: plan.ModeLive, StageTimeout: 24 * time.Hour, MaxMovesPerWave: rapid.IntRange(1, 6).Draw(l.T, "per wave"), Budget: math.MaxInt}
	if !quiet {
		o.StageTimeout = rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute}).Draw(l.T, "timeout")
	}
	return o
}

func direction(from, to int) string {
	return []string{"shrink", "level", "grow"}[1+cmp.Compare(to, from)]
}

// endsAs: with every pod having seen all, each cluster is the one pod's that was wanted.
func (l *life) endsAs(want rollout.Proposal) {
	got, owners := map[string]int{}, map[string][]int{}
	for name, row := range want.Rows {
		got[name], owners[name] = l.secrets[name].stands().owner, []int{row.Replica}
	}
	if diff := gocmp.Diff(l.target, got) + gocmp.Diff(want.Replicas, l.replicas); diff != "" {
		l.Fatalf("shards and replicas at the end (-want +got):\n%s", diff)
	}
	for name := range owners {
		if diff := gocmp.Diff(owners[name], l.owners[l.secrets[name].stamp.Server]); diff != "" {
			l.Fatalf("owners of %q at the end (-want +got):\n%s", name, diff)
		}
	}
}

// drawWant draws a decision that changes something: grow, shrink or level, and some of the clusters elsewhere. It keeps to
// the pins and gives the Secrets of one server one replica, as the planner does.
func (l *life) drawWant() rollout.Proposal {
	if l.oneIn(3, "unpin") {
		l.pins = plan.Pins{}
	}
	now := l.plan.Replicas
	to := rapid.IntRange(1, mostReplicas-1).Draw(l.T, "to")
	switch {
	case now > 1 && l.oneIn(3, "level"):
		to = now
	case to >= now:
		to++
	}
	rows := l.drawRows(to)
	if to == now && len(rollout.Moves(l.plan, plan.Plan{Clusters: rows})) == 0 {
		to = now%mostReplicas + 1
		rows = l.drawRows(to)
	}
	return rollout.Proposal{Replicas: to, Rows: rows}
}

// drawRows draws where the clusters go, of that many replicas.
func (l *life) drawRows(replicas int) map[string]plan.Row {
	rows := maps.Clone(l.plan.Clusters)
	for _, s := range l.servers() {
		for i, secret := range s.secrets {
			name := secret.stamp.Name
			row := rows[name]
			switch pin, pinned := l.pins[name]; {
			case pinned && pin < replicas:
				row.Replica = pin
			case i > 0:
				row.Replica = rows[s.secrets[0].stamp.Name].Replica
			case row.Replica >= replicas || l.oneIn(2, "moves"):
				row.Replica = rapid.IntRange(0, replicas-1).Draw(l.T, "onto")
			}
			row.Load = l.drawLoad()
			rows[name] = row
		}
	}
	return rows
}
