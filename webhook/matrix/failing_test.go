package matrix

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/planner/plan"
	"ballast/webhook"
	"ballast/webhook/inforce"
	"ballast/webhook/source"
)

// counted is the sum of a counter's series that carry these labels, as key=value.
func counted(t *testing.T, registry *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			carried := map[string]bool{}
			for _, l := range m.GetLabel() {
				carried[l.GetName()+"="+l.GetValue()] = true
			}
			all := true
			for _, l := range labels {
				all = all && carried[l]
			}
			if all {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// runCounted runs a table of which each write is counted under a reason: a dry-run and one in earnest a cell, and the one
// that sets its scene, which of a scale is its workload's.
func (s *site) runCounted(t *testing.T, tb table, registry *prometheus.Registry, reason plan.Reason) {
	name, _, _ := strings.Cut(tb.webhook, ".")
	labels := []string{"webhook=" + name, "reason=" + string(reason)}
	before := counted(t, registry, "ballast_webhook_requests_total", labels...)
	faults := counted(t, registry, "ballast_webhook_faults_total", labels[0])
	s.run(t, tb)
	writes := 0.0
	for _, c := range tb.cells {
		writes += 2
		if c.before != nil && name != "scale" {
			writes++
		}
	}
	if got := counted(t, registry, "ballast_webhook_requests_total", labels...) - before; got != writes {
		t.Errorf("%v writes were counted as %s, want %v", got, reason, writes)
	}
	if reason != plan.Faulted {
		writes = 0
	}
	if got := counted(t, registry, "ballast_webhook_faults_total", labels[0]) - faults; got != writes {
		t.Errorf("%v faults were counted, want %v", got, writes)
	}
}

// failing are tables of a few writes to each kind but the plan, with what comes of a wrong value: the fields, the
// audit annotations and the warnings of a kind's writes.
func (s *site) failing(shardWant, controllerWant, scaleWant outcome) []table {
	set := controller(plan.StatefulSet, 4, "16")
	return []table{
		{resource: secrets, webhook: "clusters.ballast.argoproj.io", fields: shardOf, reset: s.remove(secrets),
			names: func(i int) string { return fmt.Sprintf("c-7%d", i) },
			cells: map[string]cell{
				"CREATE":           {write: create(secret("1")), want: shardWant},
				"PUT":              {before: secret("3"), write: put(setShard(encoded("1"))), want: shardWant},
				"merge patch":      {before: secret("3"), write: patch(types.MergePatchType, `{"data":{"shard":"MQ=="}}`), want: shardWant},
				"apply with force": {before: secret("3"), write: apply("gitops", true, secret("1")), want: shardWant},
			}},
		{resource: statefulSets, webhook: "controllers.ballast.argoproj.io", fields: workloadFields, reset: s.remove(statefulSets), names: func(int) string { return workload },
			cells: map[string]cell{
				"CREATE":           {write: create(controller(plan.StatefulSet, 9, "9")), want: controllerWant},
				"apply with force": {before: set, write: apply("gitops", true, controller(plan.StatefulSet, 9, "9")), want: controllerWant},
			}},
		{resource: statefulSets, webhook: "scale.ballast.argoproj.io", fields: scaleFields, reset: s.remove(statefulSets), names: func(int) string { return workload },
			cells: map[string]cell{
				"PUT":         {before: set, write: putScale(9, false), want: scaleWant},
				"merge patch": {before: set, write: patch(types.MergePatchType, `{"spec":{"replicas":9}}`, "scale"), want: scaleWant},
			}},
	}
}

// stalePlan: what stands in the ConfigMap does not match its digest, and the last good plan goes on being enforced.
func (s *site) stalePlan(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	body := `{"metadata":{"annotations":{"` + plan.AnnotationDigest + `":"broken"}}}`
	if _, err := s.dynamic(t, s.planner).Resource(configMaps).Namespace(namespace).Patch(t.Context(), planName, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the broken plan at the webhook", func() bool { return s.source.State().Stale })
	tables := s.failing(
		outcome{Fields: shard("3"), Audit: audit("StalePlan", "1", "shard=1", "shard=3"), Warnings: []string{`ballast: shard 1 was asked, 3 stays (plan 1); to pin, add "{name}: 1" to data.pins of ConfigMap ballast-plan`}},
		outcome{Fields: map[string]string{"replicas": "4", "env": planned}, Warnings: []string{replicasSaid, envSaid},
			Audit: audit("StalePlan", "1", "replicas=9 ARGOCD_CONTROLLER_REPLICAS=9", "replicas=4 ARGOCD_CONTROLLER_REPLICAS=16")},
		outcome{Fields: map[string]string{"replicas": "4"}, Audit: audit("StalePlan", "1", "replicas=9", "replicas=4"), Warnings: []string{replicasSaid}})
	for _, tb := range tables {
		t.Run(tb.webhook, func(t *testing.T) { s.runCounted(t, tb, s.replica.registry, plan.StalePlan) })
	}
}

// faulty is a plan source that breaks every decision: the first look of each panics, and the fault's own does not.
type faulty struct {
	*source.Source
	looks atomic.Int64
}

func (f *faulty) State() *inforce.State {
	if f.looks.Add(1)%2 == 1 {
		panic("a message that may hold anything")
	}
	return f.Source.State()
}

// faulted: the webhook fails inside, and every write passes as it is, warned, counted and annotated.
func (s *site) faulted(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	registry := prometheus.NewRegistry()
	address := s.listen(t, webhook.NewHandler(&faulty{Source: s.source}, webhook.NewMetrics(registry), logr.Discard()))
	s.endpoints.set(address)
	s.endpoints.cut()
	defer s.endpoints.cut()
	defer s.endpoints.set(s.replica.address)
	out := func(fields map[string]string) outcome {
		return outcome{Fields: fields, Audit: audit("Faulted", "1", "-", "-"), Warnings: []string{"ballast: internal fault, write passed unchanged"}}
	}
	tables := s.failing(out(shard("1")), out(map[string]string{"replicas": "9", "env": strings.Replace(planned, "16", "9", 1)}), out(map[string]string{"replicas": "9"}))
	stands := document(t, fleet(plan.StatefulSet, 1), "")
	tables = append(tables, table{resource: configMaps, webhook: "plan.ballast.argoproj.io", fields: planFields, names: func(int) string { return planName },
		reset: func(t *testing.T, name string) {
			s.remove(configMaps)(t, name)
			eventually(t, "the deletion at the webhook", s.planAway)
		},
		settle: func(t *testing.T) {
			eventually(t, "the plan at the webhook", func() bool { return !s.planAway() })
		},
		cells: map[string]cell{
			"a bad pin": {before: stands, write: patch(types.MergePatchType, `{"data":{"pins":"c-00: 99\n"}}`),
				want: out(map[string]string{"plan": planFields(stands)["plan"], "pins": "c-00: 99\n", "revision": "1", "reason": "the test says so"})},
		}})
	for _, tb := range tables {
		t.Run(tb.webhook, func(t *testing.T) { s.runCounted(t, tb, registry, plan.Faulted) })
	}
}
