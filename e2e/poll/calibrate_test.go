package poll_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"ballast/cmd/ballast/calibrate"
	"ballast/e2e/assets"
	fit "ballast/planner/calibrate"
	"ballast/planner/config"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// used is a past of six pods whose memory is 200 MB, 2,000 B an object and 5 MB an Application, and whose CPU is 0.1 cores and 0.05
// for each event a second. One cluster moves.
type used struct {
	out     map[string]*bytes.Buffer
	objects []float64
	apps    []int
	events  []float64 // a minute
}

const calibrated, podsUsed = 18, 6

func newUsed() *used {
	u := &used{out: map[string]*bytes.Buffer{}}
	for i := range calibrated {
		u.objects = append(u.objects, float64(20_000+i*i*3_000%70_000))
		u.apps = append(u.apps, 3+i*7%11)
		u.events = append(u.events, float64(30+i*37%200))
	}
	return u
}

// has is the pod of a cluster.
func has(cluster int, at time.Time) int {
	if cluster == 4 && at.After(now.Add(-165*time.Minute)) {
		return 1
	}
	return cluster % podsUsed
}

func (u *used) add(family, suffix, labels string, value float64, at time.Time) {
	if u.out[family] == nil {
		u.out[family] = &bytes.Buffer{}
	}
	fmt.Fprintf(u.out[family], "%s%s{%s} %g %d\n", family, suffix, labels, value, at.Unix())
}

// each is one series, a sample a minute.
func (u *used) each(family, suffix, labels string, value func(at time.Time, minutes float64) (float64, bool)) {
	from := now.Add(-8 * time.Hour)
	for at := from; !at.After(now); at = at.Add(scrapeEvery) {
		if v, ok := value(at, at.Sub(from).Minutes()); ok {
			u.add(family, suffix, labels, v, at)
		}
	}
}

func (u *used) write() *bytes.Buffer {
	for pod := range podsUsed {
		target := fmt.Sprintf(`namespace="argocd",pod="argocd-application-controller-%d"`, pod)
		scraped := fmt.Sprintf(`%s,instance="10.0.0.%d:8082"`, target, pod+1)
		container := target + `,container="application-controller",instance="node"`
		one := func(time.Time, float64) (float64, bool) { return 1, true }
		u.each("up", "", scraped, one)
		u.each("container_memory_working_set_bytes", "", container, func(at time.Time, _ float64) (float64, bool) { return u.memory(pod, at), true })
		cpu := 0.0
		u.each("container_cpu_usage_seconds", "_total", container, func(at time.Time, _ float64) (float64, bool) {
			cpu += 60 * u.cpu(pod, at)
			return cpu, true
		})
		for c := range calibrated {
			here := func(value float64) func(at time.Time, _ float64) (float64, bool) {
				return func(at time.Time, _ float64) (float64, bool) { return value, has(c, at) == pod }
			}
			server := fmt.Sprintf("https://c%d.example.com", c)
			u.each("argocd_cluster_api_resource_objects", "", scraped+fmt.Sprintf(",server=%q", server), here(u.objects[c]))
			counted := 0.0
			u.each("argocd_cluster_events", "_total", scraped+fmt.Sprintf(",server=%q", server), func(at time.Time, _ float64) (float64, bool) {
				if has(c, at) == pod {
					counted += u.events[c]
				}
				return counted, counted > 0 // the old pod keeps its counter
			})
			u.each("argocd_app_reconcile", "_count", scraped+fmt.Sprintf(`,dest_server=%q,exported_namespace="argocd"`, server),
				func(at time.Time, minutes float64) (float64, bool) { return minutes * 6, has(c, at) == pod })
			for app := range u.apps[c] {
				u.each("argocd_app_info", "", scraped+fmt.Sprintf(`,dest_server=%q,exported_namespace="argocd",name="a%d"`, server, app), here(1))
			}
		}
	}
	return (&history{families: u.out}).text()
}

func (u *used) memory(pod int, at time.Time) float64 {
	memory := 2e8
	for c := range calibrated {
		if has(c, at) == pod {
			memory += 2000*u.objects[c] + 5e6*float64(u.apps[c])
		}
	}
	return memory
}

func (u *used) cpu(pod int, at time.Time) float64 {
	cpu := 0.1
	for c := range calibrated {
		if has(c, at) == pod {
			cpu += 0.05 * u.events[c] / 60
		}
	}
	return cpu
}

// What made the memory and the CPU of pods is found by a real Prometheus' answers, across a move.
func TestCalibrateFindsWhatMadeIt(t *testing.T) {
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	in := input.Inputs{Now: now, Config: config.Default(), Workload: discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd",
		Name: "argocd-application-controller", Container: "application-controller", Replicas: podsUsed}}
	in.Config.Poll.Prometheus.URL = serve(t, binaries, newUsed().write())
	for c := range calibrated {
		name := fmt.Sprintf("c%d", c)
		in.Discovered.Secrets = append(in.Discovered.Secrets,
			discover.Secret{UID: name, Name: name, Cluster: name, Server: "https://" + name + ".example.com", HasData: true})
	}
	client, err := gather.NewFetcher(in.Config, plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: in.Workload.Name})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	s, err := calibrate.Measure(t.Context(), client, in, calibrate.Questions{Range: 4 * time.Hour, Step: time.Hour, PodLabel: "pod"}, &said)
	if err != nil || said.Len() > 0 {
		t.Fatalf("%v; it says %s", err, said.String())
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 0.03*want {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	memory, err := fit.Of(s, fit.Memory)
	if err != nil {
		t.Fatal(err)
	}
	near("an object", memory.Per["objects"], 2000)
	near("an Application", memory.Per["apps"], 5e6)
	near("a bare pod", memory.Base, 2e8)
	near("R2", memory.R2, 1)
	cpu, err := fit.Of(s, fit.CPU)
	if err != nil {
		t.Fatal(err)
	}
	near("an event a second", cpu.Per["events"], 0.05)
	near("a bare pod's CPU", cpu.Base, 0.1)
	if memory.Samples != 5*podsUsed || memory.Pods != podsUsed {
		t.Errorf("%d samples of %d pods", memory.Samples, memory.Pods)
	}
}

// Without cAdvisor's metrics it says what to do.
func TestCalibrateWithoutTheKubelets(t *testing.T) {
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	h := history{layout: layouts()["Helm's ServiceMonitor"], families: map[string]*bytes.Buffer{}}
	client := h.client(t, binaries)
	in := input.Inputs{Now: now, Config: config.Default(), Workload: discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd", Name: "rel-argocd-application-controller"}}
	in.Discovered.Secrets = []discover.Secret{{UID: "a", Name: "a", Cluster: "a", Server: "https://a.example.com", HasData: true}}
	_, err = calibrate.Measure(t.Context(), client, in, calibrate.Questions{Range: time.Hour, Step: time.Hour, PodLabel: "pod"}, os.Stderr)
	if err == nil || !strings.Contains(err.Error(), "it has neither memory nor CPU of the application-controller's pods: scrape the kubelets' cAdvisor") {
		t.Errorf("it says %v", err)
	}
	s, err := calibrate.Measure(t.Context(), client, in, calibrate.Questions{Range: time.Hour, Step: time.Hour, PodLabel: "pod",
		MemoryQuery: `max by (pod) (process_resident_memory_bytes{namespace="argocd"})`}, os.Stderr)
	if err != nil || len(s.Rows) == 0 || *s.Rows[0].Memory != 1<<30 {
		t.Errorf("%v: %+v", err, s.Rows)
	}
}
