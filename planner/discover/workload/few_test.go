package workload

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/plan"
)

// TestOfOthersWorkloadsFewAreRead, and never several at once: whoever may create them makes them as large and as many as they like.
func TestOfOthersWorkloadsFewAreRead(t *testing.T) {
	controller := map[string]string{"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller"}
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "argocd", Name: name, Labels: labels}
	}
	objects := []client.Object{&appsv1.StatefulSet{ObjectMeta: meta("controller", controller)}, &appsv1.Deployment{ObjectMeta: meta("controller", nil)},
		&appsv1.Deployment{ObjectMeta: meta("own", controller)}}
	for i := range 30 {
		objects = append(objects, &appsv1.Deployment{ObjectMeta: meta(fmt.Sprintf("fat-%02d", i), controller)}, &appsv1.StatefulSet{ObjectMeta: meta(fmt.Sprintf("set-%02d", i), nil)})
	}
	ten := []string{"fat-00", "fat-01", "fat-02", "fat-03", "fat-04", "fat-05", "fat-06", "fat-07", "fat-08", "fat-09"}
	for name, test := range map[string]struct {
		target            plan.Target
		of                *plan.Plan
		sets, deployments []string
	}{
		"by its name":                  {plan.Target{Namespace: "argocd", Name: "controller"}, nil, []string{"controller"}, []string{"controller"}},
		"by labels":                    {plan.Target{Namespace: "argocd"}, nil, []string{"controller"}, ten},
		"by labels, and the plan's":    {plan.Target{Namespace: "argocd"}, &plan.Plan{Target: plan.Target{Kind: plan.Deployment, Name: "own"}}, []string{"controller"}, append(ten[:10:10], "own")},
		"the plan's, without labels":   {plan.Target{Namespace: "argocd"}, &plan.Plan{Target: plan.Target{Kind: plan.Deployment, Name: "controller"}}, []string{"controller"}, append(ten[:10:10], "controller")},
		"the plan's, which is gone":    {plan.Target{Namespace: "argocd"}, &plan.Plan{Target: plan.Target{Kind: plan.Deployment, Name: "gone"}}, []string{"controller"}, ten},
		"of another name, there is no": {plan.Target{Namespace: "argocd", Name: "gone"}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					if _, metadata := l.(*metav1.PartialObjectMetadataList); !metadata {
						t.Errorf("%T is read at once", l)
					}
					return c.List(ctx, l, opts...)
				}})
			var sets appsv1.StatefulSetList
			var deployments appsv1.DeploymentList
			w := few{c, test.target, test.of}
			for _, list := range []client.ObjectList{&sets, &deployments} {
				if err := w.List(t.Context(), list, client.InNamespace("argocd")); err != nil {
					t.Fatal(err)
				}
			}
			var gotSets, gotDeployments []string
			for _, s := range sets.Items {
				gotSets = append(gotSets, s.Name)
			}
			for _, d := range deployments.Items {
				gotDeployments = append(gotDeployments, d.Name)
			}
			if diff := cmp.Diff([][]string{test.sets, test.deployments}, [][]string{gotSets, gotDeployments}); diff != "" {
				t.Errorf("StatefulSets and Deployments (-want +got):\n%s", diff)
			}
		})
	}
}
