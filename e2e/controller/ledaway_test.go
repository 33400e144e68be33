package controller_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ballast/e2e/hooked"
	"ballast/planner/plan"
)

// answersNothing: who leads the API server's calls to a server of their own, as by the selector of the webhook's Service or by an
// EndpointSlice, is not believed there, whatever it would answer. The writes pass, and the probe names each webhook.
func answersNothing(t *testing.T, s *probeSite) {
	var read atomic.Int64
	impostor := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read.Add(1)
		_, _ = io.WriteString(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":false}}`)
	}))
	impostor.Config.ErrorLog = nil
	impostor.StartTLS()
	defer impostor.Close()
	stood := s.breaks(func(w *admissionregistration.MutatingWebhook) {
		w.ClientConfig.URL = ptr.To(impostor.URL + "/" + strings.SplitN(w.Name, ".", 2)[0])
	})
	defer s.mends(stood)
	want := []string{"clusters", "controllers", "scale", "plan"}
	var unheld []string
	hooked.Eventually(t, "a probe that names each webhook", func() bool {
		unheld, _ = s.asks()
		return cmp.Equal(want, unheld)
	})
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: "argocd-application-controller"}}
	err := s.Admin.Patch(t.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`)), client.DryRunAll)
	if err != nil || *set.Spec.Replicas != 7 {
		t.Errorf("the write does not pass as it was made: %v, %d", err, *set.Spec.Replicas)
	}
	if n := read.Load(); n > 0 {
		t.Errorf("%d reviews were sent to a server that the caBundle does not vouch for", n)
	}
}

// waitsForNoWebhook: under components/fail-closed, with the webhook away, people's shards are refused, the planner's probe says so, and
// its own are written: a dead replica's clusters leave it.
func waitsForNoWebhook(t *testing.T, s *probeSite) {
	text, err := os.ReadFile("../../manifests/components/fail-closed/fail.yaml")
	s.must(err)
	var component admissionregistration.MutatingWebhookConfiguration
	s.must(yaml.UnmarshalStrict(text, &component))
	closed := component.Webhooks[0]
	stood := s.breaks(func(w *admissionregistration.MutatingWebhook) {
		w.ClientConfig.URL = ptr.To("https://127.0.0.1:1/" + strings.SplitN(w.Name, ".", 2)[0])
		if w.Name == closed.Name {
			w.FailurePolicy, w.MatchConditions = closed.FailurePolicy, closed.MatchConditions
		}
	})
	defer func() {
		s.Webhooks(func(w *admissionregistration.MutatingWebhook) {
			if w.Name == closed.Name {
				w.FailurePolicy, w.MatchConditions = ptr.To(admissionregistration.Ignore), nil
			}
		})
		s.mends(stood)
	}()
	writes := func(c client.Client, options ...client.PatchOption) string {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: s.in.Discovered.Secrets[0].Name}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"shard":"1"}}`))
		switch err := c.Patch(t.Context(), secret, patch, options...); {
		case err == nil:
			return string(secret.Data[plan.ShardKey])
		case strings.Contains(err.Error(), `failed calling webhook "`+closed.Name+`"`):
			return "refused"
		default:
			return err.Error()
		}
	}
	hooked.Eventually(t, "a person's shard is refused", func() bool { return writes(s.Admin, client.DryRunAll) == "refused" })
	got := map[string]string{"the planner's": writes(s.planner), "the planner's dry-run": writes(s.planner, client.DryRunAll), "a person's": writes(s.Admin)}
	want := map[string]string{"the planner's": "1", "the planner's dry-run": "refused", "a person's": "refused"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what comes of each write (-want +got):\n%s", diff)
	}
	unheld, _ := s.asks()
	if !slices.Contains(unheld, "clusters") {
		t.Errorf("the probe says that %q do not hold the plan, and clusters is away", unheld)
	}
}
