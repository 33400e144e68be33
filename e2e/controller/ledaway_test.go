package controller_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/hooked"
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
