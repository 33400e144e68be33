package auditlog_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// meddled is the label of the Secrets that the meddler changes.
const meddled = `{"metadata":{"labels":{"meddled":"yes"}}}`

// meddle registers a webhook of somebody else's, which is asked after ours and moves a cluster to shard 1.
func (s *site) meddle(t *testing.T) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: &kind,
			Patch: []byte(`[{"op":"replace","path":"/data/shard","value":"MQ=="}]`)}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	at := s.env.WebhookInstallOptions
	pair, err := tls.LoadX509KeyPair(filepath.Join(at.LocalServingCertDir, "tls.crt"), filepath.Join(at.LocalServingCertDir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	none, exact, ignore, timeout := admissionregistration.SideEffectClassNone, admissionregistration.Exact, admissionregistration.Ignore, int32(10)
	config := &admissionregistration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "zz-meddler"}, Webhooks: []admissionregistration.MutatingWebhook{{
		Name: "meddler.example.com", ClientConfig: admissionregistration.WebhookClientConfig{URL: &server.URL, CABundle: at.LocalServingCAData},
		Rules: []admissionregistration.RuleWithOperations{{Operations: []admissionregistration.OperationType{admissionregistration.Update},
			Rule: admissionregistration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}}}},
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"meddled": "yes"}},
		SideEffects:    &none, MatchPolicy: &exact, FailurePolicy: &ignore, TimeoutSeconds: &timeout, AdmissionReviewVersions: []string{"v1"},
	}}}
	s.must(t)(s.client(t, s.admin).AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), config, metav1.CreateOptions{}))
	probe := s.client(t, s.user(t, "probe"))
	eventually(t, "the meddler", func() bool {
		_, _ = meddleWith(t, probe, metav1.DryRunAll)
		return asked.Load() > 0
	})
}

func meddleWith(t *testing.T, c kubernetes.Interface, dry ...string) (*corev1.Secret, error) {
	t.Helper()
	return c.CoreV1().Secrets(namespace).Patch(t.Context(), "prod-us", types.MergePatchType, []byte(meddled), metav1.PatchOptions{DryRun: dry})
}
