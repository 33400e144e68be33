package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/poll"
	"ballast/planner/poll/pods"
)

// With poll.pods there is nobody to ask: the command goes by what the planner saw, and says what to do where that is nothing.
func TestWithPodsThePlanIsOfWhatThePlannerSaw(t *testing.T) {
	cfg := config.Default()
	cfg.Poll = config.Poll{Pods: &config.Pods{}}
	noon := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	in := input.Inputs{Now: noon.Add(time.Minute), Config: cfg}
	in.Discovered.Secrets = []discover.Secret{{UID: "a", Name: "a", Cluster: "a", Server: "https://a", HasData: true}}
	var w pods.Window
	for m := -30; m <= 0; m++ {
		at := noon.Add(time.Duration(m) * time.Minute)
		r := scrape.PodReport{SampledAt: at, Servers: map[string]scrape.ServerReport{
			"https://a": {Apps: 2, Objects: 7, Events: float64(60 * (m + 30)), Counts: scrape.ShowsEvents | scrape.ShowsObjects}}}
		r.Name = "c-0"
		w.Take([]scrape.PodReport{r}, []string{"https://a"}, at)
	}
	part, err := w.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	sample := func(v float64) []poll.Sample { return []poll.Sample{{Key: "https://a", Value: v, At: noon}} }
	saw := []poll.Fetched{{Metric: "objects", Samples: sample(7)}, {Metric: "events", Samples: sample(1)}, {Metric: "reconciles"}, {Metric: "apps", Samples: sample(2)}}
	const none = `poll.pods: there is no Prometheus to ask, and ConfigMap "ballast-history" in "argocd" has nothing yet that a planner saw of the pods: ` +
		`let it run for a quarter of an hour, name a Prometheus by --prometheus, or run saved inputs by --inputs`
	for name, test := range map[string]struct {
		history map[string][]byte // nil: there is no ConfigMap
		want    []poll.Fetched
		said    string
		err     string
	}{
		"a planner runs":          {map[string][]byte{pods.HistoryPart: part}, saw, "by what the planner saw of the pods until 2026-08-01T12:00:00Z\n", ""},
		"one that began just now": {map[string][]byte{"votes": {1}}, nil, "", none},
		"none":                    {nil, nil, "", none},
		"what it saw is broken": {map[string][]byte{pods.HistoryPart: []byte("x")}, nil, "",
			`reading what the planner saw of the pods, in ConfigMap "ballast-history" in "argocd": unpacking: unexpected EOF`},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
			if test.history != nil {
				b = b.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: cfg.Plan.History}, BinaryData: test.history})
			}
			var said strings.Builder
			got, err := fromPlanner(t.Context(), b.Build(), cfg, in, &said)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff([]string{test.said, test.err}, []string{said.String(), text}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			near := cmp.Comparer(func(a, b float64) bool { return a-b < 0.011*b && b-a < 0.011*b })
			if diff := cmp.Diff(test.want, got, near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
