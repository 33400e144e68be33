package matrix

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ballast/webhook"
	"ballast/webhook/source"
)

// way is one kind of webhook that a write can pass.
type way struct {
	name  string
	asks  string // the shard that is written
	shard string // and the one that is stored
	serve http.Handler
}

// defaulter is what a webhook of controller-runtime usually is: the object decoded, changed, encoded and compared.
type defaulter struct{}

func (defaulter) Default(_ context.Context, s *corev1.Secret) error {
	s.Data["shard"] = []byte("3")
	return nil
}

// constantPatch is the way's number that tells what the API server takes for any patch.
const constantPatch = 2

// ways are what is compared; the second one is the floor.
func (s *site) ways(b *testing.B) []way {
	b.Helper()
	standalone := func(h *admission.Webhook) http.Handler {
		handler, err := admission.StandaloneWebhook(h, admission.StandaloneOptions{Logger: logr.Discard()})
		if err != nil {
			b.Fatal(err)
		}
		return handler
	}
	answer := func(r admission.Response) http.Handler {
		return standalone(&admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return r })})
	}
	patched := admission.PatchResponseFromRaw([]byte(`{"data":{"shard":"MQ=="}}`), []byte(`{"data":{"shard":"Mw=="}}`))
	small := s.ours(b, 100)
	return []way{
		{name: "none", asks: "1", shard: "1"},
		{name: "noop", asks: "1", shard: "1", serve: answer(admission.Allowed(""))},
		// What the API server takes for any patch: the floor's handler, with the patch that ours would send.
		{name: "patch", asks: "1", shard: "3", serve: answer(patched)},
		{name: "ours/plan=100", asks: "1", shard: "3", serve: small},
		{name: "ours/plan=7500", asks: "1", shard: "3", serve: s.ours(b, 7500)},
		// The usual write asks for what the plan says, or for nothing of ours.
		{name: "ours/agrees", asks: "3", shard: "3", serve: small},
		{name: "typed", asks: "1", shard: "3", serve: standalone(admission.WithDefaulter(scheme.Scheme, defaulter{}))},
	}
}

// ours is the shipped handler under a plan of n clusters, which it watches as it always does.
func (s *site) ours(b *testing.B, n int) http.Handler {
	b.Helper()
	object := named(document(b, fleetOf(n, 1), ""), fmt.Sprintf("%s-%d", planName, n))
	if _, err := s.dynamic(b, s.admin).Resource(configMaps).Namespace(namespace).Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		b.Fatal(err)
	}
	metrics := webhook.NewMetrics(prometheus.NewRegistry())
	source := source.New(source.Options{Client: client, Namespace: namespace, ConfigMap: object.GetName(), Planner: planner, Metrics: source.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard()})
	ctx, stop := context.WithCancel(context.Background())
	b.Cleanup(stop)
	go source.Run(ctx)
	eventually(b, "the plan", func() bool { v := source.State().View; return v != nil && len(v.Plan.Clusters) >= n })
	return webhook.NewHandler(source, metrics, logr.Discard())
}
