package life

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/memory"
	"ballast/planner/plan"
)

// backup is what a tool that backs up Argo CD's namespace has of ballast: the plan with its history, and what people wrote
// beside it.
type backup struct {
	at      time.Time
	plan    plan.Plan
	history []plan.Plan
	parts   map[string][]byte

	pins            plan.Pins
	paused, glass   bool
	tripped, cordon string
}

func (l *Life) backup() (backup, error) {
	parts, stale := l.memory.Parts(l.parts)
	if len(stale) > 0 {
		return backup{}, fmt.Errorf("packing the memory: %w", stale[0])
	}
	return backup{at: l.Now, plan: l.Plan.Clone(), history: slices.Clone(l.History), parts: parts,
		pins: maps.Clone(l.Pins), paused: l.Paused, glass: l.Glass, tripped: l.Tripped, cordon: l.Cordon}, nil
}

// restore puts all of it back under a new leader, which knows nothing else.
func (l *Life) restore(b backup) error {
	m, dropped := memory.Of(b.parts)
	if len(dropped) > 0 {
		return fmt.Errorf("reading the memory: %w", dropped[0])
	}
	p := b.plan.Clone()
	l.Began = &p
	l.Plan, l.History, l.memory, l.saved, l.parts = &p, slices.Clone(b.history), m, m, b.parts
	l.Pins, l.Paused, l.Glass, l.Tripped, l.Cordon, l.Rollback = maps.Clone(b.pins), b.paused, b.glass, b.tripped, b.cordon, nil
	l.begunAnew()
	return nil
}

// lose takes the plan and its history away together, with what people wrote beside them.
func (l *Life) lose() {
	l.Began = nil
	l.Plan, l.History, l.memory, l.saved, l.parts = nil, nil, memory.Memory{}, memory.Memory{}, nil
	l.Pins, l.Paused, l.Glass, l.Tripped, l.Cordon, l.Rollback = nil, false, false, "", "", nil
	l.begunAnew()
}

// begunAnew has a new leader decide before anything is repaired.
func (l *Life) begunAnew() {
	l.given, l.nudged = map[string]bool{}, map[string]time.Time{}
	l.next = l.Now
	l.Counts["elections"]++
	l.Counts["begun anew"]++
}

// saves takes a backup.
func (l *luck) saves() error {
	if l.Plan == nil {
		return nil
	}
	b, err := l.backup()
	l.backed, l.later = &b, false
	if l.onSave != nil {
		l.onSave()
	}
	l.note("a backup of plan %d, rollout %+v", b.plan.Revision, b.plan.Rollout)
	return err
}

// savesLater takes the one that is to be of the middle of a rollout.
func (l *luck) savesLater() error {
	if !l.later || l.Plan == nil || l.Plan.Rollout == nil {
		return nil
	}
	return l.saves()
}

// anew is when everything was put back or lost together, and how many replicas there were.
type anew struct {
	times    int // of Counts["begun anew"]
	at       time.Time
	replicas int
}

// soon is how long nothing is decided after that: ten votes take longer.
const soon = 8 * time.Minute

// known is what ballast remembers of moves, which a backup has too.
type known struct {
	budget    budget
	receivers receivers
}

// knows is what ballast remembers now.
func (j *judge) knows() known { return known{j.budget.clone(), j.receivers.clone()} }

// begunAnew knows what the leader does: of a backup the moves that were made before it, and nothing where all is lost. The first
// plan is judged beside the one that was put back. It stops no fleet that runs.
func (j *judge) begunAnew() {
	if n := j.Counts["begun anew"]; n != j.anew.times {
		j.anew = anew{n, j.Now, j.Replicas}
		moves, servers, looked := j.budget.counted, j.budget.servers, j.budget.looked
		j.before, j.budget, j.receivers = j.Began, budget{looked: looked}, receivers{}
		if j.before != nil {
			j.highest = j.before.Revision
			was := known{j.saved.budget.clone(), j.saved.receivers.clone()}
			j.budget, j.receivers = was.budget, was.receivers
			servers = append(servers, counted{j.Now, j.serversOf(*j.before), j.largest()}) // what went meanwhile is not believed at once
		}
		j.budget.counted, j.budget.servers = moves, servers
	}
	stops := j.anew.replicas > 0 && j.Replicas == 0 && !j.byRule()
	if stops && j.Now.Sub(j.anew.at) < soon {
		j.fail("%d replicas were stopped %s after the plan and its history were put back or lost", j.anew.replicas, j.Now.Sub(j.anew.at))
	}
	j.stopsOnceADay()
}

// byRule reports whether what is under way is what a person's rule asks for (a group, a cap): no vote is waited for.
func (j *judge) byRule() bool { return strings.Contains(j.memory.Changes.Why, "a rule asks for ") }

// stopsOnceADay: what ballast decides by itself stops the fleet once in change.restarts.every, whatever was lost or put back. A backup
// of just now is taken for what the last leader knew.
func (j *judge) stopsOnceADay() {
	s, stands := &j.stops, j.Replicas == 0
	if n := j.Counts["begun anew"]; n != s.times {
		if s.times = n; j.Began != nil && j.Now.Sub(j.backed.at) < newBackup {
			s.at = time.Time{}
		}
	}
	if stands && !s.stood {
		every, since := time.Duration(j.Config.Change.Restarts.Every), j.leaders().Sub(s.at)
		if j.levels() && since < every-lateStop {
			j.fail("every replica is stopped %s after the last time: %s", since, j.memory.Changes.Why)
		}
		s.at = j.Now
	}
	s.stood = stands
}

// newBackup is how old a backup is at most that nobody can tell from what the last leader left.
const newBackup = 3 * time.Minute

// lateStop is how long after its beginning a rollout may stop the fleet: writes get lost.
const lateStop = 5 * time.Minute

// levels reports whether what is under way is what ballast decides by itself, and no env that gives clusters several owners.
func (j *judge) levels() bool {
	m := j.memory.Changes
	return m.Cause == change.Balance && !strings.Contains(m.Why, "it gives clusters several owners")
}

// stops is when every replica was stopped last.
type stops struct {
	times int // of Counts["begun anew"]
	at    time.Time
	stood bool
}

// serversOf is how many servers a plan has.
func (j *judge) serversOf(p plan.Plan) (n int) {
	for name := range p.Clusters {
		if j.First(name) == name {
			n++
		}
	}
	return n
}

// TestTheJudgeKnowsWhatABackupKnows: the moves of a failover, whose hour it is, and the plan beside which the first one is judged; and
// nothing of that where plan and history are lost.
func TestTheJudgeKnowsWhatABackupKnows(t *testing.T) {
	l, j := twinned(t, configuration())
	l.Pass(2 * time.Hour)
	l.Broken[2] = true
	l.Pass(20 * time.Minute)
	moved, at := len(j.budget.moved[change.Failover]), j.budget.at
	if moved == 0 || j.budget.emptied != 2 {
		t.Fatalf("%d clusters were failed over, last off replica %d", moved, j.budget.emptied)
	}
	if err := l.saves(); err != nil {
		t.Fatal(err)
	}
	delete(l.Broken, 2)
	for _, name := range []string{"c02", "c03", "c04"} {
		l.Retire(name)
	}
	l.Pass(2 * time.Hour)
	l.dies(1)
	l.Pass(20 * time.Minute)
	if n := len(j.budget.moved[change.Failover]); n <= moved || j.budget.emptied != 1 {
		t.Fatalf("%d clusters were failed over so far, last off replica %d, want more than %d", n, j.budget.emptied, moved)
	}
	if most := j.share(100); most != 7 {
		t.Fatalf("%d servers within two hours, want 7", most)
	}
	if err := l.restore(*l.backed); err != nil {
		t.Fatal(err)
	}
	j.begunAnew()
	if n := len(j.budget.moved[change.Failover]); n != moved || j.budget.emptied != 2 || !j.budget.at.Equal(at) {
		t.Errorf("put back: %d clusters failed over, last off replica %d at %s, want %d, 2 and %s", n, j.budget.emptied, j.budget.at, moved, at)
	}
	if j.before == nil || j.before.Revision != l.backed.plan.Revision || j.share(100) != 10 {
		t.Errorf("put back: the first plan is judged beside %+v, by %d servers, want revision %d and 10", j.before, j.share(100), l.backed.plan.Revision)
	}
	l.lose()
	j.begunAnew()
	if n := len(j.budget.moved[change.Failover]); n != 0 || j.before != nil {
		t.Errorf("lost: %d clusters failed over, the plan before is %+v", n, j.before)
	}
}
