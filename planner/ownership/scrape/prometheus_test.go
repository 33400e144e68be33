package scrape

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/poll/promql"
)

// store answers each of the Queries by its metric's name.
type store map[string][]poll.Sample

func (s store) Fetch(_ context.Context, metrics []poll.Metric, _ discover.Fleet, _ time.Time) []poll.Fetched {
	var answers []poll.Fetched
	for _, m := range metrics {
		answers = append(answers, poll.Fetched{Metric: m.ID, Samples: s[m.ID]})
	}
	return answers
}

func seconds(ago time.Duration) float64 { return float64(noon().Add(-ago).UnixMilli()) / 1000 }

func TestPrometheusIsAskedInstead(t *testing.T) {
	pods := []observed.Controller{running("ac-0", "10.0.0.1:8082"), running("ac-1", ""), running("ac-2", ""), running("ac-3", "")}
	got := Ask(t.Context(), store{
		metricAppInfo:  {{Key: "ac-0|https://a", Value: 3}, {Key: "ac-0|https://b", Value: 1}, {Key: "ac-0|https://b/", Value: 7}, {Key: "stranger-0|https://a", Value: 9}, {Key: "ac-2|https://c", Value: 1}, {Key: "ac-0", Value: 1}},
		metricCacheAge: {{Key: "ac-0|https://a", Value: 17}, {Key: "ac-0|https://b", Value: -1}, {Key: "ac-1|https://d", Value: 400}},
		metricConnected: {
			{Key: "ac-0|https://a", Value: 1}, {Key: "ac-0|https://b", Value: 1}, {Key: "ac-1|https://d", Value: 0},
		},
		metricReconciles: {{Key: "ac-0|https://a", Value: 40}}, metricSeconds: {{Key: "ac-0|https://a", Value: 12.5}},
		metricMemory: {{Key: "ac-0", Value: 1 << 30}, {Key: "ac-1", Value: -1}, {Key: "ac-9", Value: 1}},
		"sampled":    {{Key: "ac-0", Value: seconds(1500 * time.Millisecond)}, {Key: "ac-1", Value: seconds(2 * time.Minute)}, {Key: "ac-2", Value: seconds(2*time.Minute + time.Second)}},
	}, pods, noon())
	first := pods[0]
	first.Memory = 1 << 30
	want := []PodReport{
		{Controller: first, Quoted: true, SampledAt: noon().Add(-1500 * time.Millisecond), Servers: map[string]ServerReport{
			"https://a": {Apps: 3, Cached: true, CacheAge: 17, Connected: true, Reconciles: 40, Seconds: 12.5, Counts: ShowsReconciles},
			"https://b": {Apps: 1, Cached: true, CacheAge: -1, Connected: true},
		}},
		{Controller: pods[1], Quoted: true, SampledAt: noon().Add(-2 * time.Minute), Servers: map[string]ServerReport{"https://d": {Cached: true, CacheAge: 400}}},
		{Controller: pods[2], Err: `asking Prometheus for pod "ac-2": its last sample is 2m1s old`},
		{Controller: pods[3], Err: `asking Prometheus for pod "ac-3": it has no sample of it`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// querier is a Prometheus that keeps the queries, and refuses those about one metric.
type querier struct {
	asked  map[string]bool
	refuse string
}

func (q *querier) Query(_ context.Context, query string, at time.Time, _ ...promv1.Option) (model.Value, promv1.Warnings, error) {
	q.asked[query] = true
	if q.refuse != "" && strings.Contains(query, q.refuse) {
		return nil, nil, errors.New("too many samples")
	}
	labels := model.Metric{"pod": "ac-0", "namespace": "argocd", "instance": "10.0.0.1:8082"}
	if strings.HasPrefix(query, "label_join") {
		labels["owner"] = "ac-0|https://a"
	}
	value := model.SampleValue(1)
	if strings.Contains(query, "timestamp") {
		value = model.SampleValue(at.Unix())
	}
	return model.Vector{{Metric: labels, Value: value}}, nil, nil
}

func TestTheClientOfTheOtherMetricsAsks(t *testing.T) {
	q := &querier{asked: map[string]bool{}}
	target := plan.Target{Kind: plan.StatefulSet, Name: "ac"}
	client := poll.NewWith(q, poll.Config{Pods: promql.PodsMatcher("pod", target), Namespace: "argocd", Concurrency: 1})
	got := Ask(t.Context(), client, []observed.Controller{running("ac-0", "")}, noon())
	want := []PodReport{{
		Controller: observed.Controller{Pod: observed.Pod{Name: "ac-0", Ready: true, Memory: 1}, Running: true}, Quoted: true, SampledAt: noon(),
		Servers: map[string]ServerReport{"https://a": {Apps: 1, Cached: true, CacheAge: 1, Connected: true, Reconciles: 1, Seconds: 1, Counts: ShowsReconciles}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const pods, targets = `{ pod=~"ac-[0-9]+"`, `{ namespace="argocd",pod=~"ac-[0-9]+"`
	const ofTargets = ` and on (pod, instance) last_over_time({__name__=~"up|process_resident_memory_bytes",namespace="argocd",pod=~"ac-[0-9]+"}[10m])` +
		` unless on (pod, instance, namespace) last_over_time({__name__=~"up|process_resident_memory_bytes",namespace!="argocd",pod=~"ac-[0-9]+"}[10m])`
	queries := []string{
		`label_join(count by (pod, dest_server) (argocd_app_info` + pods + `,dest_server!="" }` + ofTargets + `), "owner", "|", "pod", "dest_server")`,
		`label_join(min by (pod, server) (argocd_cluster_cache_age_seconds` + targets + `,server!="" }), "owner", "|", "pod", "server")`,
		`label_join(min by (pod, server) (argocd_cluster_connection_status` + targets + `,server!="" }), "owner", "|", "pod", "server")`,
		`label_join(sum by (pod, dest_server) (argocd_app_reconcile_count` + pods + `,dest_server!="" }` + ofTargets + `), "owner", "|", "pod", "dest_server")`,
		`label_join(sum by (pod, dest_server) (argocd_app_reconcile_sum` + pods + `,dest_server!="" }` + ofTargets + `), "owner", "|", "pod", "dest_server")`,
		`label_replace(max by (pod) (process_resident_memory_bytes` + targets + ` }), "pod", "$1", "pod", "(.*)")`,
		`label_replace(max by (pod) (timestamp(process_resident_memory_bytes` + targets + ` })) or max by (pod) (timestamp(up` + targets + ` }) and up` + targets + ` } == 1), "pod", "$1", "pod", "(.*)")`,
	}
	asked := slices.DeleteFunc(slices.Sorted(maps.Keys(q.asked)), func(query string) bool { return strings.HasPrefix(query, "(group by (namespace, pod, instance)") })
	if len(q.asked) != len(asked)+1 {
		t.Errorf("%d queries besides, want the one for the targets", len(q.asked)-len(asked))
	}
	if diff := cmp.Diff(queries, asked); diff != "" {
		t.Errorf("the queries (-want +got):\n%s", diff)
	}
}

func TestAPrometheusThatDoesNotAnswerSaysNothingOfAnyPod(t *testing.T) {
	pods := []observed.Controller{running("ac-0", ""), running("ac-1", "")}
	for refuse, want := range map[string]string{
		"argocd_app_info": "asking Prometheus for argocd_app_info: ", "timestamp": "asking Prometheus for sampled: ", "argocd_app_reconcile_sum": "asking Prometheus for argocd_app_reconcile_sum: ",
	} {
		client := poll.NewWith(&querier{asked: map[string]bool{}, refuse: refuse}, poll.Config{Concurrency: 1})
		for i, r := range Ask(t.Context(), client, pods, noon()) {
			if !strings.HasPrefix(r.Err, want) || !strings.HasSuffix(r.Err, "too many samples") {
				t.Errorf("pod %q: got %q, want %s...", r.Name, r.Err, want)
			}
			r.Err = ""
			if diff := cmp.Diff(PodReport{Controller: pods[i]}, r); diff != "" {
				t.Errorf("beside the error (-want +got):\n%s", diff)
			}
		}
	}
}
