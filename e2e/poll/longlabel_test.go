package poll_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/config"

	"ballast/e2e/assets"
	"ballast/planner/ownership/scrape"
	"ballast/planner/poll"
	"ballast/planner/poll/promql"
)

// Somebody's cluster Secret has a data.server of 70,000 bytes, and one Application: Argo CD's own pods show that server. The series of
// all others are read as without it, those of the owners too.
func TestAServerThatIsTooLongRefusesNoOthersSeries(t *testing.T) {
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	l := layouts()["upstream manifests, by pod annotations"]
	type answer struct {
		Samples  []poll.Sample
		Warnings []string
		Err      string
	}
	ask := func(length int) map[string]answer {
		h := history{layout: l, families: map[string]*bytes.Buffer{}}
		from := now.Add(-10 * time.Minute)
		h.objects(1, "https://a.example", from, now, 3)
		h.app(1, "https://a.example", "argocd", "theirs", from, now)
		if length > 0 {
			h.objects(1, "https://"+strings.Repeat("x", length), from, now, 1)
			h.app(1, "https://"+strings.Repeat("x", length), "argocd", "mine", from, now)
		}
		client, err := poll.New(poll.Config{URL: serve(t, binaries, h.write()), Timeout: time.Minute, Pods: promql.PodsMatcher("pod", l.workload), HTTP: config.DefaultHTTPClientConfig})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]answer{}
		for _, f := range client.Fetch(t.Context(), append(poll.DefaultMetrics(), scrape.Queries()...), clusters(t), now) {
			got[f.Metric] = answer{f.Samples, f.Warnings, f.Err}
		}
		return got
	}
	want := ask(0)
	for metric, a := range want {
		if a.Err != "" || len(a.Warnings) > 0 {
			t.Errorf("%s: %s %v", metric, a.Err, a.Warnings)
		}
	}
	got := ask(70_000)
	for metric, label := range map[string]string{"objects": "server", "apps": "dest_server", "argocd_app_info": "owner"} {
		a := got[metric]
		told := `1 of its series are passed over: their label "` + label + `" has more than 2 KiB, as no cluster's has; ` +
			"look for the cluster Secret that has it, and for its Applications"
		if diff := cmp.Diff([]string{told}, a.Warnings); diff != "" {
			t.Errorf("what is told of %s (-want +got):\n%s", metric, diff)
		}
		a.Warnings = want[metric].Warnings
		if got[metric] = a; len(a.Samples) == 0 {
			t.Errorf("%s has no sample", metric)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-without +with):\n%s", diff)
	}
}
