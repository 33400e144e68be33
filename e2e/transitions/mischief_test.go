package transitions

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"pgregory.net/rapid"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// disturb lets things happen for so many cycles, and then mends what is broken: an hour has passed.
func (l *life) disturb(cycles int) {
	for range cycles {
		l.mischief()
		l.cycle()
		if l.plan.Rollout == nil {
			break
		}
	}
	l.trouble, l.slow, l.apps.away, l.plan.Mode, l.o.Budget = calm, 0, false, plan.Enforce, math.MaxInt
	l.forgetRows()
	clear(l.apps.dead)
	for _, p := range l.pods {
		p.memory, p.deaf = 0, false
	}
	for _, s := range l.secrets {
		s.stamp.Unmanaged, s.stamp.Immutable = false, false
	}
	l.restartForgetful()
}

// restartForgetful is what the runbook has people do: processes that saw one of several Secrets of a server go are restarted.
func (l *life) restartForgetful() {
	for _, n := range l.pending() {
		for p := l.pods[n.pod]; l.secrets[n.name].stands().gone && p.sees[n.name] < len(l.secrets[n.name].versions); {
			l.deliver(n)
		}
	}
	for i, p := range l.pods {
		if p.runs && len(p.forgot) > 0 {
			l.crash(i, l.now, false)
		}
	}
}

// mischief is one of the things that happen to fleets, or nothing.
func (l *life) mischief() {
	l.o.Budget = rapid.SampledFrom([]int{math.MaxInt, math.MaxInt, 1, 0}).Draw(l.T, "budget")
	switch rapid.IntRange(0, 7).Draw(l.T, "mischief") {
	case 0:
	case 1, 2, 3:
		l.podsFail()
	case 4, 5, 6:
		l.clustersChange()
	case 7:
		l.plannerFails()
	}
}

func (l *life) podsFail() {
	i := rapid.IntRange(0, len(l.pods)-1).Draw(l.T, "pod")
	switch p := l.pods[i]; rapid.SampledFrom([]string{"crash", "crash", "deaf", "memory", "trouble", "mended", "slow"}).Draw(l.T, "fails") {
	case "crash":
		if p.runs {
			l.crash(i, l.now, rapid.Bool().Draw(l.T, "killed"))
		}
	case "deaf": // its watch hangs
		p.deaf = true
	case "memory":
		p.memory = int64(rapid.SampledFrom([]int{50, 89, 90, 99}).Draw(l.T, "memory"))
	case "trouble":
		l.trouble = rapid.SampledFrom([]trouble{unready, unstarted}).Draw(l.T, "trouble")
	case "mended":
		l.trouble = calm
	case "slow":
		l.slow = rapid.IntRange(0, 5).Draw(l.T, "slow")
	}
}

func (l *life) clustersChange() {
	names := l.anyServer()
	switch rapid.SampledFrom([]string{"pin", "unpin", "person", "person", "dead", "new", "gone", "one of several goes", "opt out"}).Draw(l.T, "changes") {
	case "pin":
		l.pins = maps.Clone(l.pins)
		replica := rapid.IntRange(0, mostReplicas-1).Draw(l.T, "pin")
		for _, name := range names {
			l.pins[name] = replica
		}
	case "unpin":
		l.pins = plan.Pins{}
	case "person":
		l.interfere(names)
	case "dead":
		for _, name := range names {
			l.apps.dead[name] = true
		}
	case "new":
		l.createNew()
	case "gone":
		l.goes(names)
	case "one of several goes":
		several := slices.DeleteFunc(l.servers(), func(s server) bool { return len(s.secrets) < 2 })
		if len(several) > 0 {
			l.goes(several[rapid.IntRange(0, len(several)-1).Draw(l.T, "several")].called())
		}
	case "opt out":
		for _, name := range names {
			stamp := &l.secrets[name].stamp
			stamp.Unmanaged, stamp.Immutable = l.oneIn(2, "is unmanaged"), l.oneIn(2, "is immutable") && l.plan.Clusters[name].Replica == stamp.Shard
		}
	}
}

// goes deletes one of the Secrets of a server.
func (l *life) goes(names []string) {
	name := rapid.SampledFrom(names).Draw(l.T, "goes")
	if name != "in-cluster" && len(l.names()) > 2 {
		l.remove(name)
		l.ask(fmt.Sprintf("%q goes", name))
	}
}

func (l *life) plannerFails() {
	switch rapid.SampledFrom([]string{"leader", "away", "hold", "enforce"}).Draw(l.T, "planner") {
	case "leader":
		l.target = nil
	case "away":
		l.apps.away = !l.apps.away
	case "hold":
		l.plan.Mode = plan.Hold
	case "enforce":
		l.plan.Mode = plan.Enforce
	}
}

// interfere is a person's write while the webhook is away. It is seen before the workload is made smaller: what ballast does
// between seeing and writing is a matter of milliseconds, and no other's write comes in between here.
func (l *life) interfere(names []string) {
	at := l.running() - 1
	if !l.oneIn(3, "to the last replica") {
		at = rapid.IntRange(0, at).Draw(l.T, "person")
	}
	l.past = observed.State{}
	for _, name := range names {
		if s := l.secrets[name]; s.stands().owner != at && !s.stamp.Immutable {
			l.write(name, at)
			l.ask(fmt.Sprintf("a person gives %q to %d", name, at))
		}
	}
}

// createNew makes one Secret, or two of one server, with the shard that the webhook gives them.
func (l *life) createNew() {
	if from := l.plan.Rollout; from != nil && !l.constant && from.From.ControllerReplicas < l.stable() {
		return // see "What is left out"
	}
	l.made++
	server := fmt.Sprintf("https://n%02d:6443", l.made)
	names := []string{fmt.Sprintf("n%02d", l.made), fmt.Sprintf("n%02d-twin", l.made)}
	shard := placement.NewArrivals(plan.NewView(l.plan, l.pins)).Place(server, nobody, nil)
	for _, name := range names[:rapid.IntRange(1, 2).Draw(l.T, "twins")] {
		l.create(name, server, shard)
		l.ask(fmt.Sprintf("%q comes", name))
	}
}

// running is how many replicas a cluster can be given to by hand. Those that a rollout empties are among them until the
// workload is told to lose them; while the environment changes, only those count that every pod knows.
func (l *life) running() int {
	if !l.constant {
		n := l.stable()
		if r := l.plan.Rollout; r != nil && r.From.ControllerReplicas > 1 {
			n = min(n, r.From.ControllerReplicas)
		}
		return n
	}
	n := min(l.replicas, len(l.pods))
	if i := slices.IndexFunc(l.pods[:n], func(p *pod) bool { return !p.ran }); i >= 0 {
		return i
	}
	return n
}

// stable is how many replicas run whatever becomes of the rollout.
func (l *life) stable() int {
	n := l.plan.Replicas
	if r := l.plan.Rollout; r != nil {
		n = min(n, r.From.Replicas, r.Replicas)
	}
	return n
}

// anyServer are the Secrets of one server, rather often of one on the last replica, which a shrinking workload loses.
func (l *life) anyServer() []string {
	servers := slices.DeleteFunc(l.servers(), func(s server) bool { return len(s.secrets) == 0 })
	last := slices.DeleteFunc(slices.Clone(servers), func(s server) bool { return s.secrets[0].stands().owner != l.replicas-1 })
	if len(last) > 0 && l.oneIn(3, "on the last replica") {
		servers = last
	}
	return servers[rapid.IntRange(0, len(servers)-1).Draw(l.T, "server")].called()
}
