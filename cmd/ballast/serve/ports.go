// Package serve is what the long-running commands have beside their work: plain ports for metrics and health, logs, a
// bound on memory.
package serve

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"ballast/webhook/intake"
)

// The plain ports are /metrics and the probes. Whoever reaches the pod reaches them, and a connection, a head and a
// page cost memory until they end: with net/http's own bounds 128 heads of 1 MiB end a process of 256 MiB.
const (
	plainConnections = 256              // the kubelet and Prometheus open few; whoever has more addresses than that may cut them off
	plainHead        = 4 << 10          // bytes; net/http adds 4 KiB of its own
	plainDeadline    = 10 * time.Second // of a whole call
	plainHeadTime    = 2 * time.Second
	plainIdle        = time.Minute
)

// gcPercent is how much the heap may grow between two collections: under a plan of 7,500 clusters that is rewritten,
// the webhook's own memory peaks at some 22 MiB instead of 34. An operator's GOGC wins.
const gcPercent = 40

// MemoryVariable is the environment's variable with the container's memory limit in bytes, as the shipped Deployments
// have it from the downward API.
const MemoryVariable = "MEMORY_LIMIT"

// Memory is what a long-running command may use of its container's memory: the collector works for every MiB from Limit
// on, for the rest is the program's own file and what is outside the heap.
type Memory struct {
	Limit     int64 // bytes, where the container has what it is shipped with
	Container int64 // bytes that it is shipped with
}

// Bound sets the collector's bounds, where the environment does not. In a container of another size the limit is in
// proportion.
func (m Memory) Bound() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(m.of(os.Getenv(MemoryVariable)))
	}
}

// of is the limit in a container of so many bytes; what is no number is the shipped one's.
func (m Memory) of(container string) int64 {
	has, err := strconv.ParseInt(container, 10, 64)
	if err != nil || has <= 0 {
		return m.Limit
	}
	return int64(float64(m.Limit) * float64(has) / float64(m.Container))
}

// PlainServer serves one of the plain ports.
func PlainServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, MaxHeaderBytes: plainHead, ReadHeaderTimeout: plainHeadTime,
		ReadTimeout: plainDeadline, WriteTimeout: plainDeadline, IdleTimeout: plainIdle}
}

// ListenPlain listens on one of the plain ports.
func ListenPlain(address string, port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listening on port %d: %w", port, err)
	}
	return intake.LimitConnections(listener, plainConnections), nil
}

// MetricsHandler answers /metrics.
func MetricsHandler(from prometheus.Gatherer, c clock.PassiveClock) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", &pages{from: from, clock: c})
	return mux
}

// Checks are conditions by name.
type Checks map[string]healthz.Checker

// HealthHandler answers /healthz with what is wrong with the process, /readyz with what it waits for, and each check
// alone under its name, as in /readyz/owner.
func HealthHandler(live, ready Checks) http.Handler {
	mux := http.NewServeMux()
	for path, all := range map[string]Checks{"/healthz": live, "/readyz": ready} {
		mux.HandleFunc("GET "+path, all.answer)
		for name, check := range all {
			mux.HandleFunc("GET "+path+"/"+name, Checks{name: check}.answer)
		}
	}
	return mux
}

func (c Checks) answer(w http.ResponseWriter, r *http.Request) {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(c)) {
		problems = append(problems, c[name](r))
	}
	if err := errors.Join(problems...); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
