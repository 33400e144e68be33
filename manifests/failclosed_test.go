package manifests

import (
	"context"
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/certs"
	"ballast/e2e/apiserver"
)

// TestWhatMendsTheWebhookWaitsForNone: under components/fail-closed, on a real API server without a webhook, ballast's own Secrets are
// written even with Argo CD's label of a cluster, and no other Secret is.
func TestWhatMendsTheWebhookWaitsForNone(t *testing.T) {
	config := apiserver.Start(t)
	for dir, namespace := range map[string]string{failClosed: "argocd", everything: namespace} {
		t.Run(namespace, func(t *testing.T) {
			admin := clientOf(t, config, "")
			in := decode(t, build(t, dir))
			webhooks := in.Webhooks["ballast."+namespace]
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
			secret := func(name string) *corev1.Secret {
				return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			}
			label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"argocd.argoproj.io/secret-type":"cluster"}}}`))
			mend := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null},"data":{"tls.crt":"eA=="}}`))
			own := []string{"ballast-ca", "ballast-client-ca", planKey, certs.CASecret, certs.LeafTLS}
			for _, name := range append(own, "prod-eu") {
				must(admin.Create(t.Context(), secret(name)))
				must(admin.Patch(t.Context(), secret(name), label)) // before the webhook is away
			}
			must(admin.Create(t.Context(), &webhooks))
			t.Cleanup(func() {
				none := admissionregistration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks.Name}}
				must(admin.Delete(context.WithoutCancel(t.Context()), &none))
			})
			(&policyBed{}).until(t, "other Secrets wait for the webhook", func() bool {
				err := admin.Patch(t.Context(), secret("prod-eu"), mend, client.DryRunAll)
				return err != nil && strings.Contains(err.Error(), `failed calling webhook "clusters.ballast.argoproj.io"`)
			})
			for _, name := range own {
				t.Run(name, func(t *testing.T) { told(t, admin.Patch(t.Context(), secret(name), mend), "") })
			}
			told(t, admin.Create(t.Context(), labelled(secret("prod-us")), client.DryRunAll), "failed calling webhook")
			generated := labelled(secret(""))
			generated.GenerateName = "prod-" // the request of such a create has no name
			told(t, admin.Create(t.Context(), generated, client.DryRunAll), `failed calling webhook "clusters.ballast.argoproj.io"`)
			must(admin.Delete(t.Context(), secret(certs.LeafTLS)))
			told(t, admin.Create(t.Context(), labelled(secret(certs.LeafTLS)), client.DryRunAll), "")
		})
	}
}

// labelled is the Secret as one of a cluster.
func labelled(s *corev1.Secret) *corev1.Secret {
	s.Labels = map[string]string{"argocd.argoproj.io/secret-type": "cluster"}
	return s
}
