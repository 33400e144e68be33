package poll_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/e2e/plane"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/config"
)

// layout is how an installation of Argo CD is scraped. Labels are those of the target; own is what becomes of a
// `namespace` label that argocd_app_* bring along: exported_namespace, or, with honorLabels, namespace itself.
type layout struct {
	workload plan.Target
	labels   map[string]string
	own      string
}

func layouts() map[string]layout {
	sts := func(name string) plan.Target {
		return plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: name}
	}
	helm := map[string]string{"job": "rel-argocd-application-controller-metrics", "namespace": "argocd", "service": "rel-argocd-application-controller-metrics",
		"container": "application-controller", "endpoint": "http-metrics"}
	return map[string]layout{
		"upstream manifests, by pod annotations": {sts("argocd-application-controller"),
			map[string]string{"job": "argocd-metrics", "namespace": "argocd", "app_kubernetes_io_name": "argocd-application-controller"}, "exported_namespace"},
		"Helm's ServiceMonitor":                  {sts("rel-argocd-application-controller"), helm, "exported_namespace"},
		"Helm's ServiceMonitor with honorLabels": {sts("rel-argocd-application-controller"), helm, "namespace"},
		"the operator's ServiceMonitor": {sts("example-application-controller"),
			map[string]string{"job": "example-metrics", "namespace": "argocd", "service": "example-metrics", "endpoint": "metrics"}, "exported_namespace"},
	}
}

// The past that Prometheus is given: 4 h of scrapes a minute apart, up to now.
var (
	now       = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	start     = now.Add(-4 * time.Hour)
	moved     = now.Add(-30 * time.Minute) // b goes from pod 0 to pod 1
	restarted = now.Add(-40 * time.Minute) // pod 1, which has c
	justMoved = now.Add(-5 * time.Minute)  // d goes from pod 0 to pod 1
)

const scrape = time.Minute

// history collects the samples of one layout by metric family, as the OpenMetrics format wants them.
type history struct {
	layout
	families map[string]*bytes.Buffer
}

func (h *history) add(family, suffix string, pod int, labels map[string]string, from, to time.Time, value func(minutes int) float64) {
	all := maps.Clone(h.labels)
	all["pod"] = fmt.Sprintf("%s-%d", h.workload.Name, pod)
	maps.Copy(all, labels)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", name, all[name]))
	}
	out := h.families[family]
	if out == nil {
		out = &bytes.Buffer{}
		h.families[family] = out
	}
	for i, t := 0, from; !t.After(to); i, t = i+1, t.Add(scrape) {
		fmt.Fprintf(out, "%s%s{%s} %g %d\n", family, suffix, strings.Join(pairs, ","), value(i), t.Unix())
	}
}

func constant(v float64) func(int) float64 { return func(int) float64 { return v } }

func rising(aMinute float64) func(int) float64 {
	return func(i int) float64 { return float64(i) * aMinute }
}

// risenTo is a counter that rose and stands still since.
func risenTo(aMinute float64, minutes int) func(int) float64 {
	return func(i int) float64 { return float64(min(i, minutes)) * aMinute }
}

func (h *history) app(pod int, server, namespace, name string, from, to time.Time) {
	h.add("argocd_app_info", "", pod, map[string]string{"dest_server": server, h.own: namespace, "name": name}, from, to, constant(1))
}

func (h *history) events(pod int, server string, from, to time.Time, value func(int) float64) {
	h.add("argocd_cluster_events", "_total", pod, map[string]string{"server": server}, from, to, value)
}

func (h *history) reconciles(pod int, server string, from, to time.Time, value func(int) float64) {
	h.add("argocd_app_reconcile", "_count", pod, map[string]string{"dest_server": server, h.own: "argocd"}, from, to, value)
}

func (h *history) objects(pod int, server string, from, to time.Time, v float64) {
	h.add("argocd_cluster_api_resource_objects", "", pod, map[string]string{"server": server}, from, to, constant(v))
}

func (h *history) write() *bytes.Buffer {
	a, b, c, d := "https://a.example.com", "https://b.example.com", "https://c.example.com", "https://d.example.com"
	// a stays on pod 0; two of its Applications have one name in two namespaces.
	h.objects(0, a, start, now, 100)
	h.events(0, a, start, now, rising(60))
	h.reconciles(0, a, start, now, rising(30))
	for _, app := range [][2]string{{"argocd", "one"}, {"argocd", "two"}, {"team-1", "web"}, {"team-2", "web"}} {
		h.app(0, a, app[0], app[1], start, now)
	}
	// b moved half an hour ago: pod 0 loses its gauges at once, and keeps its counters.
	before := int(moved.Sub(start) / scrape)
	h.objects(0, b, start, moved, 200)
	h.objects(1, b, moved, now, 220)
	h.events(0, b, start, now, risenTo(120, before))
	h.events(1, b, moved, now, rising(120))
	h.reconciles(0, b, start, now, risenTo(60, before))
	h.reconciles(1, b, moved, now, rising(60))
	h.app(0, b, "argocd", "three", start, moved)
	h.app(1, b, "argocd", "three", moved, now)
	// c's pod restarted, and its counters began anew. Its Application writes the URL with a slash.
	sinceRestart := restarted.Add(scrape)
	h.objects(1, c, start, now, 70)
	h.events(1, c, start, now, func(i int) float64 {
		if t := start.Add(time.Duration(i) * scrape); t.After(restarted) {
			return t.Sub(restarted).Minutes() * 60
		}
		return float64(i) * 60
	})
	h.reconciles(1, c+"/", start, now, func(i int) float64 {
		if t := start.Add(time.Duration(i) * scrape); !t.Before(sinceRestart) {
			return t.Sub(restarted).Minutes() * 30
		}
		return float64(i) * 30
	})
	h.app(1, c+"/", "argocd", "four", start, now)
	// d moved five minutes ago: both pods are within every window.
	before = int(justMoved.Sub(start) / scrape)
	h.objects(0, d, start, justMoved, 80)
	h.objects(1, d, justMoved, now, 80)
	h.events(0, d, start, now, risenTo(60, before))
	h.events(1, d, justMoved, now, rising(60))
	h.reconciles(0, d, start, now, risenTo(30, before))
	h.reconciles(1, d, justMoved, now, rising(30))
	for _, name := range []string{"five", "six"} {
		h.app(0, d, "argocd", name, start, justMoved)
		h.app(1, d, "argocd", name, justMoved, now)
	}
	// The in-cluster has no Application that names it, and one Application names no cluster.
	h.objects(0, plan.InClusterServer, start, now, 50)
	h.events(0, plan.InClusterServer, start, now, rising(15))
	h.app(0, "", "argocd", "nowhere", start, now)
	h.reconciles(0, "", start, now, rising(600))
	// Another Argo CD in the same Prometheus manages a, too.
	other := *h
	other.workload.Name = "other-argocd-application-controller"
	other.objects(0, a, start, now, 9999)
	other.events(0, a, start, now, rising(9999))
	other.reconciles(0, a, start, now, rising(9999))
	other.app(0, a, "argocd", "theirs", start, now)
	return h.text()
}

func (h *history) text() *bytes.Buffer {
	types := map[string]string{"argocd_app_info": "gauge", "argocd_cluster_events": "counter", "argocd_app_reconcile": "histogram", "argocd_cluster_api_resource_objects": "gauge"}
	var out bytes.Buffer
	for _, family := range slices.Sorted(maps.Keys(h.families)) {
		fmt.Fprintf(&out, "# TYPE %s %s\n", family, types[family])
		out.Write(h.families[family].Bytes())
	}
	out.WriteString("# EOF\n")
	return &out
}

// serve runs a real Prometheus with that past and returns its URL.
func serve(t *testing.T, binaries plane.Binaries, past *bytes.Buffer) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string][]byte{"past.om": past.Bytes(), "prometheus.yml": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), binaries.Path("promtool"), "tsdb", "create-blocks-from", "openmetrics", filepath.Join(dir, "past.om"), filepath.Join(dir, "data")).CombinedOutput(); err != nil {
		t.Fatalf("importing the past: %v\n%s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binaries.Path("prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--storage.tsdb.retention.time=3650d", "--storage.tsdb.no-lockfile", "--web.listen-address="+address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Log(log.String())
		}
	})
	awaitReady(t, "http://"+address, ended)
	return "http://" + address
}

func awaitReady(t *testing.T, url string, ended <-chan struct{}) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		if response, err := http.Get(url + "/-/ready"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ended:
			t.Fatal("Prometheus ended by itself")
		case <-deadline:
			t.Fatal("Prometheus is not ready within a minute")
		case <-tick.C:
		}
	}
}

func clusters(t *testing.T) discover.Fleet {
	t.Helper()
	in := discover.Input{Namespace: "argocd", InClusterEnabled: true}
	for _, name := range []string{"a", "b", "c", "d"} {
		in.Secrets = append(in.Secrets, discover.Secret{UID: name, Name: name, Cluster: name, Server: "https://" + name + ".example.com", HasData: true})
	}
	fleet, _, err := discover.Discover(in, discover.Known{}, discover.Options{}, now)
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

// The default metrics give every cluster its own load however Argo CD is installed and scraped, across a move, a restart
// and other people's series. This runs a real Prometheus; the first run builds it.
func TestTheDefaultMetricsOnEveryLayout(t *testing.T) {
	binaries, err := plane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	type value struct {
		Value float64
		Flag  poll.Flag
	}
	fresh := func(v float64) value { return value{v, poll.Fresh} }
	want := map[string]map[string]value{
		"objects":    {"a": fresh(100), "b": fresh(220), "c": fresh(70), "d": fresh(80), "in-cluster": fresh(50)},
		"events":     {"a": fresh(1), "b": fresh(2), "c": fresh(1), "d": fresh(1), "in-cluster": fresh(0.25)},
		"reconciles": {"a": fresh(0.5), "b": fresh(1), "c": fresh(0.5), "d": fresh(0.5), "in-cluster": {0, poll.NoData}},
		"apps":       {"a": fresh(4), "b": fresh(1), "c": fresh(1), "d": fresh(2), "in-cluster": {0, poll.NoData}},
	}
	fleet := clusters(t)
	for name, l := range layouts() {
		t.Run(name, func(t *testing.T) {
			h := history{layout: l, families: map[string]*bytes.Buffer{}}
			client, err := poll.New(poll.Config{URL: serve(t, binaries, h.write()), Timeout: time.Minute, Pods: poll.PodsMatcher("pod", l.workload), HTTP: config.DefaultHTTPClientConfig})
			if err != nil {
				t.Fatal(err)
			}
			fetched := client.Fetch(t.Context(), poll.DefaultMetrics(), fleet, now)
			table, err := poll.Join(poll.DefaultMetrics(), fleet, fetched, poll.LastGood{}, poll.Options{MinCoverage: 0.9, MaxDrop: 0.5, MaxAge: 10 * time.Minute}, now)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]map[string]value{}
			for _, c := range table.Columns {
				got[c.ID] = map[string]value{}
				for i, s := range table.Shards {
					got[c.ID][s.ID] = value{c.Values[i], c.Flags[i]}
					if at := c.SampledAt[i]; c.Flags[i] == poll.Fresh && at != now.UnixMilli() {
						t.Errorf("%s of %s was sampled at %d, want %d", c.ID, s.ID, at, now.UnixMilli())
					}
				}
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(table.Problems) > 0 || table.Frozen {
				t.Errorf("problems: %v, frozen: %v", table.Problems, table.Frozen)
			}
		})
	}
}
