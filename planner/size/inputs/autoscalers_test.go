package inputs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/size"
)

var target = plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: workload, Container: "application-controller"}

func recommending(t *testing.T, name, status string) (v VPA) {
	t.Helper()
	text := fmt.Sprintf(`{"metadata":{"namespace":"argocd","name":%q},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"StatefulSet","name":%q}},"status":%s}`, name, workload, status)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAVPAsBoundsAreInputs(t *testing.T) {
	vpa := recommending(t, "advice", `{"recommendation":{"containerRecommendations":[
		{"containerName":"sidecar","target":{"cpu":"9","memory":"9Gi"}},
		{"containerName":"application-controller","target":{"cpu":"1500m","memory":"2Gi"},"lowerBound":{"cpu":"1","memory":"1Gi"},"upperBound":{"cpu":"3","memory":"nonsense"}}]},
		"conditions":[{"type":"RecommendationProvided","status":"True"},{"type":"LowConfidence","status":"False"}]}`)
	s := Surroundings{VPA: Recommends([]VPA{vpa}, target, noon)}
	for input, want := range map[string]float64{config.InputVPATargetCPU: 1.5, config.InputVPATargetMemory: 2 << 30, config.InputVPALowerBoundCPU: 1,
		config.InputVPALowerBoundMemory: 1 << 30, config.InputVPAUpperBoundCPU: 3} {
		if got, why := s.Of(input, noon); got.Total != want || why != "" {
			t.Errorf("%s is %v, %q; want %v", input, got, why, want)
		}
	}
	if got, why := s.Of(config.InputVPAUpperBoundMemory, noon); !got.Missing || why != "VerticalPodAutoscaler advice recommends no memory" {
		t.Errorf("%v, %q", got, why)
	}
}

func TestWhyAVPARecommendsNothing(t *testing.T) {
	one := recommending(t, "advice", `{}`)
	another := one
	another.Metadata.Namespace = "elsewhere"
	for name, tc := range map[string]struct {
		vpas []VPA
		want string
	}{
		"there is none":              {nil, "no VerticalPodAutoscaler is over StatefulSet " + workload},
		"it is another workload's":   {[]VPA{another}, "no VerticalPodAutoscaler is over StatefulSet " + workload},
		"there are two":              {[]VPA{one, one}, "several VerticalPodAutoscalers are over StatefulSet " + workload + ": keep one"},
		"it says nothing yet":        {[]VPA{one}, `VerticalPodAutoscaler advice has no recommendation for container "application-controller" yet: its recommender needs some hours`},
		"what it says is no such":    {[]VPA{recommending(t, "advice", `{"recommendation":"much"}`)}, `VerticalPodAutoscaler advice has no recommendation for container "application-controller" yet: its recommender needs some hours`},
		"it speaks of other objects": {[]VPA{recommending(t, "advice", `{"recommendation":{"containerRecommendations":[{"containerName":"x"}]}}`)}, `VerticalPodAutoscaler advice has no recommendation for container "application-controller" yet: its recommender needs some hours`},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := Surroundings{VPA: Recommends(tc.vpas, target, noon)}.Of(config.InputVPATargetCPU, noon)
			if diff := cmp.Diff(size.Reading{Missing: true}, got); diff != "" || why != tc.want {
				t.Errorf("%q, want %q; %s", why, tc.want, diff)
			}
		})
	}
}

// TestAVPAThatIsNotSureIsNoInput: what it says of itself counts, in whatever order, and none that says nothing is relied on.
func TestAVPAThatIsNotSureIsNoInput(t *testing.T) {
	const advice = `{"recommendation":{"containerRecommendations":[{"containerName":"application-controller","target":{"cpu":"1"}}]},` +
		`"conditions":%s}`
	is := func(status string, types ...string) string {
		var all []string
		for _, name := range types {
			all = append(all, fmt.Sprintf(`{"type":%q,"status":%q}`, name, status))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	const provided, nothing = "RecommendationProvided", "its condition RecommendationProvided is not True"
	for conditions, want := range map[string]string{
		is("True", provided):                      "",
		is("True", provided, "LowConfidence"):     "its condition LowConfidence is True",
		is("True", "ConfigUnsupported", provided): "its condition ConfigUnsupported is True",
		is("True", "ConfigDeprecated", provided):  "its condition ConfigDeprecated is True",
		is("False", provided, "LowConfidence"):    nothing,
		is("True"):                                nothing,
		`"many"`:                                  nothing,
	} {
		if want != "" {
			want = "VerticalPodAutoscaler advice is not to be relied on: " + want
		}
		vpa := recommending(t, "advice", fmt.Sprintf(advice, conditions))
		got, why := Surroundings{VPA: Recommends([]VPA{vpa}, target, noon)}.Of(config.InputVPATargetCPU, noon)
		if why != want || got.Missing != (want != "") {
			t.Errorf("%s: %q, want %q; %+v", conditions, why, want, got)
		}
	}
}

func TestAnHPAsWishIsAnInput(t *testing.T) {
	hpa := func(replicas int32, conditions ...autoscalingv2.HorizontalPodAutoscalerCondition) autoscalingv2.HorizontalPodAutoscaler {
		return autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "grow"},
			Spec:   autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: workload}},
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{DesiredReplicas: replicas, Conditions: conditions}}
	}
	blind := autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "FailedGetResourceMetric"}
	other := hpa(9)
	other.Spec.ScaleTargetRef.Kind = "Deployment"
	for name, tc := range map[string]struct {
		hpas []autoscalingv2.HorizontalPodAutoscaler
		want float64
		why  string
	}{
		"one":                   {[]autoscalingv2.HorizontalPodAutoscaler{other, hpa(5)}, 5, ""},
		"none":                  {[]autoscalingv2.HorizontalPodAutoscaler{other}, 0, "no HorizontalPodAutoscaler scales StatefulSet " + workload},
		"two":                   {[]autoscalingv2.HorizontalPodAutoscaler{hpa(5), hpa(5)}, 0, "several HorizontalPodAutoscalers scale StatefulSet " + workload + ": keep one"},
		"one without metrics":   {[]autoscalingv2.HorizontalPodAutoscaler{hpa(5, blind)}, 0, "HorizontalPodAutoscaler grow does not scale: FailedGetResourceMetric"},
		"one that is new there": {[]autoscalingv2.HorizontalPodAutoscaler{hpa(0)}, 0, "HorizontalPodAutoscaler grow has not said yet how many replicas it wants"},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := Surroundings{HPA: Desires(tc.hpas, target, noon)}.Of(config.InputHPAReplicas, noon)
			if got.Total != tc.want || got.Missing != (tc.why != "") || why != tc.why {
				t.Errorf("%v, %q; want %v, %q", got, why, tc.want, tc.why)
			}
		})
	}
}

func TestWhatIsAskedForIsWhatRulesName(t *testing.T) {
	rules := func(inputs ...string) config.Size {
		p := config.SizePolicy{Name: "a"}
		for _, input := range inputs {
			p.Rules = append(p.Rules, config.SizeRule{Input: input})
		}
		return config.Size{Policies: []config.SizePolicy{p}}
	}
	capped := rules("apps")
	capped.NodeCap.FromNodes = &config.FromNodes{}
	for name, tc := range map[string]struct {
		size config.Size
		want Wants
	}{
		"nothing":            {rules("apps", "clusters", "replicas", ""), Wants{}},
		"nodes":              {rules("cores", "apps"), Wants{Nodes: true}},
		"their cap":          {capped, Wants{Nodes: true}},
		"a cap of no policy": {config.Size{NodeCap: capped.NodeCap}, Wants{}},
		"autoscalers":        {rules("vpaUpperBoundCPU", "hpaReplicas"), Wants{VPA: true, HPA: true}},
	} {
		if got := WantsOf(tc.size); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestWhatWasNotSeenNowStandsAsBefore(t *testing.T) {
	before := Surroundings{Nodes: &Nodes{Count: 3, At: noon}, HPA: &Desired{Replicas: 5, At: noon}}
	now := Surroundings{HPA: &Desired{Replicas: 6, At: noon.Add(time.Minute)}}
	if diff := cmp.Diff(Surroundings{Nodes: before.Nodes, HPA: now.HPA}, now.Or(before)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func FuzzVPA(f *testing.F) {
	f.Add([]byte(`{"spec":{"targetRef":{"kind":"StatefulSet"}},"status":{"recommendation":{"containerRecommendations":[{"target":{"cpu":"-1","memory":"1e99"}}]}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v VPA
		if json.Unmarshal(text, &v) != nil {
			return
		}
		v.Resizes("application-controller")
		r := Recommends([]VPA{v}, target, noon)
		for _, list := range []map[string]float64{r.Target, r.Lower, r.Upper} {
			for name, amount := range list {
				if !(amount > 0 && amount <= mostMemory) {
					t.Errorf("%s is %v", name, amount)
				}
			}
		}
	})
}
