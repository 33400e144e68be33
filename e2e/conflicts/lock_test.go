package conflicts_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/apiserver"
	"ballast/planner/conflicts"
)

// instance is one process in an election.
type instance struct {
	*conflicts.Lock
	w       *world
	leading chan struct{} // closed when it leads
	since   time.Time     // when that was
	end     func()        // gives up what it has, and returns when it has ended

	mu   sync.Mutex
	told []string
}

// A Lease lasts long enough for the API server of a busy machine to answer a renewal in time, and its owner's claim for a
// standby to be seen to wait for it.
const (
	leaseDuration = 6 * time.Second
	grace         = 8 * time.Second
)

// enter lets an instance take part in the election until it is ended. A Lease that was given
// up lasts for a second.
func (w *world) enter(self conflicts.Owner, release bool) *instance {
	w.Helper()
	i := &instance{w: w, leading: make(chan struct{})}
	i.Lock = w.lock(self, i)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: i.Lock, LeaseDuration: leaseDuration, RenewDeadline: leaseDuration - time.Second, RetryPeriod: 50 * time.Millisecond, ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { i.since = time.Now(); close(i.leading) }, OnStoppedLeading: func() {}},
	})
	w.must(err)
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() { elector.Run(ctx); close(done) }()
	i.end = sync.OnceFunc(func() { cancel(); <-done })
	w.Cleanup(i.end)
	return i
}

// lock is one that tells i; nil tells nobody.
func (w *world) lock(self conflicts.Owner, i *instance) *conflicts.Lock {
	w.Helper()
	c, err := kubernetes.NewForConfig(w.config)
	w.must(err)
	return conflicts.NewLock(conflicts.LockOptions{Client: c.CoordinationV1(), Lease: types.NamespacedName{Namespace: w.namespace, Name: leaseName}, Self: self, Grace: grace, Now: time.Now,
		Tell: func(refusal string) {
			if i == nil {
				return
			}
			i.mu.Lock()
			defer i.mu.Unlock()
			i.told = append(i.told, refusal)
		}})
}

func (w *world) lease() *coordinationv1.Lease {
	w.Helper()
	var l coordinationv1.Lease
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: leaseName}, &l))
	return &l
}

func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	deadline, tick := time.After(2*time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			w.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

func (i *instance) leads() {
	i.w.Helper()
	select {
	case <-i.leading:
	case <-time.After(2 * time.Minute):
		i.w.Fatalf("%s never leads", i.Identity())
	}
}

func (i *instance) isLeading() bool {
	select {
	case <-i.leading:
		return true
	default:
		return false
	}
}

func (i *instance) saidSoFar() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string{}, i.told...)
}

func electsAStandby(t *testing.T, w *world) {
	leader := w.enter(first, true)
	leader.leads()
	other := first
	other.Identity = "planner-1"
	standby := w.enter(other, true)
	w.eventually("the standby knows the Lease", func() bool { return standby.Ready() == nil })
	if standby.isLeading() || leader.Ready() != nil {
		t.Errorf("standby leads: %t; leader is ready: %v", standby.isLeading(), leader.Ready())
	}
	leader.end()
	standby.leads()
	if got := *w.lease().Spec.HolderIdentity; got != "planner-1" || len(standby.saidSoFar()) > 0 {
		t.Errorf("the Lease is held by %q, and the standby was told %q", got, standby.saidSoFar())
	}
}

// standsByForAnother ends the first installation in both ways: giving up its Lease, and silently.
func standsByForAnother(t *testing.T, w *world) {
	for name, release := range map[string]bool{"given up": true, "silent": false} {
		leader := w.enter(first, release)
		leader.leads()
		stranger := w.enter(second, true)
		held := `Lease "` + w.namespace + "/" + leaseName + `" is held by "planner-0", which plans in ConfigMap "argocd/ballast-plan"`
		w.eventually(name+": the second installation says who leads", func() bool {
			err := stranger.Ready()
			return err != nil && strings.HasPrefix(err.Error(), held)
		})
		leader.end()
		gone := w.lease()
		until := `was held until ` + gone.Spec.RenewTime.UTC().Format(time.RFC3339) + ` by `
		w.eventually(name+": it says that the first one may come back", func() bool {
			err := stranger.Ready()
			return err != nil && strings.Contains(err.Error(), until)
		})
		stranger.leads()
		taken := w.lease()
		// The Lease's own AcquireTime is when the attempt began: before the Lease was read and judged, by however long that took.
		owner, _ := conflicts.Judge(gone, second, grace, time.Now())
		if stranger.since.Before(owner.Until) || stranger.Ready() != nil {
			t.Errorf("%s: it leads from %s on, before %s; ready: %v", name, stranger.since, owner.Until, stranger.Ready())
		}
		if got := stranger.saidSoFar(); len(got) != 2 || !strings.HasPrefix(got[0], held) || got[1] != "" {
			t.Errorf("%s: it was told %q, want once who leads and once that nobody does", name, got)
		}
		stranger.end()
		w.must(w.client.Delete(w.ctx, taken))
	}
}

func leadsWhenTold(_ *testing.T, w *world) {
	leader := w.enter(first, false)
	leader.leads()
	leader.end()
	l := w.lease()
	until := l.Spec.RenewTime.Add(24 * time.Hour)
	l.Spec.RenewTime.Time = until // as far as the claim goes it is there for another day
	w.must(w.client.Update(w.ctx, l))
	stranger := w.enter(second, true)
	w.eventually("it stands by", func() bool {
		return stranger.Ready() != nil && strings.Contains(stranger.Ready().Error(), "is held by")
	})
	w.must(w.client.Patch(w.ctx, w.lease(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"ballast.argoproj.io/plan":null}}}`))))
	stranger.leads()
}

func claims(t *testing.T, w *world) {
	leader := w.enter(first, true)
	leader.leads()
	want := map[string]string{"ballast.argoproj.io/plan": "argocd/ballast-plan", "ballast.argoproj.io/planner-user": "system:serviceaccount:argocd:ballast-planner"}
	if diff := cmp.Diff(want, w.lease().Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	l := w.lease()
	l.Annotations = map[string]string{"a-person": "wrote this"}
	w.must(w.client.Patch(w.ctx, l, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"ballast.argoproj.io/plan":null,"a-person":"wrote this"}}}`))))
	want["a-person"] = "wrote this"
	w.eventually("the leader claims the Lease again with its next renewal, beside what others wrote", func() bool { return maps.Equal(want, w.lease().Annotations) })
	leader.end()
	l = w.lease()
	if diff := cmp.Diff(want, l.Annotations); diff != "" || *l.Spec.HolderIdentity != "" {
		t.Errorf("given up, it is held by %q, annotations (-want +got):\n%s", *l.Spec.HolderIdentity, diff)
	}
}

func takesAnOldLease(t *testing.T, w *world) {
	old := unclaimed("planner-of-old", time.Now().Add(-time.Hour))
	old.ObjectMeta = w.meta(leaseName)
	w.create(old)
	second := w.enter(second, true)
	second.leads()
	if got := w.lease().Annotations[conflicts.AnnotationPlan]; got != "argocd/other-plan" {
		t.Errorf("the Lease names plan %q", got)
	}
}

// losesARace: what was read is what the write holds for, and a target of another's is not even tried.
// writesALeaseOfManyManagers: the API server would merge them all with each write, for longer than an election waits.
func writesALeaseOfManyManagers(t *testing.T, w *world) {
	lock := w.lock(first, nil)
	w.must(lock.Create(w.ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "planner-0", LeaseDurationSeconds: 15}))
	crowded := w.lease()
	crowded.ManagedFields = apiserver.Crowd("coordination.k8s.io/v1", `{"f:spec":{"f:leaseDurationSeconds":{}}}`, 6000)
	w.must(w.client.Update(w.ctx, crowded))
	for range 2 {
		record, _, err := lock.Get(w.ctx)
		w.must(err)
		w.must(lock.Update(w.ctx, *record))
		// An election writes some seconds later: to what the API server has cached then.
		leases := kubernetes.NewForConfigOrDie(w.config).CoordinationV1().Leases(w.namespace)
		w.eventually("the write in the API server's cache", func() bool {
			cached, err := leases.Get(w.ctx, leaseName, metav1.GetOptions{ResourceVersion: "0"})
			return err == nil && cached.ResourceVersion == w.lease().ResourceVersion
		})
	}
	if managers := len(w.lease().ManagedFields); managers > 2 {
		t.Errorf("the Lease has %d managers after two writes", managers)
	}
}

func losesARace(t *testing.T, w *world) {
	a, b := w.lock(first, nil), w.lock(first, nil)
	w.must(a.Create(w.ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "planner-0", LeaseDurationSeconds: 1}))
	_, _, err := b.Get(w.ctx)
	w.must(err)
	w.must(a.Update(w.ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "planner-0", LeaseDurationSeconds: 2}))
	if err := b.Update(w.ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "planner-1", LeaseDurationSeconds: 1}); !apierrors.IsConflict(err) {
		t.Errorf("a write over another one's: %v, want a conflict", err)
	}
	stranger := w.lock(second, nil)
	if err := stranger.Update(w.ctx, resourcelock.LeaderElectionRecord{}); err == nil || stranger.Ready() == nil {
		t.Errorf("a Lease that was never read was written (%v), by one that is ready (%v)", err, stranger.Ready())
	}
	w.must(a.Update(w.ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "planner-0", LeaseDurationSeconds: 60, RenewTime: metav1.Now()}))
	record, _, err := stranger.Get(w.ctx)
	w.must(err)
	if err := stranger.Update(w.ctx, *record); err == nil || !errors.Is(err, conflicts.ErrForeign) {
		t.Errorf("writing a foreign Lease: %v", err)
	}
}
