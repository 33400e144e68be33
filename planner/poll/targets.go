package poll

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"ballast/planner/poll/promql"
)

// A pod's name says nothing of whose it is: every namespace may have one of that name. So Prometheus is asked first
// which targets carry it, and the queries take those of the namespace alone:
//
//   - {{.targets}} is a label matcher for metrics that have no label `namespace` of their own;
//   - {{.ofTargets}} stands behind a vector of argocd_app_*, which have one (the Application's). Under honorLabels theirs
//     takes the target's place, so that a series is known by its target's pod and instance. One that has these and the
//     namespace of another target is that one's, where `instance` is no address and two targets have one.
//
// A vector over a range is joined after its function, with what the range's last 10 min had: a pod that restarted has
// another instance. Who may write the scrape configuration, or has the labels of their own page believed, is any pod
// they like.

// tellers are metrics that every target has, and no page brings a namespace for.
const tellers = `__name__=~"up|process_resident_memory_bytes"`

// usesTargets reports whether a query asks for the targets' own series, and in which way.
func usesTargets(m Metric) (asks, joined bool) {
	text := m.Query + m.AgeQuery
	joined = strings.Contains(text, ".ofTargets")
	return joined || strings.Contains(text, ".targets"), joined
}

// What a row is that is no target.
const (
	mixed   = "mixed"   // argocd_app_info of one pod and instance in several namespaces, under honorLabels
	stray   = "stray"   // argocd_app_info of no target
	doubled = "doubled" // two processes at one pod and instance
)

// targetsQuery asks for the targets that may be the workload's, 2 for those that were there 5 min ago, too: Prometheus
// shows a target for that long after it went, so that the old and the new one of a pod that restarted are never both 2.
// Of other namespaces, however many there are, it asks for one, and for those at the instances of the workload's. Where
// two Kubernetes clusters have a pod of one name at one instance, their processes did not begin at one time.
func targetsQuery(pod, pods, namespace string) string {
	by := fmt.Sprintf(`group by (namespace, %s, instance) `, pod)
	own := fmt.Sprintf(`{%s,%s,namespace=~"%s|"}`, tellers, pods, promql.Escape(regexp.QuoteMeta(namespace)))
	others := fmt.Sprintf(`%s({%s,%s,namespace!="%s",namespace!=""})`, by, tellers, pods, promql.Escape(namespace))
	starts := fmt.Sprintf(`process_start_time_seconds{%s,namespace=~"%s|"}`, pods,
		promql.Escape(regexp.QuoteMeta(namespace)))
	two := fmt.Sprintf(`(count by (namespace, %[1]s, instance) (count_values by (namespace, %[1]s, instance) ("started", %[2]s)) > 1)`, pod, "%s")
	twice := fmt.Sprintf(`label_replace(`+two+` and `+two+`, "is", "%s", "", "")`, starts, starts+" offset 5m", doubled)
	return fmt.Sprintf(`(%[1]s(%[2]s) + %[1]s(%[2]s offset 5m)) or %[1]s(%[2]s) or topk(1, %[3]s) or (%[3]s and on (%[4]s, instance) %[2]s) or %[5]s`, by, own, others, pod, twice)
}

// doubtsQuery asks for argocd_app_info that no target tells of. It goes through all of them, so it is asked where the
// targets leave a doubt alone.
func doubtsQuery(pod, pods, label string) string {
	marked := `label_replace(group by (` + pod + `, instance) (argocd_app_info{%s%s), "is", "%s", "", "")`
	all := fmt.Sprintf(`{%s,%s}`, tellers, pods)
	ours := fmt.Sprintf(`{%s,%s,namespace="%s"}`, tellers, pods, promql.Escape(label))
	others := fmt.Sprintf(`{%s,%s,namespace!="%s"}`, tellers, pods, promql.Escape(label))
	on, whose := fmt.Sprintf(` on (%s, instance) `, pod), fmt.Sprintf(` on (%s, instance, namespace) `, pod)
	return fmt.Sprintf(marked, pods, `} unless`+on+all, stray) + " or " +
		fmt.Sprintf(marked, pods, `,exported_namespace=""} and`+on+ours+` and`+on+others+` unless`+whose+others, mixed)
}

// doubtful reports whether nothing is scraped, or a pod of another namespace is at the instance of one that has the
// label.
func doubtful(rows []row, label string) bool {
	ours := map[[2]string]bool{}
	for _, r := range rows {
		if r.namespace == label {
			ours[[2]string{r.pod, r.instance}] = true
		}
	}
	return len(rows) == 0 || slices.ContainsFunc(rows, func(r row) bool { return r.namespace != label && ours[[2]string{r.pod, r.instance}] })
}

// has reports whether a target has that label namespace.
func has(rows []row, label string) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.is == "" && r.namespace == label })
}

// labelOf is what the workload's targets have as their label namespace: nothing where none has it and some have no
// label.
func labelOf(rows []row, namespace string) string {
	if !has(rows, namespace) && has(rows, "") {
		return ""
	}
	return namespace
}

// row is a row of the answers.
type row struct {
	namespace, pod, instance, is string
	lasts                        bool
}

func readRows(podLabel string, v model.Value) ([]row, error) {
	vector, ok := v.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("it answers with a %s instead of an instant vector", typeOf(v))
	}
	rows := make([]row, 0, len(vector))
	for i, s := range vector {
		if err := checkSample(i, s); err != nil {
			return nil, err
		}
		label := func(name model.LabelName) string { return string(s.Metric[name]) }
		rows = append(rows, row{label("namespace"), label(model.LabelName(podLabel)), label("instance"), label("is"),
			s.Value > 1})
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(a.namespace, b.namespace),
			cmp.Compare(a.instance, b.instance))
	})
	return rows, nil
}

// targets is what fills queries, and why they may not be asked.
type targets struct {
	vars   promql.FleetVars
	all    error // of every query that asks for targets
	joined error // of those with {{.ofTargets}}
}

// refuses says why a metric may not be asked for.
func (t targets) refuses(m Metric) error {
	switch asks, joined := usesTargets(m); {
	case asks && t.all != nil:
		return t.all
	case joined:
		return t.joined
	}
	return nil
}

// judgeTargets finds the targets of the namespace: those that have it as their label, else those that have no such
// label.
func judgeTargets(rows []row, pod, pods, namespace string) targets {
	label := labelOf(rows, namespace)
	t := targets{vars: newFleetVars(pod, pods, label)}
	i := slices.IndexFunc(rows, func(r row) bool { return r.is == "" })
	switch {
	case has(rows, label):
		t.all, t.joined = judgeTwins(rows, label), judgeMixed(rows, label)
	case i >= 0:
		t.all = fmt.Errorf("prometheus scrapes pods of the application-controller's name in namespace %q, and none in %q: %s",
			rows[i].namespace, namespace, "scrape Argo CD's, or relabel __meta_kubernetes_namespace of its targets to namespace")
	case len(rows) > 0: // strays
		t.joined = fmt.Errorf("prometheus has argocd_app_info of pod %q at instance %q, and neither up nor process_resident_memory_bytes of it to tell its namespace by: %s",
			rows[0].pod, rows[0].instance, "keep one of them, with the labels namespace, pod and instance that argocd_app_info has of its target")
	}
	return t
}

// tellApart is what mends pods of several Kubernetes clusters.
const tellApart = "name the label that tells them apart in poll.prometheus.matchers, as in {cluster: prod}, ask one that sees this Kubernetes cluster alone, " +
	"or stop scraping the other one"

// judgeTwins refuses two pods that have one name and namespace. A pod has one address of a family, whatever number of
// ports, and `instance` may be a name: of two targets, those that differ in their addresses alone are two pods.
func judgeTwins(rows []row, label string) error {
	type family struct {
		pod string
		is6 bool
	}
	if i := slices.IndexFunc(rows, func(r row) bool { return r.is == doubled && r.namespace == label }); i >= 0 {
		return fmt.Errorf("prometheus scrapes two processes as pod %q at instance %q: %s", rows[i].pod,
			rows[i].instance, tellApart)
	}
	first := map[family]netip.Addr{}
	for _, r := range rows {
		address, err := netip.ParseAddr(host(r.instance))
		if err != nil || !r.lasts || r.is != "" || r.namespace != label {
			continue
		}
		key := family{r.pod, address.Is6()}
		other, seen := first[key]
		if first[key] = address; !seen || other == address {
			continue
		}
		if label == "" {
			return fmt.Errorf("prometheus scrapes two pods %q, %s and %s, and their targets have no label namespace that would tell whose they are: %s",
				r.pod, other, address, "relabel __meta_kubernetes_namespace to namespace, or stop scraping the other one")
		}
		return fmt.Errorf("prometheus scrapes two pods %q of namespace %q, %s and %s: %s", r.pod, label, other, address,
			tellApart)
	}
	return nil
}

func host(instance string) string {
	if name, _, err := net.SplitHostPort(instance); err == nil {
		return name
	}
	return instance
}

// judgeMixed refuses argocd_app_info that may be of either of two targets.
func judgeMixed(rows []row, label string) error {
	i := slices.IndexFunc(rows, func(r row) bool { return r.is == mixed })
	if i < 0 {
		return nil
	}
	other := slices.IndexFunc(rows, func(r row) bool {
		return r.is == "" && r.pod == rows[i].pod && r.instance == rows[i].instance && r.namespace != label
	})
	return fmt.Errorf("prometheus scrapes pod %q in namespaces %q and %q at one instance %q, and honorLabels hides whose argocd_app_info is whose: %s",
		rows[i].pod, label, rows[max(other, 0)].namespace, rows[i].instance,
		"set honorLabels: false, or let instance be the address")
}

// newFleetVars fills queries for the targets that have this label namespace; an empty one is none.
func newFleetVars(pod, pods, namespace string) promql.FleetVars {
	matcher := func(op string) string { return fmt.Sprintf(`namespace%s"%s",%s`, op, promql.Escape(namespace), pods) }
	last := func(op string) string { return fmt.Sprintf(`last_over_time({%s,%s}[10m])`, tellers, matcher(op)) }
	return promql.FleetVars{Pod: pod, Pods: pods, Targets: matcher("="),
		OfTargets: fmt.Sprintf(`and on (%[1]s, instance) %[2]s unless on (%[1]s, instance, namespace) %[3]s`, pod,
			last("="), last("!="))}
}
