package conflicts

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// TestNoLeaseMakesItsNextWriteInvalid: what one write left in it would keep every planner off for good.
func TestNoLeaseMakesItsNextWriteInvalid(t *testing.T) {
	own := map[string]string{AnnotationPlan: first.Plan, AnnotationPlannerUser: first.PlannerUser}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range []map[string]string{own, more} {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	for name, test := range map[string]struct {
		spoil       func(*coordinationv1.Lease)
		annotations map[string]string
		transitions int32
	}{
		"as it should be":  {func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(7)) }, own, 8},
		"somebody's note":  {func(l *coordinationv1.Lease) { l.Annotations["note"] = "kept" }, with(map[string]string{"note": "kept"}), 1},
		"the last count":   {func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(math.MaxInt32)) }, own, 1},
		"a negative count": {func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(-5)) }, own, 1},
		"a full Lease":     {func(l *coordinationv1.Lease) { l.Annotations = map[string]string{"f": strings.Repeat("y", 262143)} }, own, 1},
		"another's strategy": {func(l *coordinationv1.Lease) {
			l.Spec.Strategy, l.Spec.PreferredHolder = ptr.To(coordinationv1.OldestEmulationVersion), ptr.To("x")
		}, own, 1},
	} {
		t.Run(name, func(t *testing.T) {
			lease := leaseOf(first, "gone", noon.Add(-time.Hour))
			lease.Namespace, lease.Name, lease.ResourceVersion = "argocd", leaseName, "1"
			test.spoil(lease)
			api := fake.NewClientset(lease)
			lock := NewLock(LockOptions{Client: api.CoordinationV1(), Lease: types.NamespacedName{Namespace: "argocd", Name: leaseName}, Self: first,
				Now: func() time.Time { return noon }, Tell: func(string) {}})
			record, _, err := lock.Get(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			record.HolderIdentity, record.LeaderTransitions = "planner-1", record.LeaderTransitions+1 // as an election takes it
			if err := lock.Update(context.Background(), *record); err != nil {
				t.Fatal(err)
			}
			got, err := api.CoordinationV1().Leases("argocd").Get(context.Background(), leaseName, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.annotations, got.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if s := got.Spec; *s.LeaseTransitions != test.transitions || s.Strategy != nil || s.PreferredHolder != nil {
				t.Errorf("transitions %d, strategy %v, preferred %v", *s.LeaseTransitions, s.Strategy, s.PreferredHolder)
			}
		})
	}
}
