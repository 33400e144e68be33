package uninstall

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/certs"
	"ballast/cmd/ballast/fixture"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// TestUninstallMendsWhatDeletedManifestsLeft: after `kubectl delete -k` alone the env stays where rollout.live held it. Clusters keep the
// owner that their Secrets name; one that comes then may have none. Uninstall needs nothing of what was deleted, and mends it.
func TestUninstallMendsWhatDeletedManifestsLeft(t *testing.T) {
	o := &options{plan: "ballast-plan", history: "ballast-history", timeout: time.Minute, every: time.Millisecond, now: time.Now}
	o.cluster.Namespace = "argocd"
	c := stoppedSite(t, 4, 4, "argocd")
	settled(t, c)
	get := func() (set appsv1.StatefulSet) {
		fixture.MustDo(t, c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, &set))
		return set
	}
	set := get()
	set.UID, set.Generation, set.Spec.Template.Spec.Containers[0].Env[0].Value = "its", 1, "16"
	fixture.MustDo(t, c.Update(t.Context(), &set))
	set.Status.ObservedGeneration = 1
	fixture.MustDo(t, c.Status().Update(t.Context(), &set))
	for _, name := range []string{"ballast-history", "ballast-plan-status"} { // the plan's key went with the manifests
		fixture.MustDo(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name}}))
	}
	for _, secret := range []string{certs.LeafTLS, certs.CASecret, "prod-eu"} {
		fixture.MustDo(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: secret}}))
	}
	fixture.MustDo(t, c.Create(t.Context(), fixture.LeaseOf("argocd/ballast-plan", "planner")))
	held, added := fleetOf(4)
	if before := ownersOf(held, added, 16, 4); before.strange > 0 || before.orphans == 0 {
		t.Fatalf("with env 16 beside 4 replicas: %+v; want each cluster with its shard's replica, and some of the added with none", before)
	}
	target, w, _, err := o.target(t.Context(), c)
	fixture.MustDo(t, err)
	var out bytes.Buffer
	fixture.MustDo(t, o.carryOut(t.Context(), c, o.steps(target, w), &out))
	set = get()
	env, err := strconv.Atoi(set.Spec.Template.Spec.Containers[0].Env[0].Value)
	fixture.MustDo(t, err)
	if after := ownersOf(held, added, env, 4); env != 4 || *set.Spec.Replicas != 4 || after != (owners{}) {
		t.Errorf("env %d, %d replicas, %+v; want 4 and 4, and an owner for each", env, *set.Spec.Replicas, after)
	}
	if diff := cmp.Diff([]string{"Secret prod-eu"}, leftOf(t, c)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// fleetOf are clusters whose Secrets have a shard below that number, and some that are added without one.
func fleetOf(replicas int) (held, added []discover.Cluster) {
	for i := range 40 {
		name := fmt.Sprintf("c%02d", i)
		c := discover.Cluster{Shard: plan.Shard{UID: "uid-" + name, ID: name, Server: "https://" + name}}
		if i < 20 {
			c.Explicit = discover.ShardValue{State: discover.ShardValid, N: i % replicas}
			held = append(held, c)
		} else {
			added = append(added, c)
		}
	}
	return held, added
}

// owners counts clusters that another replica has than their shard's, and those that none of the replicas has.
type owners struct{ strange, orphans int }

func ownersOf(held, added []discover.Cluster, env, replicas int) (of owners) {
	for i, owner := range sharding.Owners(append(held[:len(held):len(held)], added...), sharding.Legacy, env, nil) {
		switch {
		case i < len(held) && owner != held[i].Explicit.N:
			of.strange++
		case owner >= replicas:
			of.orphans++
		}
	}
	return of
}

// TestTheReadmeSaysWhatDeletedManifestsLeave, in the words that whoever has no ballast at hand runs.
func TestTheReadmeSaysWhatDeletedManifestsLeave(t *testing.T) {
	text, err := os.ReadFile("../../../manifests/README.md")
	fixture.MustDo(t, err)
	_, section, found := strings.Cut(string(text), "`kubectl delete -k .` alone")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, says := range []string{
		`kubectl -n argocd set env statefulset argocd-application-controller ARGOCD_CONTROLLER_REPLICAS=` +
			`"$(kubectl -n argocd get statefulset argocd-application-controller -o jsonpath='{.spec.replicas}')"`,
		"kubectl -n argocd scale statefulset argocd-application-controller --replicas=N",
		"`ballast-plan-key` goes with the manifests", "begins with the fleet as it is",
	} {
		if !found || !strings.Contains(section, says) {
			t.Errorf("manifests/README.md does not say %q", says)
		}
	}
}
