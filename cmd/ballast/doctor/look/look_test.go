package look

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/config"
	"ballast/planner/installation"
)

// Under components/fail-closed the planner's writes alone ask nobody: whose these are is known before the first plan, and where its
// ServiceAccount was renamed under a plan that has the other name.
func TestFailClosedIsJudgedByWhoPlans(t *testing.T) {
	const workload, account = "argocd-application-controller", "system:serviceaccount:argocd:"
	planner := func(name, serviceAccount string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name,
			Labels: map[string]string{"app.kubernetes.io/name": "ballast", "app.kubernetes.io/component": "planner"}}}
		d.Spec.Template.Spec.ServiceAccountName = serviceAccount
		return d
	}
	const differs = "clusters.ballast.argoproj.io matchConditions"
	for name, test := range map[string]struct {
		closedFor, ofPlan string
		deployments       []client.Object
		hidden            bool
		planner           string
		want              []string
	}{
		"before the first plan":                    {"ballast-planner", "", []client.Object{planner("p", "ballast-planner")}, false, "ballast-planner", nil},
		"renamed, before the first plan":           {"mine", "", []client.Object{planner("p", "mine")}, false, "mine", nil},
		"renamed under a plan":                     {"mine", "ballast-planner", []client.Object{planner("p", "mine")}, false, "mine", nil},
		"renamed, and the condition was forgotten": {"ballast-planner", "ballast-planner", []client.Object{planner("p", "mine")}, false, "mine", []string{differs}},
		"another's account":                        {"eve", "", []client.Object{planner("p", "ballast-planner")}, false, "ballast-planner", []string{differs}},
		"no planner yet":                           {"ballast-planner", "", nil, false, "ballast-planner", nil},
		"Deployments that may not be listed":       {"mine", "mine", []client.Object{planner("p", "other")}, true, "mine", nil},
		"somebody's second one":                    {"mine", "mine", []client.Object{planner("p", "mine"), planner("q", "eve")}, false, "mine", nil},
		"the namespace's default account":          {"default", "", []client.Object{planner("p", "")}, false, "default", nil},
	} {
		t.Run(name, func(t *testing.T) {
			closed, err := installation.Shipped(installation.Names{Namespace: "argocd", Workload: workload, Plan: "ballast-plan"})
			if err != nil {
				t.Fatal(err)
			}
			for i := range closed.Webhooks {
				if w := &closed.Webhooks[i]; w.Name == "clusters.ballast.argoproj.io" {
					w.FailurePolicy = ptr.To(admissionv1.Fail)
					w.MatchConditions = append(w.MatchConditions, admissionv1.MatchCondition{Name: "not-the-planner", Expression: `request.userInfo.username != "` +
						account + `" + "` + test.closedFor + `" || request.dryRun == true`})
				}
			}
			c := fake.NewClientBuilder().WithObjects(append(test.deployments, closed)...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
					if _, ok := list.(*appsv1.DeploymentList); ok && test.hidden {
						return errors.New("deployments.apps is forbidden")
					}
					return c.List(ctx, list, o...)
				}}).Build()
			s := &Seen{Namespace: "argocd", Kubernetes: "v1.34.0", NotSeen: map[string]error{}}
			s.In.Config, s.In.Workload.Name = config.Default(), workload
			if test.ofPlan != "" {
				s.In.PlannerUser = account + test.ofPlan
			}
			s.lookAtInstallation(t.Context(), c)
			var got []string
			for _, f := range s.Installed.Findings {
				got = append(got, f.Subject)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || s.InstallErr != nil || s.Planner != account+test.planner {
				t.Errorf("the planner is %q, %v (-want +got):\n%s", s.Planner, s.InstallErr, diff)
			}
		})
	}
}
