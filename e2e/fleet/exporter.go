package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Exporter stands for the processes in the application-controller's pods.
type Exporter struct {
	fleet *Fleet
	now   func() time.Time

	mu        sync.Mutex
	secrets   []Secret
	pods      []pod
	processes map[string]*process // by pod.key
	late      map[string]bool     // servers whose clusters stay with the process that has them
}

// pod is one of the application-controller's.
type pod struct {
	name, uid, ip string
	restarts      int32
	replicas      int  // ARGOCD_CONTROLLER_REPLICAS in its spec
	running       bool // its process is alive, ready or not
}

// key names the process in the pod: one that was restarted is another.
func (p pod) key() string { return p.uid + "/" + strconv.Itoa(int(p.restarts)) }

// NewExporter makes an exporter that knows no pods yet. The clock is asked at each scrape.
func (f *Fleet) NewExporter(now func() time.Time) *Exporter {
	return &Exporter{fleet: f, now: now, processes: map[string]*process{}}
}

// SetApps has a cluster of the fleet have that many Applications from now on.
func (e *Exporter) SetApps(c Cluster, apps int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	server := trim(c.Server)
	known := e.fleet.Of(server)
	known.Work.Apps = apps
	e.fleet.byServer[server] = known
	for _, p := range e.processes {
		if h := p.holdings[server]; h != nil {
			h.cluster.Work.Apps = apps
		}
	}
}

// Late has these clusters, and no other one, stay with the process that has them, whatever their Secrets say meanwhile.
func (e *Exporter) Late(clusters ...Cluster) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.late = map[string]bool{}
	for _, c := range clusters {
		e.late[trim(c.Server)] = true
	}
	e.look(e.secrets, e.pods)
}

// observe takes over what the API server shows now.
func (e *Exporter) observe(secrets []Secret, pods []pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.look(secrets, pods)
}

// look is observe, under the lock.
func (e *Exporter) look(secrets []Secret, pods []pod) {
	e.secrets, e.pods = secrets, pods
	alive := map[string]*process{}
	for _, p := range pods {
		if !p.running {
			continue
		}
		alive[p.key()] = e.processes[p.key()]
		if alive[p.key()] == nil {
			alive[p.key()] = &process{pod: p.name, replicas: p.replicas, holdings: map[string]*holding{}}
		}
		alive[p.key()].hold(secrets, e.fleet.Of, e.late, e.now())
	}
	e.processes = alive
}

// backdate makes the running processes look as if they had held what they hold now since then.
func (e *Exporter) backdate(since time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.processes {
		for _, h := range p.holdings {
			if !h.since.IsZero() {
				h.since = since
			}
		}
	}
}

// Owners is the truth about the fleet: for each cluster Secret, and the in-cluster under its name, the running pods
// that reconcile it. A cluster of nobody has an empty list; more than one pod is a fault of the plan or a rollout under
// way.
func (e *Exporter) Owners() map[string][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	owners := map[string][]string{}
	for _, s := range e.secrets {
		owners[s.Name] = []string{}
		for _, p := range e.pods {
			if p.running && owns(p.name, p.replicas, s) {
				owners[s.Name] = append(owners[s.Name], p.name)
			}
		}
	}
	return owners
}

// Load is the work that each running pod has, by its name.
func (e *Exporter) Load() map[string]Work {
	e.mu.Lock()
	defer e.mu.Unlock()
	load := map[string]Work{}
	for _, p := range e.processes {
		total := Work{}
		for _, h := range p.holdings {
			if !h.since.IsZero() {
				total = total.Total(h.cluster.Work)
			}
		}
		load[p.pod] = total
	}
	return load
}

// Handler serves each pod's metrics under the path of its Target.
func (e *Exporter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pods/{pod}/metrics", func(w http.ResponseWriter, r *http.Request) {
		p := e.process(r.PathValue("pod"))
		if p == nil {
			http.Error(w, "no process runs in this pod", http.StatusServiceUnavailable)
			return
		}
		registry := view{exporter: e, process: p, now: e.now}.registry()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
	return mux
}

// Running are the pods whose process is alive and that have an address, by name.
func (e *Exporter) Running() map[string]string {
	addresses := map[string]string{}
	for _, p := range e.runningPods() {
		if p.ip != "" {
			addresses[p.name] = p.ip
		}
	}
	return addresses
}

func (e *Exporter) process(name string) *process {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.pods {
		if p.name == name && p.running {
			return e.processes[p.key()]
		}
	}
	return nil
}

// Target is one entry of a Prometheus file_sd file.
type Target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// Targets are the pods as Prometheus would find them, when the handler is served at that address.
func (e *Exporter) Targets(address string) []Target {
	e.mu.Lock()
	defer e.mu.Unlock()
	targets := make([]Target, 0, len(e.pods))
	for _, p := range e.pods {
		labels := e.fleet.targetLabels(p)
		labels["__metrics_path__"] = fmt.Sprintf("/pods/%s/metrics", p.name)
		targets = append(targets, Target{Targets: []string{address}, Labels: labels})
	}
	return targets
}

// targetLabels are what a scrape of the pods through upstream's Service and a ServiceMonitor puts on every sample.
func (f *Fleet) targetLabels(p pod) map[string]string {
	const service = "argocd-metrics"
	return map[string]string{
		"job": service, "service": service, "namespace": f.Namespace, "pod": p.name, "container": Workload,
		"endpoint": "metrics", "instance": net.JoinHostPort(cmp.Or(p.ip, "0.0.0.0"), strconv.Itoa(metricsPort)),
	}
}

func (e *Exporter) runningPods() []pod {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(func(yield func(pod) bool) {
		for _, p := range e.pods {
			if p.running && !yield(p) {
				return
			}
		}
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
