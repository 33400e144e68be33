package matrix

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ballast/webhook/intake"
)

const (
	// beats is how many writes a way makes in a round: 4 s of 50 writes a second in all at 4 KiB, 13 s of 17 at 64 KiB.
	beats = 30
	// warmBeats come before the first round: connections, caches, the heap.
	warmBeats = 10
	// spares is how many Secrets a way writes by turns: a write of a second or more would conflict with another, and
	// what is then measured is the API server's retries.
	spares = 7
	// patience ends a write: a machine that is so far behind the rate measures nothing.
	patience = 5 * time.Second
	// wayLabel selects the webhook that a Secret is shown to.
	wayLabel = "bench"
)

// register serves each way by itself and shows it the Secrets of its label; the shipped configuration goes.
func (s *site) register(b *testing.B, ways []way) {
	b.Helper()
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		b.Fatal(err)
	}
	configs := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	shipped, err := configs.Get(b.Context(), "ballast.argocd", metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	own := &admissionregistration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "bench"}}
	for i, w := range ways {
		if w.serve == nil {
			continue
		}
		hook := shipped.Webhooks[0].DeepCopy()
		hook.Name = fmt.Sprintf("way-%d.ballast.argoproj.io", i)
		hook.ObjectSelector.MatchLabels[wayLabel] = strconv.Itoa(i)
		address := "https://" + s.listen(b, w.serve) + "/clusters"
		hook.ClientConfig.URL = &address
		own.Webhooks = append(own.Webhooks, *hook)
	}
	if err := configs.Delete(b.Context(), "ballast.argocd", metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
	if _, err := configs.Create(b.Context(), own, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// listen serves a handler with our server, so that only the handlers differ.
func (s *site) listen(b testing.TB, h http.Handler) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := intake.NewServer(intake.ServerOptions{Handler: h, CertDir: s.certs, Log: logr.Discard(),
		Listen: func() (net.Listener, error) { return listener, nil }})
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			b.Errorf("serving: %v", err)
		}
	})
	eventually(b, "a webhook that is ready", func() bool { return server.Ready() == nil })
	return listener.Addr().String()
}

// bench writes Secrets of one size through every way.
type bench struct {
	client dynamic.ResourceInterface
	ways   []way
	first  int // the number of the first Secret
	// gap lies between two writes, each due at its time whatever became of the one before.
	gap time.Duration
	n   int // makes every write another
}

func (s *site) bench(b *testing.B, ways []way, first, size int, gap time.Duration) *bench {
	b.Helper()
	m := &bench{client: s.dynamic(b, quiet(s.person)).Resource(secrets).Namespace(namespace), ways: ways, first: first, gap: gap}
	config := encoded(strings.Repeat("t", size*3/4)) // base64 adds a third
	for i, w := range ways {
		for j := range spares {
			object := named(secret(w.asks, with("data", "config", config), with("metadata", "labels", wayLabel, strconv.Itoa(i))), m.secret(i, j))
			if _, err := m.client.Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		eventually(b, w.name, func() bool { return m.write(i, 0) == nil })
	}
	m.round(b, warmBeats)
	return m
}

func (m *bench) secret(way, spare int) string {
	return fmt.Sprintf("c-%02d", m.first+way*spares+spare)
}

func (m *bench) write(way, n int) error {
	body := fmt.Appendf(nil, `{"data":{"shard":%q,"n":%q}}`, encoded(m.ways[way].asks), encoded(strconv.Itoa(n)))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := m.client.Patch(ctx, m.secret(way, n%spares), types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if shard := shardOf(got)["shard"]; shard != m.ways[way].shard {
		return fmt.Errorf("%s: shard %s was stored", m.ways[way].name, shard)
	}
	return nil
}

// round makes one write each way in every beat, the order changing, and answers how long each took, in ms from when it
// was due: [way][beat].
func (m *bench) round(b *testing.B, beats int) [][]float64 {
	b.Helper()
	took := make([][]float64, len(m.ways))
	for i := range took {
		took[i] = make([]float64, beats)
	}
	var group errgroup.Group
	tick := time.NewTimer(0)
	defer tick.Stop()
	start := time.Now()
	for i := range beats * len(m.ways) {
		beat := i / len(m.ways)
		way, due, n := (i+beat)%len(m.ways), start.Add(time.Duration(i)*m.gap), m.n+beat
		tick.Reset(time.Until(due))
		<-tick.C
		group.Go(func() error {
			err := m.write(way, n)
			took[way][beat] = float64(time.Since(due)) / float64(time.Millisecond)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	m.n += beats
	return took
}

// benchRounds is how many rounds a figure is the median of.
func benchRounds(b *testing.B) int {
	b.Helper()
	n, err := strconv.Atoi(os.Getenv("BALLAST_BENCH_ROUNDS"))
	if err != nil || n < 1 {
		return 3
	}
	return n
}

// BenchmarkThroughAPIServer is what a write costs a person: through a real API server, by every way in turn. All ways of a
// size are measured together, and the lines of one count are of the same rounds. A line tells the time of a write and
// what it adds to the no-op webhook and, where it answers with a patch, to one that always answers with the same; all in
// ms. Iterations say nothing here.
func BenchmarkThroughAPIServer(b *testing.B) {
	log.SetLogger(logr.Discard())
	s := startSite(b)
	ways := s.ways(b)
	s.register(b, ways)
	gaps := map[int]time.Duration{4: 20 * time.Millisecond, 64: 60 * time.Millisecond}
	for i, size := range []int{4, 64} {
		m := s.bench(b, ways, i*len(ways)*spares, size<<10, gaps[size])
		measured := map[int][][][]float64{} // [count][way][round][beat]
		for w := range ways {
			count := 0
			b.Run(fmt.Sprintf("secret=%dKiB/webhook=%s", size, ways[w].name), func(b *testing.B) {
				if b.N == 1 { // the first call of a count
					count++
				}
				if measured[count] == nil {
					measured[count] = m.rounds(b, benchRounds(b))
				}
				report(b, measured[count][w], measured[count][1])
				if ways[w].asks != ways[w].shard && w != constantPatch {
					over := added(measured[count][w], measured[count][constantPatch], 0.5)
					b.ReportMetric(over.Value, "p50-over-patch-ms")
					b.ReportMetric(over.Low, "p50-over-patch-low-ms")
					b.ReportMetric(over.High, "p50-over-patch-high-ms")
				}
			})
		}
	}
}

func (m *bench) rounds(b *testing.B, n int) [][][]float64 {
	b.Helper()
	out := make([][][]float64, len(m.ways))
	for range n {
		for w, took := range m.round(b, beats) {
			out[w] = append(out[w], took)
		}
	}
	return out
}

func report(b *testing.B, ours, floor [][]float64) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	isFloor := &ours[0] == &floor[0]
	for _, q := range []float64{0.5, 0.99} {
		if q > 0.5 { // a round's highest percentile is its slowest write: all rounds are one then
			ours, floor = [][]float64{slices.Concat(ours...)}, [][]float64{slices.Concat(floor...)}
		}
		each := make([]float64, len(ours))
		for r := range ours {
			each[r] = quantile(ours[r], q)
		}
		name := fmt.Sprintf("p%g", 100*q)
		b.ReportMetric(quantile(each, 0.5), name+"-ms")
		if isFloor {
			continue
		}
		e := added(ours, floor, q)
		b.ReportMetric(e.Value, name+"-added-ms")
		b.ReportMetric(e.Low, name+"-added-low-ms")
		b.ReportMetric(e.High, name+"-added-high-ms")
	}
}
