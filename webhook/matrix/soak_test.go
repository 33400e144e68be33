package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"ballast/planner/plan"
)

// endpoints stand in for the Service: a new connection goes to one of the replicas that are listed, by turns, and lives
// on whatever becomes of the list.
type endpoints struct {
	listener net.Listener
	mu       sync.Mutex
	list     []string
	turn     int
	open     map[net.Conn]bool
}

func newEndpoints(t testing.TB, address string) *endpoints {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoints{listener: listener, open: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go e.forward(conn)
		}
	}()
	t.Cleanup(func() { listener.Close() })
	return e
}

func (e *endpoints) forward(from net.Conn) {
	defer from.Close()
	e.mu.Lock()
	if len(e.list) == 0 {
		e.mu.Unlock()
		return
	}
	address := e.list[e.turn%len(e.list)]
	e.turn++
	e.open[from] = true
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.open, from)
		e.mu.Unlock()
	}()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(from, to)
}

// set makes the list.
func (e *endpoints) set(list ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = list
}

// cut ends every connection.
func (e *endpoints) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for conn := range e.open {
		conn.Close()
	}
}

// counts say how much the soak does: a slice in every test run, the whole by environment variables.
type counts struct {
	restarts, rotations int
	calls               int64 // at least so many; the load then has to be a load, too
}

func soakCounts(t *testing.T) counts {
	t.Helper()
	of := func(name string, slice int) int {
		text := os.Getenv(name)
		if text == "" {
			return slice
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("reading %s: %v", name, err)
		}
		return n
	}
	return counts{restarts: of("BALLAST_SOAK_RESTARTS", 5), rotations: of("BALLAST_SOAK_ROTATIONS", 3), calls: int64(of("BALLAST_SOAK_CALLS", 0))}
}

// bar is a promise where the soak holds ballast to it, on a machine that does nothing else; elsewhere only what hangs breaks it.
func bar(t *testing.T, promised time.Duration) time.Duration {
	t.Helper()
	if soakCounts(t).calls > 0 {
		return promised
	}
	return 30 * time.Second
}

// leastRate is the load, in writes of any second, below which a soak proves nothing.
const leastRate = 100

// rollingRestarts replaces replica after replica, rotates the leaf while one stops, and renews the CA halfway, all under
// load and with failurePolicy Fail: not one write may be lost.
func (s *site) rollingRestarts(t *testing.T) {
	n := soakCounts(t)
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.setFailurePolicy(t, admissionregistration.Fail)
	defer s.setFailurePolicy(t, admissionregistration.Ignore)
	id := s.identify(t)
	reverts := sync.OnceFunc(func() { s.endpoints.set(s.replica.address); id.revert(t) })
	defer reverts() // whatever comes, the next test finds what is shipped
	replicas := []*replica{s.start(t, lameDuck), s.start(t, lameDuck)}
	s.endpoints.set(replicas[0].address, replicas[1].address)
	load, shakes := s.startLoad(t, 8), id.shakes(t)
	rotated := 0
	for i := range n.restarts {
		s.restart(t, replicas, i%2, func() {
			for ; rotated < n.rotations*(i+1)/n.restarts; rotated++ {
				id.rotate(t, replicas...)
			}
			load.more(t, 20)
		})
		if i == n.restarts/2 {
			id.renew(t, replicas...)
		}
	}
	for load.writes.Load() < n.calls {
		load.more(t, leastRate)
	}
	handshakes, refused := shakes.end()
	load.end()
	reverts()
	t.Logf("%d rolling restarts, %d leaf rotations, 1 CA renewal: %s; %d handshakes, %d failed", n.restarts, rotated, load, handshakes, len(refused))
	for _, err := range load.lost {
		t.Errorf("a write was lost: %v", err)
	}
	for _, err := range refused {
		t.Errorf("a handshake failed: %v", err)
	}
	if n.calls > 0 && load.slowest(1) < leastRate {
		t.Errorf("the load fell to %.0f writes in a second, want %d throughout: run it on a machine that does nothing else", load.slowest(1), leastRate)
	}
}

// lameDuck is how long a replica answers after its stop began.
const lameDuck = 5 * time.Second

// restart replaces one replica, and calls during while the old one still answers and the new one already does. The endpoint
// goes only after the stop began, kube-proxy and the API server learn of it later, and well before the lame duck is over,
// however long during takes.
func (s *site) restart(t *testing.T, replicas []*replica, i int, during func()) {
	t.Helper()
	old, next := replicas[i], s.start(t, lameDuck)
	replicas[i] = next
	s.endpoints.set(old.address, replicas[0].address, replicas[1].address)
	stopped, gone := old.stopping(), make(chan struct{})
	time.AfterFunc(lameDuck/2, func() { s.endpoints.set(replicas[0].address, replicas[1].address); close(gone) })
	during()
	<-gone
	<-stopped
	old.stopWatch()
}

// setFailurePolicy changes the policy of the webhook for clusters, and waits until the API server goes by it.
func (s *site) setFailurePolicy(t *testing.T, policy admissionregistration.FailurePolicyType) {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": policy}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(t.Context(), "ballast.argocd", types.JSONPatchType, body, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// With no replica there, a write fails by the one policy and passes by the other.
	s.endpoints.set()
	defer s.endpoints.set(s.replica.address)
	secrets := s.dynamic(t, quiet(s.person)).Resource(secrets).Namespace(namespace)
	eventually(t, "the failure policy", func() bool {
		s.endpoints.cut()
		_, err := secrets.Create(t.Context(), named(secret(""), "c-98"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return (err != nil) == (policy == admissionregistration.Fail)
	})
}

// load writes wrong shards, each writer to its own Secret, until it is ended.
type load struct {
	stop   context.CancelFunc
	wg     sync.WaitGroup
	start  time.Time
	took   time.Duration
	writes atomic.Int64
	mu     sync.Mutex
	lost   []error
	rates  []int64 // writes of each whole second
}

func (s *site) startLoad(t *testing.T, writers int) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{stop: stop, start: time.Now()}
	t.Cleanup(l.end)
	client := s.dynamic(t, quiet(s.person)).Resource(secrets).Namespace(namespace)
	for i := range writers {
		name := fmt.Sprintf("c-9%d", i)
		s.remove(secrets)(t, name)
		if _, err := client.Create(t.Context(), named(secret(""), name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		l.wg.Go(func() { l.write(ctx, client, name) })
	}
	l.start = time.Now()
	l.wg.Go(func() { l.measure(ctx) })
	return l
}

func (l *load) write(ctx context.Context, client dynamic.ResourceInterface, name string) {
	for n := 0; ctx.Err() == nil; n++ {
		body := []byte(`{"data":{"shard":"MQ==","n":"` + encoded(strconv.Itoa(n)) + `"}}`)
		got, err := client.Patch(context.Background(), name, types.MergePatchType, body, metav1.PatchOptions{})
		if err == nil && shardOf(got)["shard"] != "3" {
			err = fmt.Errorf("shard %s was stored", shardOf(got)["shard"])
		}
		if err != nil {
			l.mu.Lock()
			l.lost = append(l.lost, err)
			l.mu.Unlock()
		}
		l.writes.Add(1)
	}
}

// measure notes the rate of each second.
func (l *load) measure(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := l.writes.Load(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := l.writes.Load()
			l.rates = append(l.rates, now-last)
			last = now
		}
	}
}

// more waits for some writes more.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	from := l.writes.Load()
	eventually(t, "more writes", func() bool { return l.writes.Load() >= from+n })
}

// end stops the writers; only then are lost and rates to be read.
func (l *load) end() {
	if l.took == 0 {
		l.took = time.Since(l.start)
	}
	l.stop()
	l.wg.Wait()
}

// slowest is the lowest rate, in writes a second, over any so many whole seconds in a row.
func (l *load) slowest(seconds int) float64 {
	least := math.Inf(1)
	for i := seconds; i <= len(l.rates); i++ {
		sum := int64(0)
		for _, n := range l.rates[i-seconds : i] {
			sum += n
		}
		least = min(least, float64(sum)/float64(seconds))
	}
	return least
}

// String is the line of figures.
func (l *load) String() string {
	return fmt.Sprintf("%d calls in %.1f s, %.0f writes/s, at least %.0f over each 10 s, slowest second %.0f, %d failed", l.writes.Load(), l.took.Seconds(),
		float64(l.writes.Load())/l.took.Seconds(), l.slowest(10), l.slowest(1), len(l.lost))
}
