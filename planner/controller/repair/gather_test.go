package repair

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/controller/gather"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// TestOfTooManySecretsRepairsSeeTheKnownOnes, as the cycle does: somebody's are older than those that were made anew by a restore.
func TestOfTooManySecretsRepairsSeeTheKnownOnes(t *testing.T) {
	var secrets []corev1.Secret
	add := func(name string, made time.Time) {
		secrets = append(secrets, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(made)},
			Data: map[string][]byte{"name": []byte(name), "server": []byte("https://" + name)}})
	}
	for i := range 20_000 {
		add(fmt.Sprintf("own%05d", i), sim.Epoch)
	}
	add("prod", sim.Epoch.Add(time.Hour))
	add("stage", sim.Epoch.Add(time.Hour))
	set := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "argocd-application-controller"}, Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller"}}}}}}
	c := sim.Config()
	c.Target = plan.Target{Kind: plan.StatefulSet, Name: "argocd-application-controller", Container: "application-controller"}
	looker := &gather.Looker{Options: &wiring.Options{Reader: standsCache{secrets, set}}}
	r := New(looker.Options, looker, nil, nil, nil, nil)
	var out cycle.Outcome
	out.Memory.Known = discover.Known{Clusters: []string{"prod"}}
	r.Show(input.Inputs{}, out)
	in, _, err := looker.Stands(t.Context(), c, r.lookedAt().known, nil)
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(in.Secrets, func(s discover.Secret) bool { return s.Name == name })
	}
	if len(in.Secrets) != 20_000 || in.LeftOut != 2 || !has("prod") || has("stage") || has("own19999") {
		t.Errorf("%d Secrets and %d left out; prod %t, stage %t, the last of the others %t", len(in.Secrets), in.LeftOut, has("prod"), has("stage"), has("own19999"))
	}
}
