package site

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// metricsPort is the application-controller's.
const metricsPort = 8082

// doors serve each simulated pod's metrics where the pod itself would: at its own address. ballast asks the pods there.
type doors struct {
	handler http.Handler // by the path /pods/{pod}/metrics
	at      func(podIP string) (string, error)

	mu     sync.Mutex
	open   map[string]*http.Server // by pod and address
	closed bool                    // for good: a last look at the pods may come after the end
}

// follow opens a door for each running pod and closes those of pods that are gone.
func (d *doors) follow(running map[string]string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if d.open == nil {
		d.open = map[string]*http.Server{}
	}
	wanted := map[string]bool{}
	for pod, ip := range running {
		key := pod + " " + ip
		wanted[key] = true
		if d.open[key] != nil {
			continue
		}
		host, err := d.at(ip)
		if err != nil {
			return err
		}
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp",
			net.JoinHostPort(host, strconv.Itoa(metricsPort)))
		if err != nil {
			return fmt.Errorf("serving the metrics of pod %q: %w", pod, err)
		}
		d.open[key] = d.serve(l, pod)
	}
	for key, server := range d.open {
		if !wanted[key] {
			delete(d.open, key)
			server.Close()
		}
	}
	return nil
}

func (d *doors) serve(l net.Listener, pod string) *http.Server {
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.Path = "/pods/" + pod + r.URL.Path
		d.handler.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	return server
}

func (d *doors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for server := range maps.Values(d.open) {
		server.Close()
	}
	clear(d.open)
}
