package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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

func newEndpoints(t *testing.T, address string) *endpoints {
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

// restarts is how many rolling restarts the soak makes: a slice in every test run, the whole by BALLAST_SOAK_RESTARTS.
func restarts(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("BALLAST_SOAK_RESTARTS"))
	if err != nil {
		return 5
	}
	return n
}

// rollingRestarts replaces replica after replica under load, with failurePolicy Fail: not one write may be lost.
func (s *site) rollingRestarts(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.setFailurePolicy(t, admissionregistration.Fail)
	defer s.setFailurePolicy(t, admissionregistration.Ignore)
	defer s.endpoints.set(s.replica.address)
	load := s.startLoad(t, 4)
	replicas := []*replica{s.start(t, 2*time.Second), s.start(t, 2*time.Second)}
	s.endpoints.set(replicas[0].address, replicas[1].address)
	n := restarts(t)
	for i := range n {
		old, next := replicas[i%2], s.start(t, 2*time.Second)
		stopped := old.stopping()
		// The endpoint goes only after the stop began: kube-proxy and the API server learn of it later.
		s.endpoints.set(old.address, next.address, replicas[(i+1)%2].address)
		load.more(t, 20)
		replicas[i%2] = next
		s.endpoints.set(replicas[0].address, replicas[1].address)
		<-stopped
	}
	s.endpoints.set(s.replica.address)
	for _, r := range replicas {
		<-r.stopping()
	}
	writes, lost := load.end()
	t.Logf("%d rolling restarts, %d writes, %d lost", n, writes, len(lost))
	for _, err := range lost {
		t.Errorf("a write was lost: %v", err)
	}
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
	if _, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(t.Context(), "ballast", types.JSONPatchType, body, metav1.PatchOptions{}); err != nil {
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
	writes atomic.Int64
	mu     sync.Mutex
	lost   []error
}

func (s *site) startLoad(t *testing.T, writers int) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{stop: stop}
	client := s.dynamic(t, quiet(s.person)).Resource(secrets).Namespace(namespace)
	for i := range writers {
		name := fmt.Sprintf("c-9%d", i)
		s.remove(secrets)(t, name)
		if _, err := client.Create(t.Context(), named(secret(""), name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		l.wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				got, err := client.Patch(context.Background(), name, types.MergePatchType, []byte(`{"data":{"shard":"MQ==","n":"`+encoded(strconv.Itoa(n))+`"}}`), metav1.PatchOptions{})
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
		})
	}
	return l
}

// more waits for some writes more.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	from := l.writes.Load()
	eventually(t, "more writes", func() bool { return l.writes.Load() >= from+n })
}

func (l *load) end() (int64, []error) {
	l.stop()
	l.wg.Wait()
	return l.writes.Load(), l.lost
}
