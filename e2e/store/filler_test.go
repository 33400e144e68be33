package store_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/hooked"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/store"
)

// TestNobodyTakesThePlansRoomOrPlace by a write that the webhook does not read, or with the webhook away: what a person with
// the right to write the plan's ConfigMap, and nothing else, can try. The planner writes its plan after each.
func TestNobodyTakesThePlansRoomOrPlace(t *testing.T) {
	site := hooked.Start(t, hooked.Options{})
	as := site.As(hooked.Planner)
	s := store.New(store.Options{Client: as, Reader: as, Namespace: hooked.Namespace, Plan: hooked.PlanConfigMap, History: "ballast-history"})
	next := newPlan()
	writes := func(t *testing.T) {
		t.Helper()
		now, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		next.Clusters["c"] = plan.Row{Replica: 1 - next.Clusters["c"].Replica}
		if _, err := s.WritePlan(t.Context(), now, next, 0, configmap.Meta{Reason: strings.Repeat("reason ", 150)}); err != nil {
			t.Errorf("the planner writes: %v", err)
		}
	}
	writes(t)
	tries(t, site, writes)
	site.Webhooks(func(w *admissionregistration.MutatingWebhook) { w.ClientConfig.URL = ptr.To("https://127.0.0.1:1/") })
	hooked.Eventually(t, "the webhook is away", func() bool {
		cm := read(t, site.Admin)
		cm.Data[plan.KeyPlan] += "#"
		err := site.Admin.Update(t.Context(), cm, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "the planner's alone: pins go to data.pins")
	})
	t.Run("without the webhook", func(t *testing.T) { tries(t, site, writes) })
}

// tries writes as a person does, and compares the plan and what stands beside it afterwards.
func tries(t *testing.T, site *hooked.Site, writes func(*testing.T)) {
	filler := func(key string, n int) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Data[key] = strings.Repeat("<", n) }
	}
	forge := func(cm *corev1.ConfigMap) {
		cm.Data[plan.KeyPlan] = strings.Replace(cm.Data[plan.KeyPlan], "controllerReplicas: 2", "controllerReplicas: 1", 1)
		cm.Annotations[plan.AnnotationDigest] = plan.Digest(cm.Data[plan.KeyPlan])
	}
	both := func(changes ...func(*corev1.ConfigMap)) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) {
			for _, change := range changes {
				change(cm)
			}
		}
	}
	off := func(cm *corev1.ConfigMap) { cm.Annotations[plan.AnnotationEnforcement] = "off" }
	for name, change := range map[string]func(*corev1.ConfigMap){
		"a filler of 800 KB that escapes": filler("notes", 800_000),
		"the filler and a forged plan":    both(filler("notes", 800_000), forge),
		"a forged plan":                   forge,
		"a forged plan by break-glass":    both(off, forge),
		"pins of 1 MB":                    filler(plan.KeyPins, 1_000_000),
		"annotations of 250 KB":           func(cm *corev1.ConfigMap) { cm.Annotations["note"] = strings.Repeat("<", 250_000) },
		"none":                            func(cm *corev1.ConfigMap) { cm.Data, cm.Annotations = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			before := read(t, site.Admin)
			cm := before.DeepCopy()
			change(cm)
			err := site.As("alice").Update(t.Context(), cm)
			after := read(t, site.Admin)
			if diff := cmp.Diff(ours(before), ours(after)); diff != "" {
				t.Errorf("it became (-before +after), %.200v:\n%s", err, diff)
			}
			if after.Annotations[plan.AnnotationEnforcement] != "" { // an honest break-glass, with the plan as it was
				delete(after.Annotations, plan.AnnotationEnforcement)
				if err := site.Admin.Update(t.Context(), after); err != nil {
					t.Error(err)
				}
			}
			writes(t)
		})
	}
}

func read(t *testing.T, c client.Client) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: hooked.Namespace, Name: hooked.PlanConfigMap}, cm); err != nil {
		t.Fatal(err)
	}
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	return cm
}

// ours is the plan, what the planner writes beside it, and how much there is of everything else.
func ours(cm *corev1.ConfigMap) map[string]any {
	rest := 0
	for key, value := range cm.Data {
		if key != plan.KeyPlan {
			rest += len(value)
		}
	}
	return map[string]any{"plan": cm.Data[plan.KeyPlan], "revision": cm.Annotations[plan.AnnotationRevision], "digest": cm.Annotations[plan.AnnotationDigest],
		"by": cm.Annotations[plan.AnnotationDecidedBy], "note": len(cm.Annotations["note"]), "rest": rest}
}
