package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/config"
	"ballast/planner/controller"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// noConfigMaps is a quota by which no ConfigMap of the namespace is made any more. No controller runs here that counts: its status is
// the test's.
func (b *bed) noConfigMaps() *corev1.ResourceQuota {
	b.Helper()
	none := corev1.ResourceList{"configmaps": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "none"}}
	quota.Spec.Hard = none
	b.must(b.api.Create(b.ctx, quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	b.must(b.api.Status().Update(b.ctx, quota))
	b.eventually("the quota holds", func() bool { return apierrors.IsForbidden(b.makesAConfigMap()) })
	return quota
}

func (b *bed) makesAConfigMap() error {
	return b.api.Create(b.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "x"}}, client.DryRunAll)
}

func (b *bed) lift(quota *corev1.ResourceQuota) {
	b.Helper()
	b.must(b.api.Delete(b.ctx, quota))
	b.eventually("the quota is gone", func() bool { return b.makesAConfigMap() == nil })
}

func (b *bed) gone(name string) {
	b.Helper()
	b.must(b.client.Delete(b.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}))
}

// TestAStoppedFleetComesBackThoughItsPlanCannotBeMadeAnew: somebody deletes the plan ConfigMap while rollout.x0y has stopped every replica,
// under a quota by which it is not made again. Once it may be, the plan is that of the replicas that there are, and what was wanted comes.
func TestAStoppedFleetComesBackThoughItsPlanCannotBeMadeAnew(t *testing.T) {
	b := newBed(t, anyServer.Start(t), plan.Enforce, 3, 2, 1)
	b.config.Rollout.Live, b.config.Rollout.Default = nil, nil
	b.config.Rollout.X0Y = &config.X0YRollout{}
	l, end := b.start()
	b.cycles(l, 2)
	b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "c000: 3\n" })
	for range 10 {
		if b.plan().Replicas == 0 {
			break
		}
		b.cycles(l, 1)
	}
	if runs := *b.workload().Spec.Replicas; b.plan().Replicas != 0 || runs != 0 {
		t.Fatalf("nothing stopped the fleet: a plan of %d, and %d run", b.plan().Replicas, runs)
	}
	quota := b.noConfigMaps()
	b.gone(b.config.Plan.ConfigMap)
	b.cycles(l, 2)
	if runs := *b.workload().Spec.Replicas; runs != 3 {
		t.Errorf("%d replicas run, want the 3 of before the stop", runs)
	}
	b.cycles(l, 3)
	if told := b.told("BroughtBackUnwritten"); len(told) != 1 || !strings.Contains(told[0], "Forbidden") {
		t.Errorf("people were told %q", told)
	}
	if runs := *b.workload().Spec.Replicas; runs != 3 {
		t.Errorf("%d replicas run, want 3 as long as nothing can be planned", runs)
	}
	end()
	l, _ = b.start() // another leader knows of the history alone
	b.cycles(l, 2)
	if runs := *b.workload().Spec.Replicas; runs != 3 {
		t.Errorf("%d replicas run under the next leader, want 3", runs)
	}
	b.lift(quota)
	for range 90 {
		if b.cycles(l, 1); b.plan().Replicas == 4 && b.plan().Rollout == nil {
			break
		}
	}
	if p, runs := b.plan(), *b.workload().Spec.Replicas; runs != 4 || p.Replicas != 4 || p.Rollout != nil {
		t.Errorf("%d replicas run and the plan has %d, rollout %v: want the pin's 4", runs, p.Replicas, p.Rollout)
	}
}

// mortal is a fleet of which a replica may die, with the default limits of moves.
type mortal struct {
	*bed
	loop *controller.Loop
	dead int
}

func newMortal(t *testing.T) *mortal {
	t.Helper()
	m := &mortal{bed: newBed(t, anyServer.Start(t), plan.Enforce, 3, 2, 1, 1), dead: -1}
	m.config.Failover = &config.Failover{After: config.Duration(5 * time.Minute), Settle: config.Duration(5 * time.Minute)}
	m.config.Change.Moves.Rate = config.Default().Change.Moves.Rate
	m.loop = m.newLoop()
	m.loop.Observe = func(context.Context, poll.Fetcher, discover.Workload, discover.Fleet) (input.Observed, []scrape.PodReport) {
		o := input.Observed{Known: true, Reported: ownership.Observation{Asked: true}}
		for r := range 3 {
			if r != m.dead {
				name := "argocd-application-controller-" + string(rune('0'+r))
				o.Pods = append(o.Pods, observed.Pod{Replica: r, Name: name, Ready: true, Claimed: true, Answered: true})
			}
		}
		return o, nil
	}
	return m
}

func (m *mortal) once(n int) {
	m.Helper()
	for range n {
		_, err := m.loop.Once(m.ctx)
		m.log(err)
		m.clock.Step(time.Duration(m.config.Interval))
	}
}

// on are the clusters that a replica has by the plan.
func (m *mortal) on(replica int) (names []string) {
	m.Helper()
	for name, row := range m.plan().Clusters {
		if row.Replica == replica {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestClustersFailOverThoughTheHistoryCannotBeMadeAnew: somebody deletes the history under a quota by which it is not made again. A dead
// replica's clusters leave it all the same, once.
func TestClustersFailOverThoughTheHistoryCannotBeMadeAnew(t *testing.T) {
	b := newMortal(t)
	b.once(3)
	b.dead = b.plan().Clusters["c000"].Replica
	b.noConfigMaps()
	b.gone(b.config.Plan.History)
	b.once(15)
	if left := b.on(b.dead); len(left) > 0 {
		t.Errorf("the dead replica %d still has %q", b.dead, left)
	}
	if told := b.told("HistoryRefused"); len(told) != 1 || !strings.Contains(told[0], "Forbidden") {
		t.Errorf("people were told %q", told)
	}
	revision := b.plan().Revision
	b.once(20)
	if now := b.plan().Revision; now > revision+2 {
		t.Errorf("revision %d after %d: it goes on and on", now, revision)
	}
}

// emptied has somebody delete the history and make an empty one in its place, which anybody may.
func (b *bed) emptied(locked bool) {
	b.Helper()
	b.gone(b.config.Plan.History)
	empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: b.config.Plan.History}}
	if locked {
		empty.Immutable = &locked
	}
	b.must(b.client.Create(b.ctx, empty))
}

// TestClustersFailOverWhateverSomebodyMakesOfTheHistory: they delete it and make an empty one, before each write of the planner's, or once
// and immutable. A dead replica's clusters leave it all the same, once.
func TestClustersFailOverWhateverSomebodyMakesOfTheHistory(t *testing.T) {
	for name, locked := range map[string]bool{"faster than it is written": false, "immutable": true} {
		t.Run(name, func(t *testing.T) {
			b := newMortal(t)
			b.once(3)
			b.dead = b.plan().Clusters["c000"].Replica
			if locked {
				b.emptied(true)
			} else {
				b.meddle = map[string]func(int){"patch " + b.config.Plan.History: func(int) { b.emptied(false) }}
			}
			b.once(15)
			if left := b.on(b.dead); len(left) > 0 {
				t.Errorf("the dead replica %d still has %q", b.dead, left)
			}
			revision := b.plan().Revision
			b.once(20)
			if now := b.plan().Revision; now > revision+2 {
				t.Errorf("revision %d after %d: it goes on and on", now, revision)
			}
		})
	}
}

// TestAnEmptyHistoryIsWrittenOverAtOnce, two times in a row, too, so that what a decision limits is saved before its plan. One that says
// something is another leader's: that race is lost.
func TestAnEmptyHistoryIsWrittenOverAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		meddled int
		meddles func(*bed)
		unsaved int
	}{
		"an empty one":     {2, func(b *bed) { b.emptied(false) }, 0},
		"none":             {1, func(b *bed) { b.gone(b.config.Plan.History) }, 0},
		"another leader's": {1, func(b *bed) { b.remember(func(*memory.Memory) {}) }, 1},
		"without end":      {1000, func(b *bed) { b.emptied(false) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, anyServer.Start(t), plan.Enforce, 3, 2, 1)
			b.config.Rollout.Live, b.config.Rollout.Default = nil, nil
			b.config.Rollout.X0Y = &config.X0YRollout{}
			l, _ := b.start()
			b.cycles(l, 2)
			b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "c000: 3\n" })
			left := c.meddled
			b.meddle = map[string]func(int){"patch " + b.config.Plan.History: func(int) {
				if left--; left >= 0 {
					c.meddles(b)
				}
			}}
			b.cycles(l, 1)
			if unsaved := b.logs("what a decision limits is not saved before it"); unsaved != c.unsaved || b.plan().Rollout == nil {
				t.Errorf("a restart was not saved before the plan %d times, want %d; the rollout is %+v", unsaved, c.unsaved, b.plan().Rollout)
			}
		})
	}
}

func (b *bed) log(err error) {
	b.Helper()
	if err != nil {
		b.Log(err)
	}
}
