package poll_test

import (
	"bytes"
	cmpopt "cmp"
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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/config"

	"ballast/e2e/assets"
	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/observed"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/poll/promql"
)

// layout is how an installation of Argo CD is scraped. Labels are those of the target; own is what becomes of a
// `namespace` label that argocd_app_* bring along: exported_namespace, or, with honorLabels, namespace itself.
type layout struct {
	workload plan.Target
	labels   map[string]string
	own      string
	tellers  []string // what tells of a target that is there
	stranger string   // the namespace of another workload of that name; empty is none
	net      int      // the second part of the pods' addresses

	foreign  map[string]string // the labels by which the other workload's series differ, of another Kubernetes cluster
	matchers map[string]string // those that the configuration names
	podLabel string            // the label with a pod's name; empty is pod
}

func layouts() map[string]layout {
	sts := func(name string) plan.Target {
		return plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: name}
	}
	both, memory := []string{"up", "process_resident_memory_bytes"}, []string{"process_resident_memory_bytes"}
	helm := map[string]string{"job": "rel-argocd-application-controller-metrics", "namespace": "argocd", "service": "rel-argocd-application-controller-metrics",
		"container": "application-controller", "endpoint": "http-metrics"}
	byPod := maps.Clone(helm)
	byPod["instance"] = ""
	all := map[string]layout{
		"upstream manifests, by pod annotations": {sts("argocd-application-controller"),
			map[string]string{"job": "argocd-metrics", "namespace": "argocd", "app_kubernetes_io_name": "argocd-application-controller"}, "exported_namespace", both, "tenant", 0, nil, nil, ""},
		"Helm's ServiceMonitor":                  {sts("rel-argocd-application-controller"), helm, "exported_namespace", both, "tenant", 0, nil, nil, ""},
		"Helm's ServiceMonitor with honorLabels": {sts("rel-argocd-application-controller"), helm, "namespace", both, "tenant", 0, nil, nil, ""},
		"the operator's ServiceMonitor": {sts("example-application-controller"),
			map[string]string{"job": "example-metrics", "namespace": "argocd", "service": "example-metrics", "endpoint": "metrics"}, "exported_namespace", both, "tenant", 0, nil, nil, ""},
		"instance is the pod's name":                 {sts("argocd-application-controller"), byPod, "exported_namespace", both, "tenant", 0, nil, nil, ""},
		"honorLabels, and a namespace of its Apps'":  {sts("argocd-application-controller"), helm, "namespace", both, "team-1", 0, nil, nil, ""},
		"instance is the pod's name, honorLabels":    {sts("argocd-application-controller"), byPod, "namespace", both, "", 0, nil, nil, ""},
		"static, with the pod and without namespace": {sts("argocd-application-controller"), map[string]string{"job": "argocd"}, "namespace", both, "", 0, nil, nil, ""},
		"without up":                   {sts("argocd-application-controller"), helm, "exported_namespace", memory, "tenant", 0, nil, nil, ""},
		"without up, with honorLabels": {sts("argocd-application-controller"), helm, "namespace", memory, "tenant", 0, nil, nil, ""},
	}
	for _, name := range []string{"Helm's ServiceMonitor", "Helm's ServiceMonitor with honorLabels", "instance is the pod's name"} {
		l := all[name]
		l.labels, l.stranger = maps.Clone(l.labels), "argocd"
		l.labels["cluster"], l.foreign, l.matchers = "prod", map[string]string{"cluster": "dev"}, map[string]string{"cluster": "prod"}
		all[name+", of several Kubernetes clusters"] = l
		l = all[name]
		l.podLabel = "kubernetes_pod_name"
		all[name+", the pod in another label"] = l
	}
	return all
}

// The past that Prometheus is given: 4 h of scrapes a minute apart, up to now.
var (
	now       = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	start     = now.Add(-4 * time.Hour)
	moved     = now.Add(-30 * time.Minute) // b goes from pod 0 to pod 1
	restarted = now.Add(-40 * time.Minute) // pod 1, which has c
	justMoved = now.Add(-5 * time.Minute)  // d goes from pod 0 to pod 1
)

const scrapeEvery = time.Minute

// history collects the samples of one layout by metric family, as the OpenMetrics format wants them.
type history struct {
	layout
	families map[string]*bytes.Buffer
}

func (h *history) add(family, suffix string, pod int, labels map[string]string, from, to time.Time, value func(minutes int) float64) {
	all := maps.Clone(h.labels)
	podLabel := cmpopt.Or(h.podLabel, "pod")
	all[podLabel] = fmt.Sprintf("%s-%d", h.workload.Name, pod)
	maps.Copy(all, labels)
	_, byPod := h.labels["instance"]
	out := h.families[family]
	if out == nil {
		out = &bytes.Buffer{}
		h.families[family] = out
	}
	for i, t := 0, from; !t.After(to); i, t = i+1, t.Add(scrapeEvery) {
		if all["instance"] = h.address(pod, t); byPod {
			all["instance"] = all[podLabel]
		}
		fmt.Fprintf(out, "%s%s{%s} %g %d\n", family, suffix, pairs(all), value(i), t.Unix())
	}
}

// address is the pod's at a time: pod 1 got another one when it restarted, and pod 2 just now, so that Prometheus shows both.
func (h *history) address(pod int, t time.Time) string {
	if pod == 1 && !t.After(restarted) || pod == 2 && !t.After(now.Add(-3*time.Minute)) {
		return fmt.Sprintf("10.%d.9.%d:8082", h.net, pod+1)
	}
	return fmt.Sprintf("10.%d.0.%d:8082", h.net, pod+1)
}

func pairs(labels map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", name, labels[name]))
	}
	return strings.Join(pairs, ",")
}

// targets tells that the pods are scraped, and since when their processes run.
func (h *history) targets(memory float64, since time.Time) {
	for pod := range 3 {
		h.add("process_start_time_seconds", "", pod, nil, start, now, func(minutes int) float64 {
			if pod == 1 && start.Add(time.Duration(minutes)*scrapeEvery).After(restarted) {
				return float64(restarted.Unix())
			}
			return float64(since.Unix())
		})
	}
	for _, teller := range h.tellers {
		for pod := range 3 {
			h.add(teller, "", pod, nil, start, now, constant(map[string]float64{"up": 1, "process_resident_memory_bytes": memory}[teller]))
		}
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

// caches says of a cluster how old its cache is.
func (h *history) caches(pod int, server string, age float64) {
	h.add("argocd_cluster_cache_age_seconds", "", pod, map[string]string{"server": server}, start, now, constant(age))
	h.add("argocd_cluster_connection_status", "", pod, map[string]string{"server": server}, start, now, constant(1))
}

// spoof is a workload of the same name in a tenant's namespace, scraped like Argo CD's: what its pods say of clusters, with labels
// as Argo CD's have, and with Applications without a namespace.
func (h *history) spoof() {
	other := *h
	other.labels, other.net = maps.Clone(h.labels), 99
	other.labels["endpoint"] = "theirs"
	maps.Copy(other.labels, h.foreign)
	if _, named := h.labels["namespace"]; named {
		other.labels["namespace"] = h.stranger
	}
	other.targets(9e9, start.Add(-17*time.Hour))
	for _, server := range []string{"https://a.example.com", "https://b.example.com", plan.InClusterServer} {
		for pod := range 2 {
			other.objects(pod, server, start, now, 1e9)
			other.events(pod, server, start, now, rising(1e6))
			other.reconciles(pod, server, start, now, rising(1e6))
			other.caches(pod, server, -1)
			for i := range 5 {
				other.app(pod, server, "x", string(rune('a'+i)), start, now)
			}
			if h.own == "exported_namespace" { // else Argo CD's would be as it is
				bare := map[string]string{"dest_server": server, "name": "bare"}
				other.add("argocd_app_info", "", pod, bare, start, now, constant(1))
				delete(bare, "name")
				other.add("argocd_app_reconcile", "_count", pod, bare, start, now, rising(1e6))
			}
		}
	}
}

// named is a target without the label pod, whose page says that it is Argo CD's.
func (h *history) named() {
	other := *h
	other.labels, other.net = maps.Clone(h.labels), 97
	other.labels["namespace"], other.labels["endpoint"] = h.stranger, "page"
	other.objects(0, "https://a.example.com", start, now, 1e9)
	other.reconciles(0, "https://a.example.com", start, now, rising(1e6))
	other.app(0, "https://a.example.com", "x", "named", start, now)
}

func (h *history) write() *bytes.Buffer {
	h.targets(1<<30, start.Add(-time.Hour))
	h.caches(0, "https://a.example.com", 17)
	if h.stranger != "" {
		h.spoof()
		if _, named := h.labels["namespace"]; named && h.stranger != h.workload.Namespace {
			h.named()
		}
	}
	a, b, c, d := "https://a.example.com", "https://b.example.com", "https://c.example.com", "https://d.example.com"
	// a stays on pod 0; two of its Applications have one name in two namespaces.
	h.objects(0, a, start, now, 100)
	h.events(0, a, start, now, rising(60))
	h.reconciles(0, a, start, now, rising(30))
	for _, app := range [][2]string{{"argocd", "one"}, {"argocd", "two"}, {"team-1", "web"}, {"team-2", "web"}} {
		h.app(0, a, app[0], app[1], start, now)
	}
	// b moved half an hour ago: pod 0 loses its gauges at once, and keeps its counters.
	before := int(moved.Sub(start) / scrapeEvery)
	h.objects(0, b, start, moved, 200)
	h.objects(1, b, moved, now, 220)
	h.events(0, b, start, now, risenTo(120, before))
	h.events(1, b, moved, now, rising(120))
	h.reconciles(0, b, start, now, risenTo(60, before))
	h.reconciles(1, b, moved, now, rising(60))
	h.app(0, b, "argocd", "three", start, moved)
	h.app(1, b, "argocd", "three", moved, now)
	// c's pod restarted, and its counters began anew. Its Application writes the URL with a slash.
	sinceRestart := restarted.Add(scrapeEvery)
	h.objects(1, c, start, now, 70)
	h.events(1, c, start, now, func(i int) float64 {
		if t := start.Add(time.Duration(i) * scrapeEvery); t.After(restarted) {
			return t.Sub(restarted).Minutes() * 60
		}
		return float64(i) * 60
	})
	h.reconciles(1, c+"/", start, now, func(i int) float64 {
		if t := start.Add(time.Duration(i) * scrapeEvery); !t.Before(sinceRestart) {
			return t.Sub(restarted).Minutes() * 30
		}
		return float64(i) * 30
	})
	h.app(1, c+"/", "argocd", "four", start, now)
	// d moved five minutes ago: both pods are within every window.
	before = int(justMoved.Sub(start) / scrapeEvery)
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
	other.workload.Name, other.net = "other-argocd-application-controller", 98
	other.targets(5e9, start.Add(-9*time.Hour))
	other.objects(0, a, start, now, 9999)
	other.events(0, a, start, now, rising(9999))
	other.reconciles(0, a, start, now, rising(9999))
	other.app(0, a, "argocd", "theirs", start, now)
	return h.text()
}

func (h *history) text() *bytes.Buffer {
	types := map[string]string{"argocd_app_info": "gauge", "argocd_cluster_events": "counter", "argocd_app_reconcile": "histogram", "argocd_cluster_api_resource_objects": "gauge", "up": "gauge",
		"process_resident_memory_bytes": "gauge", "process_start_time_seconds": "gauge", "argocd_cluster_cache_age_seconds": "gauge", "argocd_cluster_connection_status": "gauge", "ballast:argocd_cluster_events:rate10m": "gauge",
		"container_memory_working_set_bytes": "gauge", "container_cpu_usage_seconds": "counter"}
	var out bytes.Buffer
	for _, family := range slices.Sorted(maps.Keys(h.families)) {
		fmt.Fprintf(&out, "# TYPE %s %s\n", family, types[family])
		out.Write(h.families[family].Bytes())
	}
	out.WriteString("# EOF\n")
	return &out
}

// serve runs a real Prometheus with that past and returns its URL.
func serve(t *testing.T, binaries assets.Binaries, past *bytes.Buffer) string {
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
	for range 5 {
		if url, taken := serveOn(t, binaries, dir, freeAddress(t)); !taken {
			return url
		}
	}
	t.Fatal("five free ports were another's by the time that Prometheus listened")
	return ""
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// serveOn runs it on an address. taken says that another listens there by now.
func serveOn(t *testing.T, binaries assets.Binaries, dir, address string) (url string, taken bool) {
	t.Helper()
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
	if awaitReady(t, "http://"+address, ended) {
		return "http://" + address, false
	}
	if !strings.Contains(log.String(), "address already in use") {
		t.Fatalf("Prometheus ended by itself:\n%s", log.String())
	}
	return "", true
}

// awaitReady reports whether it is ready before it ends.
func awaitReady(t *testing.T, url string, ended <-chan struct{}) bool {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		select {
		case <-ended:
			return false
		case <-deadline:
			t.Fatal("Prometheus is not ready within a minute")
		case <-tick.C:
		}
		response, err := http.Get(url + "/-/ready")
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return true
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
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	type value struct {
		Value float64
		Flag  measure.Flag
	}
	fresh := func(v float64) value { return value{v, measure.Fresh} }
	want := map[string]map[string]value{
		"objects":    {"a": fresh(100), "b": fresh(220), "c": fresh(70), "d": fresh(80), "in-cluster": fresh(50)},
		"events":     {"a": fresh(1), "b": fresh(2), "c": fresh(1), "d": fresh(1), "in-cluster": fresh(0.25)},
		"reconciles": {"a": fresh(0.5), "b": fresh(1), "c": fresh(0.5), "d": fresh(0.5), "in-cluster": {0, measure.NoData}},
		"apps":       {"a": fresh(4), "b": fresh(1), "c": fresh(1), "d": fresh(2), "in-cluster": {0, measure.NoData}},
	}
	fleet := clusters(t)
	for name, l := range layouts() {
		t.Run(name, func(t *testing.T) {
			h := history{layout: l, families: map[string]*bytes.Buffer{}}
			client := h.client(t, binaries)
			fetched := client.Fetch(t.Context(), poll.DefaultMetrics(), fleet, now)
			table, err := measure.Join(poll.DefaultMetrics(), fleet, fetched, measure.LastGood{}, measure.Options{MinCoverage: 0.9, MaxDrop: 0.5, MaxAge: 10 * time.Minute}, now)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]map[string]value{}
			for _, c := range table.Columns {
				got[c.ID] = map[string]value{}
				for i, s := range table.Shards {
					got[c.ID][s.ID] = value{c.Values[i], c.Flags[i]}
					if at := c.SampledAt[i]; c.Flags[i] == measure.Fresh && at != now.UnixMilli() {
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
			if diff := cmp.Diff(reports(l.workload.Name), scrape.Ask(t.Context(), client, controllers(l.workload.Name), now)); diff != "" {
				t.Errorf("who owns what (-want +got):\n%s", diff)
			}
		})
	}
}

func (h *history) client(t *testing.T, binaries assets.Binaries) *poll.Prometheus {
	t.Helper()
	client, err := poll.New(poll.Config{URL: serve(t, binaries, h.write()), Timeout: time.Minute, HTTP: config.DefaultHTTPClientConfig,
		Pods: promql.PodsMatcher(cmpopt.Or(h.podLabel, "pod"), h.workload) + promql.Matchers(h.matchers), PodLabel: h.podLabel, Namespace: h.workload.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func controllers(workload string) []observed.Controller {
	var pods []observed.Controller
	for pod := range 2 {
		pods = append(pods, observed.Controller{Pod: observed.Pod{Name: fmt.Sprintf("%s-%d", workload, pod)}})
	}
	return pods
}

// reports are what the pods of the history say of who owns what. Nobody says so of c: its one Application writes its URL with a slash,
// by which Argo CD finds no cluster, so it tells of no owner.
func reports(workload string) []scrape.PodReport {
	want := []scrape.PodReport{
		{Servers: map[string]scrape.ServerReport{
			"https://a.example.com": {Apps: 4, Cached: true, CacheAge: 17, Connected: true, Reconciles: 7200, Counts: scrape.ShowsReconciles}, "https://b.example.com": {Reconciles: 12600, Counts: scrape.ShowsReconciles}, "https://d.example.com": {Reconciles: 7050, Counts: scrape.ShowsReconciles}}},
		{Servers: map[string]scrape.ServerReport{
			"https://b.example.com": {Apps: 1, Reconciles: 1800, Counts: scrape.ShowsReconciles}, "https://d.example.com": {Apps: 2, Reconciles: 150, Counts: scrape.ShowsReconciles}}},
	}
	for i, pod := range controllers(workload) {
		pod.Memory = 1 << 30
		want[i].Controller, want[i].SampledAt, want[i].Quoted = pod, now, true
	}
	return want
}

// Where nothing tells Argo CD's pods from others of their name, nobody's figures count, and people are told why.
func TestPodsThatCannotBeToldApartRefuseTheMetrics(t *testing.T) {
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	const joined, all = "reconciles apps", "objects events reconciles apps"
	change := func(name string, f func(*layout)) layout {
		l := layouts()[name]
		l.labels = maps.Clone(l.labels)
		f(&l)
		return l
	}
	tests := map[string]struct {
		layout  layout
		refused string
		want    string
	}{
		"targets without a namespace": {change("static, with the pod and without namespace", func(l *layout) { l.stranger = "any" }), all,
			`prometheus scrapes two pods "argocd-application-controller-0", 10.0.0.1 and 10.99.0.1, and their targets have no label namespace that would tell whose they are: ` +
				`relabel __meta_kubernetes_namespace to namespace, or stop scraping the other one`},
		"one instance under honorLabels": {change("instance is the pod's name, honorLabels", func(l *layout) { l.stranger = "tenant" }), joined,
			`prometheus scrapes pod "argocd-application-controller-0" in namespaces "argocd" and "tenant" at one instance "argocd-application-controller-0", ` +
				`and honorLabels hides whose argocd_app_info is whose: set honorLabels: false, or let instance be the address`},
		"nothing tells of targets": {change("Helm's ServiceMonitor", func(l *layout) { l.tellers = nil }), joined,
			`prometheus has argocd_app_info of pod "rel-argocd-application-controller-0" at instance "10.0.0.1:8082", and neither up nor process_resident_memory_bytes of it ` +
				`to tell its namespace by: keep one of them, with the labels namespace, pod and instance that argocd_app_info has of its target`},
		"two Kubernetes clusters": {change("Helm's ServiceMonitor", func(l *layout) { l.stranger = "argocd" }), all,
			`prometheus scrapes two pods "rel-argocd-application-controller-0" of namespace "argocd", 10.0.0.1 and 10.99.0.1: ` +
				`name the label that tells them apart in poll.prometheus.matchers, as in {cluster: prod}, ask one that sees this Kubernetes cluster alone, or stop scraping the other one`},
		"two Kubernetes clusters, and instance is the pod's name": {change("instance is the pod's name", func(l *layout) {
			l.stranger, l.foreign = "argocd", map[string]string{"cluster": "dev"}
		}), all, `prometheus scrapes two processes as pod "argocd-application-controller-0" at instance "argocd-application-controller-0": ` +
			`name the label that tells them apart in poll.prometheus.matchers, as in {cluster: prod}, ask one that sees this Kubernetes cluster alone, or stop scraping the other one`},
		"another namespace alone": {change("Helm's ServiceMonitor", func(l *layout) { l.workload.Namespace = "argo" }), all,
			`prometheus scrapes pods of the application-controller's name in namespace "argocd", and none in "argo": ` +
				`scrape Argo CD's, or relabel __meta_kubernetes_namespace of its targets to namespace`},
	}
	fleet := clusters(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := history{layout: test.layout, families: map[string]*bytes.Buffer{}}
			client := h.client(t, binaries)
			var refused []string
			for _, f := range client.Fetch(t.Context(), poll.DefaultMetrics(), fleet, now) {
				if f.Err == "" {
					continue
				}
				refused = append(refused, f.Metric)
				if diff := cmp.Diff(poll.Fetched{Metric: f.Metric, Err: test.want}, f); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(test.refused, strings.Join(refused, " ")); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			for _, r := range scrape.Ask(t.Context(), client, controllers(test.layout.workload.Name), now) {
				if diff := cmp.Diff("asking Prometheus for argocd_app_info: "+test.want, r.Err); diff != "" {
					t.Errorf("who owns what (-want +got):\n%s", diff)
				}
			}
		})
	}
}
