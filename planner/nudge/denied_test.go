package nudge

import (
	"context"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestADenialWithoutACodeStandsInNoOthersWay: a webhook of others that denies so is answered by 400 and no reason. The next Application is
// refreshed, and where each is denied so it is a refusal, and no passing fault.
func TestADenialWithoutACodeStandsInNoOthersWay(t *testing.T) {
	denial := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest,
		Message: `admission webhook "validate.kyverno.svc" denied the request: no`}}
	var objects []client.Object
	var all []Application
	for _, name := range []string{"a", "b"} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"destination": map[string]any{"server": eu}}}}
		u.SetGroupVersionKind(applicationKind)
		u.SetNamespace("argocd")
		u.SetName(name)
		objects, all = append(objects, u), append(all, Application{Namespace: "argocd", Name: name, Server: eu})
	}
	for name, test := range map[string]struct {
		denied map[string]bool
		want   string
	}{
		"one":  {map[string]bool{"a": true}, "argocd/b"},
		"both": {map[string]bool{"a": true, "b": true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(objects...).Build(), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
					if test.denied[o.GetName()] {
						return denial
					}
					return nil
				}})
			n := New(Options{Client: c, Reader: c, Clock: clocktesting.NewFakePassiveClock(start)})
			n.last.Store(&listing{namespace: "argocd", at: start, applications: newIndex(all)})
			got, err := n.refreshOne(t.Context(), all, eu, "")
			passes := test.want != ""
			if got != test.want || isForbidden(err) == passes || (err == nil) != passes {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
