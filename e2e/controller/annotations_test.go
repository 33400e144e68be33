package controller_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/config"
	"ballast/planner/controller"
	"ballast/planner/cycle/memory"
	"ballast/planner/plan"
)

// TestAsks runs what people and the leader say to each other on the plan ConfigMap against one real API server.
func TestAsks(t *testing.T) {
	server := anyServer.Start(t)
	for name, run := range map[string]func(*testing.T, *rest.Config){
		"a rollback that takes more plans than are kept ends in the earlier one": goesBackForDays,
		"it stays stopped until a person clears it, under the next leader, too":  staysTripped,
		"a repair counts once, also where the plan could not be written":         countsRepairs,
	} {
		t.Run(name, func(t *testing.T) { run(t, server) })
	}
}

// goesBackForDays: the shipped budget lets 17 of 24 clusters move in a little more than two days, and each hour leaves a plan.
func goesBackForDays(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Enforce, lognormal(5, 24)...)
	b.config.Evaluate.MostWanted.MinSamples = 10000
	b.config.Interval = config.Duration(20 * time.Minute)
	first, end := b.start()
	b.eventually("the Secrets are stamped", func() bool { return cmp.Equal(b.planned(), b.shards()) })
	b.idle(first)
	earlier := b.planned()
	names := slices.Sorted(maps.Keys(earlier))[:17]
	b.edit(func(cm *corev1.ConfigMap) {
		var pins strings.Builder
		for _, name := range names { // a person moves them, and then wants them back
			was, _ := strconv.Atoi(earlier[name])
			pins.WriteString(name + ": " + strconv.Itoa((was+1)%3) + "\n")
		}
		cm.Data[plan.KeyPins] = pins.String()
	})
	b.cycles(first, 2)
	b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "" })
	b.cycles(first, 1)
	if cmp.Equal(earlier, b.shards()) {
		t.Fatal("the test itself failed: nothing was moved")
	}
	end()
	b.remember(func(m *memory.Memory) { m.Changes.Ledger = nil })
	b.config.Change.Moves.Rate = config.Default().Change.Moves.Rate
	b.edit(func(cm *corev1.ConfigMap) { annotate(cm, plan.AnnotationRollback, "1") })
	from, began := b.plan().Revision, b.clock.Now()
	l, end := b.start()
	asked := func() bool { return b.planMap().Annotations[plan.AnnotationRollback] != "" }
	for asked() && b.clock.Since(began) < 4*24*time.Hour {
		b.cycles(l, 1)
		if took := b.clock.Since(began); took == 24*time.Hour { // a leader comes who knows only what was saved
			end()
			l, end = b.start()
		}
	}
	if diff := cmp.Diff(earlier, b.shards()); diff != "" || asked() {
		t.Errorf("after %s (-earlier +Secrets), events %q:\n%s", b.clock.Since(began), b.told("RollbackRefused"), diff)
	}
	if n := b.plan().Revision - from; n < 18 || n > 24 {
		t.Errorf("it took %d plans: the test itself wants more than are kept, and few of them for nothing", n)
	}
	if took := b.clock.Since(began); took < 48*time.Hour {
		t.Errorf("it took %s: the budget did not hold", took)
	}
}

// staysTripped: the annotation is the leader's word that it stopped, and its absence a person's that it may go on.
func staysTripped(t *testing.T, server *rest.Config) {
	b := newLopsidedBed(t, server, lognormal(5, 24)...)
	b.config.Evaluate = config.Evaluate{None: &config.None{}}
	why := `cluster "c003" has no owner, 30s after cluster "c001" moved`
	l := b.frozen()
	tripped := func() string { return b.planMap().Annotations[plan.AnnotationTripped] }
	revision := b.plan().Revision
	l.end()
	b.remember(func(m *memory.Memory) {
		m.Changes.Trip = &harm.Trip{At: b.clock.Now(), Reason: harm.Orphaned, Why: why}
	})
	b.fail("patch ballast-plan", errors.New("the API server is away"))
	b.thaw()
	l = b.leader()
	if tripped() != "" || b.saved().Changes.TripTold {
		t.Fatalf("what could not be written counts as told: %q", tripped())
	}
	b.fail("patch ballast-plan", nil)
	b.cycles(l.loop, 1)
	if got, told := tripped(), b.saved().Changes.TripTold; got != why || !told {
		t.Fatalf("the annotation is %q, told %t; want %q", got, told, why)
	}
	l.end()
	l = b.leader() // one who knows only what was saved
	b.cycles(l.loop, 20)
	if p := b.plan(); p.Revision != revision || p.Rollout != nil || tripped() != why {
		t.Errorf("it went on: revision %d instead of %d, %q", p.Revision, revision, tripped())
	}
	l.end()
	b.edit(func(cm *corev1.ConfigMap) { delete(cm.Annotations, plan.AnnotationTripped) }) // while nobody leads
	l = b.leader()
	b.cycles(l.loop, 3)
	if m := b.saved().Changes; m.Trip != nil || m.TripTold || tripped() != "" {
		t.Errorf("a person cleared it: trip %+v, told %t, %q", m.Trip, m.TripTold, tripped())
	}
	if b.plan().Revision == revision {
		t.Error("nothing begins after a person cleared it")
	}
	if got := b.told("Tripped"); len(got) != 2 || !strings.Contains(got[0], why) {
		t.Errorf("Tripped events %q, want one of each leader", got)
	}
}

// countsRepairs: for Argo CD a cluster that is put back moved, and the budget of everything else is smaller by it.
func countsRepairs(t *testing.T, server *rest.Config) {
	b, l, own, other := stamped(t, server)
	b.config.Change.Moves.Rate = config.Default().Change.Moves.Rate
	b.stamp("c000", other, "somebody")
	l.Changed()
	b.eventually("it is put back", func() bool { return b.shards()["c000"] == own })
	b.addCluster("new", 5) // what the next cycle wants to write
	b.fail("patch ballast-plan", errors.New("the API server is away"))
	b.quieten(l)
	b.eventually("it cannot be written", func() bool { return b.tried("patch ballast-plan") > 0 })
	b.idle(l)
	if got := testutil.ToFloat64(l.Metrics.Moved.WithLabelValues(string(change.Healing))); got != 0 || len(b.saved().Changes.Ledger) != 0 {
		t.Errorf("%g moves counted and the ledger %v, though nothing was written", got, b.saved().Changes.Ledger)
	}
	b.fail("patch ballast-plan", nil)
	b.cycles(l, 3)
	total := 0
	for _, r := range b.saved().Changes.Ledger {
		if total += r.Moves; r.Cause != change.Healing {
			t.Errorf("the ledger has %+v", r)
		}
	}
	if got := testutil.ToFloat64(l.Metrics.Moved.WithLabelValues(string(change.Healing))); got != 1 || total != 1 {
		t.Errorf("%g moves counted, %d in the ledger; want 1 and 1", got, total)
	}
}

// leading is a loop that leads, until it ends.
type leading struct {
	loop *controller.Loop
	end  func()
}

func (b *bed) leader() leading {
	b.Helper()
	l, end := b.start()
	return leading{l, end}
}

// frozen is a leader of a fleet that is stamped and frozen.
func (b *bed) frozen() leading {
	b.Helper()
	mode := b.config.Mode
	b.config.Mode = plan.Hold
	l := b.leader()
	b.eventually("the Secrets are stamped", func() bool { return cmp.Equal(b.planned(), b.shards()) })
	b.idle(l.loop)
	b.edit(func(cm *corev1.ConfigMap) { annotate(cm, plan.AnnotationPaused, "true") })
	b.config.Mode = mode
	b.cycles(l.loop, 2)
	return l
}

func (b *bed) thaw() {
	b.Helper()
	b.edit(func(cm *corev1.ConfigMap) { delete(cm.Annotations, plan.AnnotationPaused) })
}
