package apply_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/hooked"
	"ballast/planner/apply"
	"ballast/planner/config"
	"ballast/planner/cycle/resize"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/diff"
	"ballast/planner/plan"
)

// deciding is the planner's decision of sizes, a minute after the last one each time, over the pods of a real API server.
type deciding struct {
	*sizes
	question.Question
	refused map[string]string
}

// minutes lets so many go by, and writes the plan.
func (d *deciding) minutes(t *testing.T, n int) {
	t.Helper()
	for range n {
		_, d.Pods = d.due(t)
		d.Now = d.Now.Add(time.Minute)
		d.Unmet = diff.Unmets(d.Plan, d.Pods, false, diff.Options{Refused: d.refused})
		a := resize.Decide(d.Question)
		d.Plan.Sizes, d.Memory = a.Sizes, a.Memory
	}
	d.write(func(p *plan.Plan) { p.Sizes = d.Plan.Sizes })
}

// A LimitRange below a size refuses the pod that the webhook gave it: after five minutes it comes with its template's size. Once it
// runs, the planner is refused to resize it, and the next pod comes at once.
func (s *sizes) limited(t *testing.T, owner []metav1.OwnerReference) {
	rule := func(list config.SizeList, resource string, base config.Quantity) config.SizeRule {
		return config.SizeRule{List: list, Resource: resource, Base: base}
	}
	d := &deciding{sizes: s, Question: question.Question{Now: time.Now(), Replicas: 3, Due: 2, Plan: s.plan,
		Size: config.Size{Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
			rule(config.Requests, "memory", "2Gi"), rule(config.Limits, "memory", "4Gi")}}}},
		Template: &plan.Resources{Requests: amounts{"cpu": "250m", "memory": "512Mi"}}}}
	d.minutes(t, 1)
	bounds := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: "small"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"memory": resource.MustParse("3Gi")}}}}}
	s.must(s.site.Admin.Create(t.Context(), bounds))
	comes := func(want string) {
		t.Helper()
		err := s.site.Admin.Create(t.Context(), pod(controllers+"-1", owner))
		if want == "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "maximum memory usage per Container is 3Gi")) {
			t.Fatalf("it is not refused: %v", err)
		}
		if want == "" {
			return
		}
		s.must(err)
		s.stands(t, controllers+"-1", "sidecar 250m 512Mi - 3Gi", want)
		s.runs(t, controllers+"-1")
	}
	hooked.Eventually(t, "an API server that knows the LimitRange", func() bool {
		return apierrors.IsForbidden(s.site.Admin.Create(t.Context(), pod(controllers+"-1", owner), client.DryRunAll))
	})
	comes("")
	d.minutes(t, 4)
	comes("")
	d.minutes(t, 1)
	comes("application-controller 250m 512Mi - 3Gi")
	d.minutes(t, 1)
	asks := []diff.Step{diff.PatchPod{Pod: controllers + "-1", Size: d.Plan.Sizes.Default, Why: diff.Sized}}
	results := s.applier.Apply(t.Context(), s.plan.Target, asks).Results
	why, refused := apply.Refusal(results[0].Err)
	if !refused || !strings.HasPrefix(why, "Forbidden by a LimitRange;") {
		t.Fatalf("%v: %v", results[0].Outcome, results[0].Err)
	}
	d.refused = map[string]string{controllers + "-1": why}
	d.minutes(t, 6)
	want := plan.Resources{Requests: amounts{"memory": "512Mi"}, Limits: amounts{"memory": "3Gi"}}
	if diff := cmp.Diff(want, d.Plan.Sizes.Replicas[1]); diff != "" {
		t.Errorf("the plan's size of it (-want +got):\n%s", diff)
	}
	s.must(s.site.Admin.Delete(t.Context(), s.read(t, controllers+"-1"), client.GracePeriodSeconds(0)))
	comes("application-controller 250m 512Mi - 3Gi")
	s.must(s.site.Admin.Delete(t.Context(), bounds))
	s.must(s.site.Admin.Delete(t.Context(), s.read(t, controllers+"-1"), client.GracePeriodSeconds(0)))
}
