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

// BoundMemory sets the collector's bounds, where the environment does not: it works for every MiB from limit on, which
// is below the shipped container's, for the rest is the program's own file and what is outside the heap.
func BoundMemory(limit int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
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
