package uninstall

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/certs"
	"ballast/cmd/ballast/fixture"
	"ballast/planner/plan"
	"ballast/planner/store"
)

// TestWhatUninstallLeaves: of the ConfigMaps and Secrets, by what was asked for. A kept plan is enforced by the next installation.
func TestWhatUninstallLeaves(t *testing.T) {
	const last = "the plan, its history and their key"
	for name, test := range map[string]struct {
		keep  bool
		lease string // whose it is
		says  string
		left  []string
	}{
		"nothing but the clusters":  {false, "argocd/ballast-plan", last, []string{"Secret prod-eu"}},
		"another plan's Lease":      {false, "argocd/plan-b", last, []string{"Lease ballast-argocd-application-controller", "Secret prod-eu"}},
		"the plan for another time": {true, "argocd/ballast-plan", last + " stay; break-glass ends, for an installation to come", []string{"ConfigMap ballast-history of votes.json.gz", "ConfigMap ballast-plan enforced", "Secret ballast-plan-key", "Secret prod-eu"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{plan: "ballast-plan", history: "ballast-history", timeout: time.Second, keepPlan: test.keep, every: time.Millisecond, now: time.Now}
			o.cluster.Namespace = "argocd"
			c := stoppedSite(t, 4, 4, "argocd")
			settled(t, c)
			fixture.MustDo(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-history"},
				BinaryData: map[string][]byte{store.PartWords: []byte("pins"), "votes.json.gz": []byte("votes")}}))
			for _, secret := range []string{certs.LeafTLS, certs.CASecret, certs.CA, "ballast-plan-key", "prod-eu"} {
				fixture.MustDo(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: secret}}))
			}
			fixture.MustDo(t, c.Create(t.Context(), fixture.LeaseOf(test.lease, "planner")))
			target, w, _, err := o.target(t.Context(), c)
			fixture.MustDo(t, err)
			steps := o.steps(target, w)
			var out bytes.Buffer
			fixture.MustDo(t, o.carryOut(t.Context(), c, steps, &out))
			fixture.Golden(t, strings.ReplaceAll(name, " ", "-"), out.String())
			if got := steps[len(steps)-1].what; got != test.says {
				t.Errorf("the last step says %q, want %q", got, test.says)
			}
			if diff := cmp.Diff(test.left, leftOf(t, c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// settled has all four replicas ready, and no rollout under way.
func settled(t *testing.T, c client.Client) {
	t.Helper()
	holds(t, c, "ballast-plan", nil)
	var set appsv1.StatefulSet
	fixture.MustDo(t, c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, &set))
	set.Status = appsv1.StatefulSetStatus{Replicas: 4, ReadyReplicas: 4, UpdatedReplicas: 4}
	fixture.MustDo(t, c.Status().Update(t.Context(), &set))
}

// leftOf are the ConfigMaps and Secrets that are left, and how the plan is held.
func leftOf(t *testing.T, c client.Client) (left []string) {
	t.Helper()
	var configMaps corev1.ConfigMapList
	var secrets corev1.SecretList
	fixture.MustDo(t, c.List(t.Context(), &configMaps))
	fixture.MustDo(t, c.List(t.Context(), &secrets))
	for _, cm := range configMaps.Items {
		how := ""
		if cm.Name == "ballast-plan" {
			how = " enforced"
		}
		if value, there := cm.Annotations[plan.AnnotationEnforcement]; there {
			how = " with enforcement: " + value
		}
		for _, part := range slices.Sorted(maps.Keys(cm.BinaryData)) {
			how += " of " + part
		}
		left = append(left, "ConfigMap "+cm.Name+how)
	}
	var leases coordinationv1.LeaseList
	fixture.MustDo(t, c.List(t.Context(), &leases))
	for _, lease := range leases.Items {
		left = append(left, "Lease "+lease.Name)
	}
	for _, secret := range secrets.Items {
		left = append(left, "Secret "+secret.Name)
	}
	slices.Sort(left)
	return left
}
