package apply

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/diff"
	"ballast/planner/plan"
)

// TestAStoppedFleetComesBackByItsScale where its workload takes no other write. Any other number goes with its env, or not at all: pods
// that come without it take clusters of others.
func TestAStoppedFleetComesBackByItsScale(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "statefulsets"}
	forbidden := apierrors.NewForbidden(resource, "c", nil)
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, "c", nil)
	says := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	denied, absent := says(400, `admission webhook "a.example.com" denied the request: no`), says(500, `Internal error occurred: failed calling webhook "a.example.com": no endpoints`)
	for name, test := range map[string]struct {
		stands, asks int32
		refusal      error
		want         []string
	}{
		"it was stopped, and a policy refuses the rest": {0, 3, forbidden, []string{`scale {"metadata":{"resourceVersion":"999","uid":"u"},"spec":{"replicas":3}}`}},
		"a webhook refuses the rest, without a code":    {0, 3, denied, []string{`scale {"metadata":{"resourceVersion":"999","uid":"u"},"spec":{"replicas":3}}`}},
		"somebody's webhook is away":                    {0, 3, absent, []string{`scale {"metadata":{"resourceVersion":"999","uid":"u"},"spec":{"replicas":3}}`}},
		"a webhook refuses, and it runs":                {3, 5, denied, nil},
		"the API server cannot read it back":            {0, 3, invalid, []string{`scale {"metadata":{"resourceVersion":"999","uid":"u"},"spec":{"replicas":3}}`}},
		"the API server is away":                        {0, 3, apierrors.NewServiceUnavailable("away"), nil},
		"it runs, and is to grow":                       {3, 5, forbidden, nil},
		"it runs, and is to shrink":                     {5, 3, forbidden, nil},
		"it runs, and is to be stopped":                 {3, 0, forbidden, nil},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "c", UID: "u"},
				Spec: appsv1.StatefulSetSpec{Replicas: &test.stands, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}}}
			var scaled []string
			c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(set).Build(), interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return test.refusal
				},
				SubResourcePatch: func(_ context.Context, _ client.Client, sub string, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
					data, err := p.Data(o)
					var sent any
					if err == nil {
						err = json.Unmarshal(data, &sent)
					}
					scaled = append(scaled, sub+" "+string(data))
					return err
				}})
			replicas, env := int(test.asks), int(test.asks)
			step := diff.PatchWorkload{Replicas: &replicas, ControllerReplicas: &env}
			err := New(Options{Client: c, Reader: c}).writeWorkload(t.Context(), plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "c", Container: "main"}, step)
			if diff := cmp.Diff(test.want, scaled); diff != "" || err == nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
