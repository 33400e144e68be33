package conflicts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"pgregory.net/rapid"
)

const leaseName = "ballast-" + controller

var (
	noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

	first  = Owner{Plan: "argocd/ballast-plan", PlannerUser: "system:serviceaccount:argocd:ballast-planner", Identity: "planner-0"}
	second = Owner{Plan: "argocd/other-plan", PlannerUser: "system:serviceaccount:argocd:ballast-planner", Identity: "planner-9"}
)

// leaseOf is a Lease of 15 seconds that the owner took at noon and has just written.
func leaseOf(o Owner, holder string, written time.Time) *coordinationv1.Lease {
	lasts := int32(15)
	l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts,
		AcquireTime: &metav1.MicroTime{Time: noon}, RenewTime: &metav1.MicroTime{Time: written}}}
	if o.Plan != "" {
		l.Annotations = map[string]string{AnnotationPlan: o.Plan, AnnotationPlannerUser: o.PlannerUser}
	}
	return l
}

func TestWhoseTheTargetIs(t *testing.T) {
	const grace = 10 * time.Minute
	otherUser := first
	otherUser.PlannerUser, otherUser.Identity = "system:serviceaccount:argocd:another", "planner-1"
	standby := first
	standby.Identity = "planner-1"
	lapsed := noon.Add(15*time.Second + grace)
	for name, test := range map[string]struct {
		lease *coordinationv1.Lease
		self  Owner
		now   time.Time
		want  bool
	}{
		"nobody's without a Lease":                          {nil, second, noon, false},
		"nobody's where an older version holds it":          {leaseOf(Owner{}, "planner-0", noon), second, noon, false},
		"the leader's own":                                  {leaseOf(first, "planner-0", noon), first, noon, false},
		"a standby's of the same installation":              {leaseOf(first, "planner-0", noon), standby, noon, false},
		"another's with another plan":                       {leaseOf(first, "planner-0", noon), second, noon, true},
		"another's with another user":                       {leaseOf(first, "planner-0", noon), otherUser, noon, true},
		"our own though somebody wrote a plan onto it":      {leaseOf(first, "planner-9", noon), second, noon, false},
		"another's while it is given up for a moment":       {leaseOf(first, "", noon), second, noon.Add(time.Minute), true},
		"another's while its pods are on their way":         {leaseOf(first, "planner-0", noon), second, lapsed.Add(-time.Nanosecond), true},
		"anybody's when it has been gone for good":          {leaseOf(first, "planner-0", noon), second, lapsed, false},
		"anybody's when it was given up for good":           {leaseOf(first, "", noon), second, lapsed, false},
		"anybody's if nobody knows when it was written":     {&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationPlan: first.Plan}}}, second, noon, false},
		"another's to one that does not know its own name":  {leaseOf(first, "", noon), Owner{Plan: second.Plan}, noon, true},
		"another's by a clock that is behind the other one": {leaseOf(first, "planner-0", noon.Add(time.Hour)), second, noon, true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, foreign := Judge(test.lease, test.self, grace, test.now); foreign != test.want {
				t.Errorf("foreign is %t, want %t", foreign, test.want)
			}
		})
	}
}

func TestTheOwnerIsAsItsLeaseSays(t *testing.T) {
	got, _ := Judge(leaseOf(first, "planner-0", noon.Add(time.Minute)), second, 10*time.Minute, noon)
	want := Owner{Plan: first.Plan, PlannerUser: first.PlannerUser, Identity: "planner-0", Since: noon, Seen: noon.Add(time.Minute),
		Expires: noon.Add(75 * time.Second), Until: noon.Add(75*time.Second + 10*time.Minute)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestALeaseIsBelievedAsFarAsItCanBeTrue: it was seen first at noon.
func TestALeaseIsBelievedAsFarAsItCanBeTrue(t *testing.T) {
	lasting := func(l *coordinationv1.Lease, seconds int32) *coordinationv1.Lease {
		l.Spec.LeaseDurationSeconds = &seconds
		return l
	}
	for name, test := range map[string]struct{ lease, want *coordinationv1.Lease }{
		"none":                      {nil, nil},
		"as a planner writes it":    {leaseOf(first, "planner-0", noon), leaseOf(first, "planner-0", noon)},
		"written long ago":          {leaseOf(first, "planner-0", noon.Add(-time.Hour)), leaseOf(first, "planner-0", noon.Add(-time.Hour))},
		"renewed in years":          {leaseOf(first, "planner-0", noon.AddDate(99, 0, 0)), leaseOf(first, "planner-0", noon)},
		"for five minutes":          {lasting(leaseOf(first, "planner-0", noon), 300), lasting(leaseOf(first, "planner-0", noon), 300)},
		"for longer":                {lasting(leaseOf(first, "planner-0", noon), 301), lasting(leaseOf(first, "planner-0", noon), 300)},
		"for 68 years":              {lasting(leaseOf(first, "planner-0", noon), 1<<31-1), lasting(leaseOf(first, "planner-0", noon), 300)},
		"without a time and length": {&coordinationv1.Lease{}, &coordinationv1.Lease{}},
	} {
		if diff := cmp.Diff(test.want, Bounded(test.lease, noon)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestAForgedLeaseKeepsNobodyOffForLong: one that another plan holds for ever, by what is written in it, holds for five
// minutes and the grace from when it was seen first, unless somebody goes on writing it.
func TestAForgedLeaseKeepsNobodyOffForLong(t *testing.T) {
	forged := leaseOf(first, "planner-0", noon.AddDate(99, 0, 0))
	forged.Namespace, forged.Name, forged.ResourceVersion = "argocd", leaseName, "1"
	*forged.Spec.LeaseDurationSeconds = 1<<31 - 1
	api := fake.NewClientset(forged)
	now := noon
	lock := NewLock(LockOptions{Client: api.CoordinationV1(), Lease: types.NamespacedName{Namespace: "argocd", Name: leaseName}, Self: second,
		Now: func() time.Time { return now }, Tell: func(string) {}})
	for _, step := range []struct {
		after   time.Duration
		version string
		ready   bool
	}{
		{0, "1", false}, {15*time.Minute - time.Second, "1", false}, {15 * time.Minute, "1", true}, {48 * time.Hour, "1", true},
		{49 * time.Hour, "2", false}, {49*time.Hour + 15*time.Minute, "2", true},
	} {
		now, forged.ResourceVersion = noon.Add(step.after), step.version
		if err := api.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), forged, "argocd"); err != nil {
			t.Fatal(err)
		}
		record, _, err := lock.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := lock.Ready() == nil; got != step.ready || record.LeaseDurationSeconds > 300 || record.RenewTime.After(now) {
			t.Errorf("after %s, version %s: ready is %t; the election sees %+v", step.after, step.version, got, record)
		}
	}
}

// TestDeletingTheLeaseEndsWhateverWasForged: who wrote another plan onto it may have written another holder, too, and no annotation
// that is taken away ends that one.
func TestDeletingTheLeaseEndsWhateverWasForged(t *testing.T) {
	forged := leaseOf(first, "planner-0", noon.AddDate(99, 0, 0))
	forged.Namespace, forged.Name, forged.ResourceVersion = "argocd", leaseName, "1"
	*forged.Spec.LeaseDurationSeconds = 1<<31 - 1
	api := fake.NewClientset(forged)
	leases := api.CoordinationV1().Leases("argocd")
	lock := NewLock(LockOptions{Client: api.CoordinationV1(), Lease: types.NamespacedName{Namespace: "argocd", Name: leaseName}, Self: second,
		Now: func() time.Time { return noon }, Tell: func(string) {}})
	if _, _, err := lock.Get(t.Context()); err != nil || lock.Ready() == nil {
		t.Fatalf("a forged claim: ready, or %v", err)
	}
	forged.Annotations, forged.ResourceVersion = nil, "2" // kubectl annotate ... plan-
	if err := api.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), forged, "argocd"); err != nil {
		t.Fatal(err)
	}
	record, _, err := lock.Get(t.Context())
	if err != nil || lock.Ready() != nil || record.HolderIdentity != "planner-0" || record.LeaseDurationSeconds != 300 {
		t.Fatalf("without its annotation: the election sees %+v, %v", record, err)
	}
	if err := leases.Delete(t.Context(), leaseName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := lock.Get(t.Context()); !apierrors.IsNotFound(err) || lock.Ready() != nil {
		t.Fatalf("without the Lease: %v, %v; the election creates one where it hears of none", err, lock.Ready())
	}
	if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: second.Identity, LeaseDurationSeconds: 15}); err != nil {
		t.Fatal(err)
	}
	got, err := leases.Get(t.Context(), leaseName, metav1.GetOptions{})
	if err != nil || *got.Spec.HolderIdentity != second.Identity || got.Annotations[AnnotationPlan] != second.Plan {
		t.Errorf("made anew: %+v, %v", got, err)
	}
}

func TestARefusalSaysWhoOwnsTheTargetAndWhatToDo(t *testing.T) {
	lease := types.NamespacedName{Namespace: "argocd", Name: "ballast-argocd-application-controller"}
	const ours = `this instance would plan in "argocd/other-plan" as "system:serviceaccount:argocd:ballast-planner", so it stands by and writes nothing; ` +
		`take one of the two out, or give this one another target`
	const plans = `which plans in ConfigMap "argocd/ballast-plan" as "system:serviceaccount:argocd:ballast-planner"`
	const end = `by deleting the Lease, which a planner makes anew: kubectl -n argocd delete lease ballast-argocd-application-controller`
	const later = ` Unless that one comes back this one leads from 2026-08-01T12:10:15Z on, or at once if you end its claim ` + end
	for name, test := range map[string]struct {
		holder string
		now    time.Time
		want   string
	}{
		"while it leads":       {"planner-0", noon, `Lease "argocd/ballast-argocd-application-controller" is held by "planner-0", ` + plans + `, since 2026-08-01T12:00:00Z: ` + ours + `. If no such planner runs, end its claim ` + end},
		"when it is silent":    {"planner-0", noon.Add(time.Minute), `Lease "argocd/ballast-argocd-application-controller" was held until 2026-08-01T12:00:00Z by "planner-0", ` + plans + `: ` + ours + `.` + later},
		"when it gave way":     {"", noon.Add(time.Minute), `Lease "argocd/ballast-argocd-application-controller" was held until 2026-08-01T12:00:00Z by "an instance", ` + plans + `: ` + ours + `.` + later},
		"when it just gave it": {"", noon, `Lease "argocd/ballast-argocd-application-controller" was held until 2026-08-01T12:00:00Z by "an instance", ` + plans + `: ` + ours + `.` + later},
	} {
		t.Run(name, func(t *testing.T) {
			owner, foreign := Judge(leaseOf(first, test.holder, noon), second, 10*time.Minute, test.now)
			if got := owner.Refusal(second, lease, test.now); !foreign || got != test.want {
				t.Errorf("foreign %t\n got %s\nwant %s", foreign, got, test.want)
			}
		})
	}
}

// TestATargetHasOneOwner: of two installations one stands by as long as the other counts as the owner, and a target that
// became anybody's stays so until somebody writes the Lease.
func TestATargetHasOneOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		holder := rapid.SampledFrom([]string{"", "planner-0", "planner-1"}).Draw(t, "holder")
		grace := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "grace"))
		at := noon.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(2*time.Hour)).Draw(t, "at")))
		lease := leaseOf(first, holder, noon)
		owner, foreign := Judge(lease, second, grace, at)
		if _, own := Judge(lease, first, grace, at); own {
			t.Fatal("the owner is a stranger to itself")
		}
		if foreign != at.Before(owner.Until) {
			t.Fatalf("foreign is %t at %s, and it is the owner's until %s", foreign, at, owner.Until)
		}
		later := at.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "later")))
		if _, again := Judge(lease, second, grace, later); again && !foreign {
			t.Fatal("a target that was anybody's has an owner again, though nobody wrote the Lease")
		}
		taken := lease.DeepCopy()
		taken.Annotations = map[string]string{AnnotationPlan: second.Plan, AnnotationPlannerUser: second.PlannerUser}
		if _, back := Judge(taken, first, grace, at); at.Before(owner.Until) && !back && holder != first.Identity {
			t.Fatal("a target that another one claimed is still the first one's")
		}
	})
}
