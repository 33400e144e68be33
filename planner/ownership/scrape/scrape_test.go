package scrape

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// serve starts a pod that answers so, and says where it is.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func write(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// endless sends a line again and again until nobody listens any more.
func endless(line string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		lines := strings.Repeat(line, 1+(64<<10)/len(line))
		for {
			if _, err := io.WriteString(w, lines); err != nil {
				return
			}
		}
	}
}

// stall sends a text and then nothing, until the asker has left.
func stall(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func running(name, address string) observed.Controller {
	return observed.Controller{Pod: observed.Pod{Name: name, Ready: true}, Address: address, Running: true}
}

func TestScrapeAsksEachPodAndSaysWhatWentWrong(t *testing.T) {
	const sample = "argocd_app_info{dest_server=\"https://a\"} 1\nprocess_resident_memory_bytes 5\n"
	var elsewhere atomic.Int32
	aside := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = io.WriteString(w, sample)
	})
	closed := httptest.NewServer(write(sample))
	closed.Close()
	asked := map[string]string{}
	pods := map[string]struct {
		pod  observed.Controller
		want string // the error; empty: it answers with the sample
	}{
		"good": {pod: running("good", serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked["path"], asked["Accept"], asked["Accept-Encoding"] = r.URL.Path, r.Header.Get("Accept"), r.Header.Get("Accept-Encoding")
			_, _ = io.WriteString(w, sample)
		}))},
		"unready": {pod: observed.Controller{Pod: observed.Pod{Name: "unready"},
			Address: serve(t, write(sample)), Running: true}},
		"terminating": {pod: observed.Controller{Pod: observed.Pod{Name: "terminating"},
			Address: serve(t, write(sample)), Running: true, Terminating: true}},
		"silent":   {pod: running("silent", serve(t, stall(""))), want: "context deadline exceeded"},
		"stalling": {pod: running("stalling", serve(t, stall(sample+"argocd_app"))), want: "context deadline exceeded"},
		"huge":     {pod: running("huge", serve(t, endless("argocd_other{a=\"b\"} 1\n"))), want: "the answer is too large"},
		"one line": {pod: running("one line", serve(t, endless("argocd_other"))), want: "the answer is too large"},
		"garbage":  {pod: running("garbage", serve(t, write("\x00\x01\x02"))), want: "line 1: the text ends in the middle"},
		"a page":   {pod: running("a page", serve(t, write("<html>\n"))), want: "line 1: this is no line"},
		"cut off": {pod: running("cut off", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, sample)
		})), want: "unexpected EOF"},
		"redirecting": {pod: running("redirecting", serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+aside+"/metrics", http.StatusFound)
		})), want: "it answers 302 instead of 200"},
		"failing": {pod: running("failing", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, sample)
		})), want: "it answers 500 instead of 200"},
		"gone": {pod: running("gone", closed.Listener.Addr().String()), want: "connection refused"},
		"not running": {pod: observed.Controller{Pod: observed.Pod{Name: "not running"},
			Address: aside}, want: "its container does not run"},
		"not placed": {pod: observed.Controller{Pod: observed.Pod{Name: "not placed"},
			Running: true}, want: "it has no address yet"},
		"odd": {pod: running("odd", "a b"), want: "invalid character"},
	}
	patient := NewScraper(Options{Timeout: time.Minute, MaxBody: 256 << 10})
	hasty := NewScraper(Options{Timeout: 100 * time.Millisecond})
	var reports []PodReport
	for _, p := range pods {
		scraper := patient
		if strings.Contains(p.want, "deadline") {
			scraper = hasty
		}
		reports = append(reports, scraper.Scrape(t.Context(), []observed.Controller{p.pod}, noon)...)
	}
	for _, r := range reports {
		want := PodReport{Controller: pods[r.Name].pod}
		if pods[r.Name].want == "" {
			want.Memory, want.SampledAt, want.Servers = 5, noon(), map[string]ServerReport{"https://a": {Apps: 1}}
		} else if !strings.HasPrefix(r.Err, fmt.Sprintf("asking pod %q for its metrics: ", r.Name)) || !strings.Contains(r.Err, pods[r.Name].want) {
			t.Errorf("pod %q: got the error %q, want one that says %q", r.Name, r.Err, pods[r.Name].want)
		}
		r.Err = ""
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("pod %q (-want +got):\n%s", r.Name, diff)
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
	if diff := cmp.Diff(map[string]string{"path": "/metrics", "Accept": "text/plain;version=0.0.4", "Accept-Encoding": ""}, asked); diff != "" {
		t.Errorf("what was asked for (-want +got):\n%s", diff)
	}
}

func TestEightPodsAreAskedAtOnce(t *testing.T) {
	var mu sync.Mutex
	atOnce, most := 0, 0
	full := make(chan struct{})
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		atOnce++
		most = max(most, atOnce)
		if atOnce == 8 {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		<-full
		mu.Lock()
		atOnce--
		mu.Unlock()
		_, _ = io.WriteString(w, "go_info 1\n")
	})
	pods := make([]observed.Controller, 40)
	for i := range pods {
		pods[i] = running(fmt.Sprint(i), address)
	}
	for i, r := range NewScraper(Options{Timeout: time.Minute}).Scrape(t.Context(), pods, noon) {
		if !r.Answered() || r.Name != fmt.Sprint(i) {
			t.Errorf("report %d is of pod %q: %s", i, r.Name, r.Err)
		}
	}
	if most != 8 {
		t.Errorf("%d pods were asked at once, want 8", most)
	}
}

func TestAnAskerThatIsStoppedLeavesAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	r := NewScraper(Options{Timeout: time.Hour}).Scrape(ctx, []observed.Controller{running("a", address)}, noon)
	if r[0].Answered() || !strings.Contains(r[0].Err, "context canceled") {
		t.Errorf("got %q, want that it was stopped", r[0].Err)
	}
}

// TestPodsThatKeepSilentKeepNobodyForLong: whoever makes pods makes as many as he likes that take a connection and say nothing.
func TestPodsThatKeepSilentKeepNobodyForLong(t *testing.T) {
	asked := atomic.Int64{}
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	})
	pods := make([]observed.Controller, 200)
	for i := range pods {
		pods[i] = running(fmt.Sprint(i), address)
	}
	reports := NewScraper(Options{Timeout: time.Hour, Total: 50 * time.Millisecond}).Scrape(t.Context(), pods, noon)
	if last := reports[199].Err; last != `asking pod "199" for its metrics: asking all pods took more than 50ms` || asked.Load() > 8 {
		t.Errorf("%d were asked; of the last: %s", asked.Load(), last)
	}
}

func TestAnInjectedClientKeepsItsTransportButFollowsNothing(t *testing.T) {
	var followed atomic.Int32
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+elsewhere, http.StatusMovedPermanently)
	})
	dialled := 0
	own := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		dialled++
		return http.DefaultTransport.RoundTrip(r)
	})}
	NewScraper(Options{Client: own}).Scrape(t.Context(), []observed.Controller{running("a", address)}, noon)
	if dialled != 1 || followed.Load() != 0 || own.CheckRedirect != nil {
		t.Errorf("asked %d times through the client, followed %d times, client changed: %v; want 1, 0, false", dialled, followed.Load(), own.CheckRedirect != nil)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPodsAreAskedByTheProxyThatTheEnvironmentNames(t *testing.T) {
	got := reflect.ValueOf(NewClient().Transport.(*http.Transport).Proxy).Pointer() // the environment is read once a process
	if got != reflect.ValueOf(http.ProxyFromEnvironment).Pointer() {
		t.Error("the client finds its proxy elsewhere")
	}
}

// apps writes the metrics that a pod with that many Applications on that many clusters shows: for each Application its
// info, a condition, its orphaned resources, its syncs and its requests by kind and code, for each cluster its gauges,
// events and reconciliations, as argo-cd v3.2.11 labels them.
func apps(n, clusters int) string {
	var b strings.Builder
	for i := range n {
		app := fmt.Sprintf(`name="payments-service-%05d",namespace="team-%02d",project="platform"`, i, i%40)
		server := fmt.Sprintf("https://api.cluster-%04d.eu-central.example.com:6443", i%clusters)
		fmt.Fprintf(&b, "argocd_app_info{autosync_enabled=\"true\",dest_namespace=\"payments-%d\",dest_server=\"%s\",health_status=\"Healthy\",%s,operation=\"\",repo=\"https://git.example.com/platform/deployments\",sync_status=\"Synced\"} 1\n", i, server, app)
		fmt.Fprintf(&b, "argocd_app_condition{condition=\"SyncError\",%s} 1\nargocd_app_orphaned_resources_count{%s} 0\n", app, app)
		fmt.Fprintf(&b, "argocd_app_sync_total{dest_server=\"%s\",dry_run=\"false\",%s,phase=\"Succeeded\"} 12\n", server, app)
		for _, kind := range []string{"Deployment", "Service", "ConfigMap", "Ingress", "ServiceAccount"} {
			for _, code := range []string{"200", "404"} {
				fmt.Fprintf(&b, "argocd_app_k8s_request_total{dry_run=\"false\",%s,resource_kind=\"%s\",resource_namespace=\"payments-%d\",response_code=\"%s\",server=\"%s\",verb=\"Patch\"} 31\n", app, kind, i, code, server)
			}
		}
	}
	for c := range clusters {
		server := fmt.Sprintf("https://api.cluster-%04d.eu-central.example.com:6443", c)
		fmt.Fprintf(&b, "argocd_cluster_cache_age_seconds{server=\"%s\"} 321\nargocd_cluster_connection_status{k8s_version=\"1.34\",server=\"%s\"} 1\nargocd_cluster_info{k8s_version=\"1.34\",name=\"c\",server=\"%s\"} 1\n", server, server, server)
		for _, bound := range []string{"0.25", "0.5", "1", "2", "4", "8", "16", "+Inf"} {
			fmt.Fprintf(&b, "argocd_app_reconcile_bucket{dest_server=\"%s\",namespace=\"argocd\",le=\"%s\"} 90\n", server, bound)
		}
		fmt.Fprintf(&b, "argocd_app_reconcile_sum{dest_server=\"%s\",namespace=\"argocd\"} 41.25\nargocd_app_reconcile_count{dest_server=\"%s\",namespace=\"argocd\"} 90\n", server, server)
		for _, kind := range []string{"Pod", "ReplicaSet", "Endpoints"} {
			fmt.Fprintf(&b, "argocd_cluster_events_total{group=\"\",kind=\"%s\",server=\"%s\"} 9211\n", kind, server)
		}
	}
	b.WriteString("process_resident_memory_bytes 1.86179584e+08\n")
	return b.String()
}

// TestTwentyMegabytesAreReadWithoutKeepingThem: it runs beside no other test, whose memory would count.
func TestTwentyMegabytesAreReadWithoutKeepingThem(t *testing.T) {
	text := apps(5000, 500)
	if len(text) < 15<<20 {
		t.Fatalf("the text has only %d bytes", len(text))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, err := readAll(text)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 1<<20 {
		t.Errorf("reading %d bytes keeps %d, want at most 1 MiB", len(text), kept)
	}
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 2*uint64(len(text)) {
		t.Errorf("reading %d bytes allocated %d, want at most twice as many", len(text), spent)
	}
	want := ServerReport{Apps: 10, Cached: true, CacheAge: 321, Connected: true, Reconciles: 90, Seconds: 41.25, Events: 3 * 9211, Counts: ShowsEvents | ShowsReconciles}
	if got := r.Servers["https://api.cluster-0499.eu-central.example.com:6443"]; len(r.Servers) != 500 || got != want {
		t.Errorf("got %d servers, the last with %+v, want 500 with %+v", len(r.Servers), got, want)
	}
}

func BenchmarkReadMetrics(b *testing.B) {
	text := apps(5000, 500)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readAll(text); err != nil {
			b.Fatal(err)
		}
	}
}
