package poll_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"ballast/e2e/assets"
	"ballast/planner/observed"
	"ballast/planner/ownership/scrape"
	"ballast/planner/poll"
	"ballast/planner/poll/pods"
	"ballast/planner/poll/promql"
)

// shown is what a pod shows of a cluster at a minute of the past; nil is nothing.
type shown func(minute int) *scrape.ServerReport

// pastOfPods is four hours of two pods with clusters a to d, uneven as real ones are: b moves, pod 0 begins anew in place, pod 1 does at another
// address (history.address), and is not reached for a quarter of an hour.
func pastOfPods() map[int]map[string]shown {
	const both = scrape.ShowsEvents | scrape.ShowsReconciles
	count := func(seed, minute int) float64 { // up to that minute
		sum := 0.0
		for m := range minute {
			sum += float64((m*m*seed+7*m)%97) + 60*math.Abs(math.Sin(float64(m*seed)/30))
		}
		return sum
	}
	report := func(events float64, objects, apps int) *scrape.ServerReport {
		return &scrape.ServerReport{Events: events, Reconciles: events / 4, Objects: float64(objects), Apps: apps, Counts: both | scrape.ShowsObjects}
	}
	frozen := func(events float64) *scrape.ServerReport {
		return &scrape.ServerReport{Events: events, Reconciles: events / 4, Counts: both}
	}
	const moves, anew, away, back = 150, 100, 190, 205
	since := func(begin, minute int) int {
		if minute < begin {
			return minute
		}
		return minute - begin
	}
	other := int(restarted.Sub(start)/scrapeEvery) + 1
	reached := func(s shown) shown {
		return func(m int) *scrape.ServerReport {
			if m >= away && m < back {
				return nil
			}
			return s(m)
		}
	}
	return map[int]map[string]shown{
		0: {
			"https://a.example.com": func(m int) *scrape.ServerReport {
				return report(count(3, since(anew, m)), 100+m%13, 4)
			},
			"https://b.example.com": func(m int) *scrape.ServerReport {
				if m >= moves {
					return frozen(count(5, since(anew, moves)))
				}
				return report(count(5, since(anew, m)), 200, 2)
			},
		},
		1: {
			"https://b.example.com": reached(func(m int) *scrape.ServerReport {
				if m < moves {
					return nil
				}
				return report(count(5, m-moves), 220, 2)
			}),
			"https://c.example.com": reached(func(m int) *scrape.ServerReport { return report(count(2, since(other, m)), 70+m/30, 1) }),
			"https://d.example.com": reached(func(m int) *scrape.ServerReport {
				if m < 230 { // it is new
					return nil
				}
				return report(count(1, m-230), 9, 1)
			}),
		},
	}
}

// TestPodsAnswerAsPrometheusDoes gives the same scrapes to a real Prometheus, which is asked the default queries, and to the window that
// poll.pods looks through: the answers are the same.
func TestPodsAnswerAsPrometheusDoes(t *testing.T) {
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	h := history{layout: layouts()["upstream manifests, by pod annotations"], families: map[string]*bytes.Buffer{}}
	past := pastOfPods()
	for pod, clusters := range past {
		for server, of := range clusters {
			for m := range int(now.Sub(start)/scrapeEvery) + 1 {
				h.shows(pod, server, start.Add(time.Duration(m)*scrapeEvery), of(m))
			}
		}
	}
	client, err := poll.New(poll.Config{URL: serve(t, binaries, h.text()), Timeout: time.Minute, Pods: promql.PodsMatcher("pod", h.workload), HTTP: config.DefaultHTTPClientConfig})
	if err != nil {
		t.Fatal(err)
	}
	servers := []string{"https://a.example.com", "https://b.example.com", "https://c.example.com", "https://d.example.com"}
	var w pods.Window
	for m := range int(now.Sub(start)/scrapeEvery) + 1 {
		at := start.Add(time.Duration(m) * scrapeEvery)
		w.Take(h.look(past, m, at), servers, at)
		aligned := at.Equal(at.Truncate(5 * time.Minute))
		if m < 12 || m%31 != 0 && m%40 != 0 && !at.Equal(now) {
			continue
		}
		compareAnswers(t, at, aligned, client.Fetch(t.Context(), poll.DefaultMetrics(), clusters(t), at), w.Fetched(at))
	}
}

// compareAnswers compares all answers at full five minutes; in between, those that are made of slots may look back a little further.
func compareAnswers(t *testing.T, at time.Time, aligned bool, want, got []poll.Fetched) {
	t.Helper()
	for i, metric := range want {
		if metric.Err != "" || got[i].Err != "" || got[i].Metric != metric.Metric {
			t.Fatalf("at %s %s: Prometheus %q, the window %q", at, metric.Metric, metric.Err, got[i].Err)
		}
		if slots := metric.Metric == "objects" || metric.Metric == "apps"; slots && !aligned {
			continue
		}
		values := map[string]float64{}
		for _, s := range got[i].Samples {
			values[s.Key] = s.Value
		}
		if len(values) != len(metric.Samples) {
			t.Errorf("at %s %s: the window has %d servers, Prometheus %d", at, metric.Metric, len(values), len(metric.Samples))
		}
		for _, s := range metric.Samples {
			if v, answered := values[s.Key]; !answered || math.Abs(v-s.Value) > 1e-6*math.Max(1, s.Value) {
				t.Errorf("at %s %s of %s is %v, by Prometheus %v", at, metric.Metric, s.Key, v, s.Value)
			}
		}
	}
}

// shows gives Prometheus one scrape.
func (h *history) shows(pod int, server string, at time.Time, s *scrape.ServerReport) {
	if s == nil {
		return
	}
	h.events(pod, server, at, at, constant(s.Events))
	h.reconciles(pod, server, at, at, constant(s.Reconciles))
	if s.Shows(scrape.ShowsObjects) {
		h.objects(pod, server, at, at, s.Objects)
	}
	for app := range s.Apps {
		h.app(pod, server, "argocd", fmt.Sprintf("%s-%d", server, app), at, at)
	}
}

// look gives the window the same one.
func (h *history) look(past map[int]map[string]shown, minute int, at time.Time) []scrape.PodReport {
	var reports []scrape.PodReport
	for pod := range 2 {
		r := scrape.PodReport{Controller: observed.Controller{Pod: observed.Pod{Name: fmt.Sprint(pod)}, Address: h.address(pod, at)},
			SampledAt: at, Servers: map[string]scrape.ServerReport{}}
		for server, of := range past[pod] {
			if s := of(minute); s != nil {
				r.Servers[server] = *s
			}
		}
		reports = append(reports, r)
	}
	return reports
}
