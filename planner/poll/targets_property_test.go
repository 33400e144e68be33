package poll

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// target is one of Argo CD's pods, as Prometheus scrapes it. Its process began at a time of its own.
type target struct {
	namespace, pod, instance string
	process                  int
	ours                     bool
}

// targetsOf are those of one Argo CD of a StatefulSet c. All of a Prometheus name their instances alike.
func targetsOf(t *rapid.T, namespace string, ours, byName bool) (targets []target) {
	net := map[bool]int{true: 0, false: 1}[ours]
	for i := range rapid.IntRange(1, 3).Draw(t, "pods") {
		o := target{namespace, fmt.Sprintf("c-%d", i), fmt.Sprintf("10.%d.0.%d:8082", net, i+1), 10*net + i, ours}
		if byName {
			o.instance = o.pod
		}
		targets = append(targets, o)
	}
	return targets
}

// answered is what Prometheus answers to targetsQuery and, where that leaves a doubt, to doubtsQuery. TestTheDefaultMetricsOnEveryLayout
// (e2e/poll) asks a real one.
func answered(targets []target, namespace string, honors bool) (rows []row) {
	own := func(o target) bool { return o.namespace == namespace || o.namespace == "" }
	others := 0
	for _, o := range targets {
		r := row{o.namespace, o.pod, o.instance, "", own(o)}
		beside := slices.ContainsFunc(targets, func(p target) bool { return own(p) && p.pod == o.pod && p.instance == o.instance })
		if !own(o) {
			if others++; others > 1 && !beside {
				continue
			}
		}
		if !slices.Contains(rows, r) {
			rows = append(rows, r)
		}
		twice := func(p target) bool {
			return p.namespace == o.namespace && p.pod == o.pod && p.instance == o.instance && p.process != o.process
		}
		if is := (row{o.namespace, o.pod, o.instance, doubled, false}); own(o) && slices.ContainsFunc(targets, twice) && !slices.Contains(rows, is) {
			rows = append(rows, is)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(a.namespace, b.namespace)) })
	label := labelOf(rows, namespace)
	if !honors || !doubtful(rows, label) {
		return rows
	}
	for _, o := range targets {
		elsewhere := func(p target) bool {
			return p.namespace != o.namespace && p.pod == o.pod && p.instance == o.instance
		}
		if o.namespace == label && slices.ContainsFunc(targets, elsewhere) {
			rows = append(rows, row{"", o.pod, o.instance, mixed, false})
		}
	}
	return rows
}

// TestNoSecondArgoCDIsMeasuredInSilence: however two Argo CDs of one workload's name are scraped, what is asked for is ours alone, or the
// metrics are refused by name with a mend; one alone is refused nothing.
func TestNoSecondArgoCDIsMeasuredInSilence(t *testing.T) {
	const ours = "argocd"
	rapid.Check(t, func(t *rapid.T) {
		byName, honors := rapid.Bool().Draw(t, "instance is the pod's name"), rapid.Bool().Draw(t, "honorLabels")
		label, alone := rapid.SampledFrom([]string{ours, ""}).Draw(t, "our namespace"), rapid.Bool().Draw(t, "alone")
		all := targetsOf(t, label, true, byName)
		if !alone { // where ours have no namespace none of theirs has ours: that is what Open in docs/hazards.md has
			theirs := rapid.SampledFrom([]string{label, "tenant", ""}).Draw(t, "theirs")
			all = append(all, targetsOf(t, theirs, false, byName)...)
		}
		judged := judgeTargets(answered(all, ours, honors), "pod", `pod=~"c-[0-9]+"`, ours)
		asked := func(o target) bool {
			return strings.HasPrefix(judged.vars.Targets, fmt.Sprintf("namespace=%q,", o.namespace))
		}
		for _, o := range all {
			taken := asked(o)
			joined := taken || honors && slices.ContainsFunc(all, func(p target) bool { return asked(p) && p.pod == o.pod && p.instance == o.instance })
			err := judged.refuses(Metric{Query: "x {{.ofTargets}}"})
			switch {
			case o.ours && !taken && judged.all == nil && alone:
				t.Errorf("ours, %+v, is not asked for: %s", o, judged.vars.Targets)
			case !o.ours && taken && judged.all == nil:
				t.Errorf("theirs, %+v, counts for what is asked by {{.targets}}: %s", o, judged.vars.Targets)
			case !o.ours && joined && err == nil:
				t.Errorf("theirs, %+v, counts for what is asked by {{.ofTargets}}", o)
			}
		}
		for _, err := range []error{judged.all, judged.joined} {
			if err != nil && alone {
				t.Errorf("one Argo CD alone is refused: %v", err)
			}
			mended := func(mend string) bool { return strings.Contains(err.Error(), mend) }
			if err != nil && !slices.ContainsFunc([]string{"poll.prometheus.matchers", "relabel ", "set honorLabels: false"}, mended) {
				t.Errorf("it names no mend: %v", err)
			}
		}
	})
}
