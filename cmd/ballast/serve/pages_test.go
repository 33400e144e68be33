package serve

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/cmd/ballast/fixture"
)

// counted is a gatherer that counts, and calls a function each time.
type counted struct {
	prometheus.Gatherer
	times atomic.Int64
	meets func()
}

func (c *counted) Gather() ([]*dto.MetricFamily, error) {
	c.times.Add(1)
	if c.meets != nil {
		c.meets()
	}
	return c.Gatherer.Gather()
}

// oneMetric is a registry with one gauge, and what /metrics says of it.
func oneMetric(t *testing.T, help string) (*prometheus.Registry, string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ballast_test", Help: help})
	registry.MustRegister(gauge)
	gauge.Set(7)
	return registry, "# HELP ballast_test " + help + "\n# TYPE ballast_test gauge\nballast_test 7\n"
}

// read is an answer to GET /metrics.
type read struct {
	Status         int
	Type, Encoding string
	Text           string // unpacked
}

func reads(t *testing.T, h http.Handler, accepts string) read {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	if accepts != "" {
		r.Header.Set("Accept-Encoding", accepts)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	got := read{w.Code, w.Header().Get("Content-Type"), w.Header().Get("Content-Encoding"), w.Body.String()}
	if got.Encoding == "gzip" {
		unpacked, err := gzip.NewReader(w.Body)
		fixture.MustDo(t, err)
		text, err := io.ReadAll(unpacked)
		fixture.MustDo(t, err)
		got.Text = string(text)
	}
	return got
}

// TestAnyNumberOfReadersCostsOneGatheringASecond: 64 at once, whatever they take, wait for one page, and it is answered
// until it is a second old.
func TestAnyNumberOfReadersCostsOneGatheringASecond(t *testing.T) {
	const readers = 64
	registry, text := oneMetric(t, "x")
	var asked sync.WaitGroup
	asked.Add(readers)
	from := &counted{Gatherer: registry, meets: asked.Wait} // the page is not there before all have asked
	now := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	handler := MetricsHandler(from, now)
	answers := make([]read, readers)
	var answered sync.WaitGroup
	for i := range readers {
		answered.Go(func() {
			asked.Done()
			answers[i] = reads(t, handler, []string{"", "gzip"}[i%2])
		})
	}
	answered.Wait()
	for i, got := range answers {
		want := read{http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", []string{"", "gzip"}[i%2], text}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("reader %d of %d (-want +got):\n%s", i, readers, diff)
		}
	}
	from.meets = nil
	for _, step := range []struct {
		passes time.Duration
		want   int64
	}{{0, 1}, {pageKeep - 1, 1}, {1, 2}, {0, 2}, {time.Hour, 3}} {
		now.SetTime(now.Now().Add(step.passes))
		if got := reads(t, handler, "gzip"); got.Status != http.StatusOK {
			t.Errorf("after %s more it is answered %+v", step.passes, got)
		}
		if got := from.times.Load(); got != step.want {
			t.Errorf("after %s more it was gathered %d times, want %d", step.passes, got, step.want)
		}
	}
}

// TestAFloodOfReadersTurnsNoScrapeAway reads a real port on 64 connections of one address without a pause, and beside
// them as Prometheus does.
func TestAFloodOfReadersTurnsNoScrapeAway(t *testing.T) {
	const connections, scrapes = 64, 50
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector())
	listener, err := ListenPlain("127.0.0.1", 0)
	fixture.MustDo(t, err)
	server := PlainServer(MetricsHandler(registry, clock.RealClock{}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	url := "http://" + listener.Addr().String() + "/metrics"
	flood, end := context.WithCancel(t.Context())
	var flooding, running sync.WaitGroup
	running.Add(connections)
	for range connections {
		flooding.Go(func() {
			client, once := readerAt(fixture.Attacker), sync.OnceFunc(running.Done)
			for flood.Err() == nil {
				_, _ = scrape(flood, client, url) // of its answers none is asked for
				once()
			}
		})
	}
	running.Wait()
	client := readerAt(fixture.ApiServer)
	for i := range scrapes {
		if status, err := scrape(t.Context(), client, url); err != nil || status != http.StatusOK {
			t.Errorf("scrape %d of %d is answered %d: %v", i, scrapes, status, err)
		}
	}
	end()
	flooding.Wait()
}

// readerAt is a client on one connection from an address of loopback.
func readerAt(address string) *http.Client {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: d.DialContext, MaxConnsPerHost: 1}}
}

func scrape(ctx context.Context, client *http.Client, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// TestAPageHasTwoForms: what a head asks for beside makes no third.
func TestAPageHasTwoForms(t *testing.T) {
	registry, text := oneMetric(t, "x")
	handler := MetricsHandler(registry, clock.RealClock{})
	for accepts, want := range map[string]string{
		"": "", "identity": "", "zstd, br": "", "gzip;q=0": "", "gzip; q=0.000, br": "", "gzipped": "", ";;;,,=": "",
		"gzip": "gzip", "GZIP": "gzip", "br;q=1, gzip;q=0.8": "gzip", "zstd,gzip": "gzip",
	} {
		want := read{http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", want, text}
		if diff := cmp.Diff(want, reads(t, handler, accepts)); diff != "" {
			t.Errorf("Accept-Encoding %q (-want +got):\n%s", accepts, diff)
		}
	}
}

// silent is a reader that keeps nothing.
type silent struct{ header http.Header }

func (s silent) Header() http.Header { return s.header }

func (s silent) Write(p []byte) (int, error) { return len(p), nil }

func (s silent) WriteHeader(int) {}

// TestReadersOfAPageCostNoMemory: a thousand of them together allocate less than one page, compressed or not.
func TestReadersOfAPageCostNoMemory(t *testing.T) {
	registry, text := oneMetric(t, strings.Repeat("x", 4<<20))
	handler := MetricsHandler(registry, clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	packing := r.Clone(t.Context())
	packing.Header.Set("Accept-Encoding", "gzip")
	answer := func() {
		handler.ServeHTTP(silent{http.Header{}}, r)
		handler.ServeHTTP(silent{http.Header{}}, packing)
	}
	answer() // which makes both forms
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 500 {
		answer()
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took >= uint64(len(text)) {
		t.Errorf("1,000 readers of a page of %d bytes allocate %d bytes", len(text), took)
	}
}

// failing is a gatherer that cannot.
type failing struct{}

func (failing) Gather() ([]*dto.MetricFamily, error) {
	return nil, errors.New("two collectors disagree")
}

// TestMetricsThatCannotBeGatheredAreAnError, gathered as rarely as others.
func TestMetricsThatCannotBeGatheredAreAnError(t *testing.T) {
	from := &counted{Gatherer: failing{}}
	handler := MetricsHandler(from, clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)))
	for range 3 {
		want := read{http.StatusInternalServerError, "text/plain; charset=utf-8", "",
			"gathering the metrics: two collectors disagree\n"}
		if diff := cmp.Diff(want, reads(t, handler, "gzip")); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
	}
	if n := from.times.Load(); n != 1 {
		t.Errorf("it was gathered %d times", n)
	}
}

// TestAReaderThatLeavesIsNotWaitedFor: it ends at once though the page is not made yet, and that is made all the same.
func TestAReaderThatLeavesIsNotWaitedFor(t *testing.T) {
	registry, text := oneMetric(t, "x")
	begun, goOn := make(chan struct{}), make(chan struct{})
	from := &counted{Gatherer: registry, meets: func() { close(begun); <-goOn }}
	handler := MetricsHandler(from, clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)))
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		r := httptest.NewRequestWithContext(leaving, http.MethodGet, "/metrics", nil)
		handler.ServeHTTP(silent{http.Header{}}, r)
	}()
	<-begun
	leave()
	<-left
	close(goOn)
	if got := reads(t, handler, ""); got.Text != text || from.times.Load() != 1 {
		t.Errorf("the next reader is answered %+v after %d gatherings", got, from.times.Load())
	}
}
