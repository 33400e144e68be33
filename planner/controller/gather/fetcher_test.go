package gather

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// Who owns what is asked of the pods in the target's namespace: a workload of that name in another one is not asked.
func TestTheFetcherAsksForThePodsOfTheTargetsNamespace(t *testing.T) {
	const target = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"namespace":"argo","pod":"c-0","instance":"10.0.0.1:8082","owner":"c-0|https://a"},"value":[1,"2"]}]}}`
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.FormValue("query"))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(target))
	}))
	t.Cleanup(server.Close)
	c := config.Default()
	c.Poll.Prometheus.URL = server.URL
	f, err := NewFetcher(c, plan.Target{Kind: plan.StatefulSet, Namespace: "argo", Name: "c"})
	if err != nil {
		t.Fatal(err)
	}
	got := f.Fetch(t.Context(), []poll.Metric{ownerMetric()}, discover.Fleet{}, time.Unix(1, 0))
	if diff := cmp.Diff([]poll.Fetched{{Metric: "owner", Samples: []poll.Sample{{Key: "c-0|https://a", Value: 2}}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const tellers = `last_over_time({__name__=~"up|process_resident_memory_bytes",`
	want := `label_join(group by (pod, dest_server) (argocd_app_info{ pod=~"c-[0-9]+",dest_server!="" } and on (pod, instance) ` + tellers + `namespace="argo",pod=~"c-[0-9]+"}[10m])` +
		` unless on (pod, instance, namespace) ` + tellers + `namespace!="argo",pod=~"c-[0-9]+"}[10m])), "owner", "|", "pod", "dest_server")`
	if len(asked) != 2 || !slices.Contains(asked, want) {
		t.Errorf("asked %q, want the targets and %q", asked, want)
	}
}
