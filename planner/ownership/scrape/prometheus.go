package scrape

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/poll"
)

// maxSampleAge is how old a pod's newest sample may be for the pod to count as having answered: two scrapes of the
// common 60 s. Prometheus itself would show a pod that it cannot reach for five minutes.
const maxSampleAge = 2 * time.Minute

// separator joins the labels pod and server into the one that a sample of poll has; no pod's name has it.
const separator = "|"

// Queries are what Ask asks, for people who want to see it. Each sample is about one pod and server, the last about one
// pod. When a pod was scraped is read from its memory's samples, else from up: no other metric is there while a pod has
// no cluster.
func Queries() []poll.Metric {
	const none = `{ {{.targets}} }`
	pair := func(id, aggregation, series, server string) poll.Metric {
		selector := fmt.Sprintf(`%s{ {{.targets}},%s!="" }`, series, server)
		if server == "dest_server" {
			selector = fmt.Sprintf(`%s{ {{.pods}},%s!="" } {{.ofTargets}}`, series, server)
		}
		return poll.Metric{ID: id, Match: poll.Match{Label: "owner"},
			Query: fmt.Sprintf(`label_join(%s by ({{.pod}}, %s) (%s), "owner", "%s", "{{.pod}}", "%s")`, aggregation,
				server, selector, separator, server)}
	}
	return []poll.Metric{
		pair(metricAppInfo, "count", metricAppInfo, "dest_server"),
		pair(metricCacheAge, "min", metricCacheAge, "server"),
		pair(metricConnected, "min", metricConnected, "server"),
		pair(metricReconciles, "sum", metricReconciles, "dest_server"),
		pair(metricSeconds, "sum", metricSeconds, "dest_server"),
		{ID: metricMemory, Match: poll.Match{Label: "pod"},
			Query: named(`max by ({{.pod}}) (` + metricMemory + none + `)`)},
		{ID: "sampled", Match: poll.Match{Label: "pod"},
			Query: named(`max by ({{.pod}}) (timestamp(` + metricMemory + none +
				`)) or max by ({{.pod}}) (timestamp(up` + none + `) and up` + none + ` == 1)`)},
	}
}

// named has a pod's name in the label pod, whatever label it was in.
func named(query string) string {
	return `label_replace(` + query + `, "pod", "$1", "{{.pod}}", "(.*)")`
}

// Ask makes the reports from what a Prometheus has of the pods, for where they cannot be asked themselves. A pod whose
// newest sample is older than two minutes did not answer.
func Ask(ctx context.Context, f poll.Fetcher, pods []observed.Controller, now time.Time) []PodReport {
	fetched := map[string]poll.Fetched{}
	var failed string
	for _, answer := range f.Fetch(ctx, Queries(), discover.Fleet{}, now) {
		fetched[answer.Metric] = answer
		if answer.Err != "" && failed == "" {
			failed = fmt.Sprintf("asking Prometheus for %s: %s", answer.Metric, answer.Err)
		}
	}
	reports := make([]PodReport, len(pods))
	at := make(map[string]int, len(pods))
	for i, pod := range pods {
		reports[i] = PodReport{Controller: pod, Servers: map[string]ServerReport{}, Err: failed, Quoted: true}
		at[pod.Name] = i
	}
	if failed == "" {
		take(fetched, reports, at)
		for i := range reports {
			reports[i].Err = silence(reports[i], now)
		}
	}
	for i := range reports {
		if !reports[i].Answered() {
			reports[i] = PodReport{Controller: pods[i], Err: reports[i].Err}
		}
	}
	return reports
}

// silence says why a pod counts as not having answered.
func silence(r PodReport, now time.Time) string {
	switch {
	case r.SampledAt.IsZero():
		return fmt.Sprintf("asking Prometheus for pod %q: it has no sample of it", r.Name)
	case now.Sub(r.SampledAt) > maxSampleAge:
		return fmt.Sprintf("asking Prometheus for pod %q: its last sample is %s old", r.Name,
			now.Sub(r.SampledAt).Round(time.Second))
	}
	return ""
}

// take puts the samples into the reports of their pods.
func take(fetched map[string]poll.Fetched, reports []PodReport, at map[string]int) {
	for _, sample := range fetched["sampled"].Samples {
		if i, ours := at[sample.Key]; ours && sample.Value > 0 && sample.Value < math.MaxInt32<<2 {
			reports[i].SampledAt = time.UnixMilli(int64(math.Round(sample.Value * 1000))).UTC()
		}
	}
	for _, sample := range fetched[metricMemory].Samples {
		if i, ours := at[sample.Key]; ours && sample.Value >= 0 && sample.Value < math.MaxInt64 {
			reports[i].Memory = int64(sample.Value)
		}
	}
	for _, metric := range []string{metricAppInfo, metricCacheAge, metricConnected, metricReconciles, metricSeconds} {
		for _, sample := range fetched[metric].Samples {
			pod, server, _ := strings.Cut(sample.Key, separator)
			server = urlOf(metric, server)
			i, ours := at[pod]
			if !ours || server == "" {
				continue
			}
			g := gauges{ServerReport: reports[i].Servers[server]}
			g.add(metric, sample.Value)
			if metric == metricAppInfo && sample.Value >= 1 && sample.Value < math.MaxInt32 {
				g.Apps += int(sample.Value) - 1
			}
			reports[i].Servers[server] = g.ServerReport
		}
	}
}
