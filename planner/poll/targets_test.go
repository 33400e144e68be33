package poll

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
)

func TestTheTargetsAreTheNamespaces(t *testing.T) {
	const pods = `pod=~"c-[0-9]+"`
	lasting := func(namespace, pod, instance string) row { return row{namespace, pod, instance, "", true} }
	gone := func(namespace, pod, instance string) row { return row{namespace, pod, instance, "", false} }
	const (
		two    = `prometheus scrapes two pods "c-0" of namespace "argocd", 10.0.0.1 and 10.0.0.2: name the label that tells them apart in poll.prometheus.matchers, as in {cluster: prod}, ask one that sees this Kubernetes cluster alone, or stop scraping the other one`
		others = `prometheus scrapes pods of the application-controller's name in namespace "tenant", and none in "argocd": ` +
			`scrape Argo CD's, or relabel __meta_kubernetes_namespace of its targets to namespace`
	)
	tests := map[string]struct {
		rows                 []row
		targets, all, ofApps string
	}{
		"nothing is scraped":                     {nil, `namespace="argocd"`, "", ""},
		"others have the name, too":              {[]row{lasting("argocd", "c-0", "10.0.0.1:8082"), lasting("tenant", "c-0", "10.0.0.2:8082"), lasting("", "c-0", "10.0.0.3:8082")}, `namespace="argocd"`, "", ""},
		"others alone":                           {[]row{lasting("tenant", "c-0", "10.0.0.2:8082")}, `namespace="argocd"`, others, others},
		"no label":                               {[]row{lasting("", "c-0", "10.0.0.1:8082"), lasting("", "c-1", "10.0.0.2:8082"), lasting("tenant", "c-0", "10.0.0.3:8082")}, `namespace=""`, "", ""},
		"a pod that restarted":                   {[]row{gone("argocd", "c-0", "10.0.0.1:8082"), lasting("argocd", "c-0", "10.0.0.2:8082")}, `namespace="argocd"`, "", ""},
		"several ports":                          {[]row{lasting("argocd", "c-0", "10.0.0.1:8082"), lasting("argocd", "c-0", "10.0.0.1:9090")}, `namespace="argocd"`, "", ""},
		"two families of addresses":              {[]row{lasting("argocd", "c-0", "10.0.0.1:8082"), lasting("argocd", "c-0", "[fd00::1]:8082")}, `namespace="argocd"`, "", ""},
		"two jobs, one of which names instances": {[]row{lasting("argocd", "c-0", "10.0.0.1:8082"), lasting("argocd", "c-0", "c-0"), lasting("argocd", "c-0", "")}, `namespace="argocd"`, "", ""},
		"two pods at once":                       {[]row{lasting("argocd", "c-0", "10.0.0.1:8082"), lasting("argocd", "c-0", "10.0.0.2:8082")}, `namespace="argocd"`, two, two},
		"argocd_app_info of no target at all": {[]row{{"", "c-0", "10.0.0.9:80", stray, false}}, `namespace="argocd"`, "",
			`prometheus has argocd_app_info of pod "c-0" at instance "10.0.0.9:80", and neither up nor process_resident_memory_bytes of it to tell its namespace by: ` +
				`keep one of them, with the labels namespace, pod and instance that argocd_app_info has of its target`},
		"one instance of two namespaces": {[]row{lasting("argocd", "c-0", "c-0"), lasting("tenant", "c-0", "c-0"), {"", "c-0", "c-0", mixed, false}}, `namespace="argocd"`, "",
			`prometheus scrapes pod "c-0" in namespaces "argocd" and "tenant" at one instance "c-0", and honorLabels hides whose argocd_app_info is whose: ` +
				`set honorLabels: false, or let instance be the address`},
		"one instance of ours without a label and another namespace": {[]row{lasting("", "c-0", "c-0"), lasting("tenant", "c-0", "c-0"), {"", "c-0", "c-0", mixed, false}}, `namespace=""`, "",
			`prometheus scrapes pod "c-0" in namespaces "" and "tenant" at one instance "c-0", and honorLabels hides whose argocd_app_info is whose: ` +
				`set honorLabels: false, or let instance be the address`},
	}
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := judgeTargets(test.rows, "pod", pods, "argocd")
			if want := test.targets + "," + pods; got.vars.Targets != want {
				t.Errorf("targets are %s, want %s", got.vars.Targets, want)
			}
			refused := []string{
				text(got.refuses(Metric{Query: "x{ {{.pods}} }"})), text(got.refuses(Metric{Query: "x{ {{.targets}} }"})), text(got.refuses(Metric{Query: "x", AgeQuery: "y {{ .ofTargets }}"})),
			}
			if diff := cmp.Diff([]string{"", test.all, test.ofApps}, refused); diff != "" {
				t.Errorf("refused by pods, targets, ofTargets (-want +got):\n%s", diff)
			}
		})
	}
}

// One query more is asked, two where the first leaves a doubt, by those alone that want to know; without its answer they are not asked, and others are.
func TestMetricsWaitForTheTargets(t *testing.T) {
	const pods = `pod=~"c-[0-9]+"`
	of := func(key string) model.Vector { return model.Vector{series("server", key, 1)} }
	metrics := []Metric{{ID: "own", Query: "x{ {{.pods}} }", Match: Match{Label: "server"}}, {ID: "ours", Query: "y{ {{.targets}} }", Match: Match{Label: "server"}}}
	target := &model.Sample{Metric: model.Metric{"namespace": "argocd", "pod": "c-0", "instance": "10.0.0.1:8082"}, Value: 2}
	tests := map[string]struct {
		namespace string
		metrics   []Metric
		values    map[string]model.Value
		asked     []string
		want      []Fetched
	}{
		"the targets are known": {"argocd", metrics, map[string]model.Value{targetsQuery("pod", pods, "argocd"): model.Vector{target}, "x{ " + pods + " }": of("a"), `y{ namespace="argocd",` + pods + " }": of("b")},
			[]string{targetsQuery("pod", pods, "argocd"), "x{ " + pods + " }", `y{ namespace="argocd",` + pods + " }"},
			[]Fetched{{Metric: "own", Samples: []Sample{{Key: "a", Value: 1}}}, {Metric: "ours", Samples: []Sample{{Key: "b", Value: 1}}}}},
		"no answer": {"argocd", metrics, map[string]model.Value{"x{ " + pods + " }": of("a")},
			[]string{targetsQuery("pod", pods, "argocd"), "x{ " + pods + " }"},
			[]Fetched{{Metric: "own", Samples: []Sample{{Key: "a", Value: 1}}}, {Metric: "ours", Err: `asking which pods are those of namespace "argocd": no such query`}}},
		"doubtful, and no answer": {"argocd", metrics[1:], map[string]model.Value{targetsQuery("pod", pods, "argocd"): model.Vector{}}, []string{targetsQuery("pod", pods, "argocd"), doubtsQuery("pod", pods, "argocd")},
			[]Fetched{{Metric: "ours", Err: `asking which pods are those of namespace "argocd": no such query`}}},
		"doubtful, and nothing comes of it": {"argocd", metrics[1:], map[string]model.Value{
			targetsQuery("pod", pods, "argocd"): model.Vector{target, &model.Sample{Metric: model.Metric{"namespace": "tenant", "pod": "c-0", "instance": "10.0.0.1:8082"}, Value: 2}},
			doubtsQuery("pod", pods, "argocd"):  model.Vector{}, `y{ namespace="argocd",` + pods + " }": of("b")},
			[]string{targetsQuery("pod", pods, "argocd"), doubtsQuery("pod", pods, "argocd"), `y{ namespace="argocd",` + pods + " }"},
			[]Fetched{{Metric: "ours", Samples: []Sample{{Key: "b", Value: 1}}}}},
		"ours have no label, and another namespace has the instance": {"argocd", metrics[1:], map[string]model.Value{
			targetsQuery("pod", pods, "argocd"): model.Vector{&model.Sample{Metric: model.Metric{"pod": "c-0", "instance": "c-0"}, Value: 2},
				&model.Sample{Metric: model.Metric{"namespace": "tenant", "pod": "c-0", "instance": "c-0"}, Value: 2}},
			doubtsQuery("pod", pods, ""): model.Vector{}, `y{ namespace="",` + pods + " }": of("b")},
			[]string{targetsQuery("pod", pods, "argocd"), doubtsQuery("pod", pods, ""), `y{ namespace="",` + pods + " }"},
			[]Fetched{{Metric: "ours", Samples: []Sample{{Key: "b", Value: 1}}}}},
		"another answer": {"argocd", metrics[1:], map[string]model.Value{targetsQuery("pod", pods, "argocd"): &model.Scalar{}}, []string{targetsQuery("pod", pods, "argocd")},
			[]Fetched{{Metric: "ours", Err: `asking which pods are those of namespace "argocd": it answers with a scalar instead of an instant vector`}}},
		"nobody wants to know": {"argocd", metrics[:1], map[string]model.Value{"x{ " + pods + " }": of("a")}, []string{"x{ " + pods + " }"},
			[]Fetched{{Metric: "own", Samples: []Sample{{Key: "a", Value: 1}}}}},
		"any namespace": {"", metrics[1:], map[string]model.Value{"y{ " + pods + " }": of("b")}, []string{"y{ " + pods + " }"},
			[]Fetched{{Metric: "ours", Samples: []Sample{{Key: "b", Value: 1}}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := &answers{values: test.values}
			got := NewWith(a, Config{Pods: pods, Namespace: test.namespace, Concurrency: 1, Timeout: time.Minute}).Fetch(t.Context(), test.metrics, fleetOf("https://a"), noon)
			for i := range got {
				got[i].Warnings = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.asked, a.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestANamespaceStaysInItsString(t *testing.T) {
	vars := newFleetVars("pod", "p", `a"} or x{b="`)
	if want := `namespace="a\x22} or x{b=\x22",p`; vars.Targets != want {
		t.Errorf("got %s, want %s", vars.Targets, want)
	}
	if err := (targets{joined: errors.New("e")}).refuses(Metric{Query: "{{.targets}}"}); err != nil {
		t.Errorf("refused by %v what is not joined", err)
	}
}
