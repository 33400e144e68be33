package inputs

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ballast/planner/lenient"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// VPAKind is what VerticalPodAutoscalers are to the API server.
func VPAKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}
}

// VPA is the part of a VerticalPodAutoscaler that is read. It is somebody else's type: what is of another type is left
// out.
type VPA struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		TargetRef      lenient.Field[vpaTarget]   `json:"targetRef"`
		UpdatePolicy   lenient.Field[vpaUpdate]   `json:"updatePolicy"`
		ResourcePolicy lenient.Field[vpaPolicies] `json:"resourcePolicy"`
	} `json:"spec"`
	Status struct {
		Recommendation lenient.Field[vpaRecommendation] `json:"recommendation"`
		Conditions     lenient.Field[[]vpaCondition]    `json:"conditions"`
	} `json:"status"`
}

type vpaTarget struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

type vpaUpdate struct {
	UpdateMode string `json:"updateMode"`
}

type vpaPolicies struct {
	ContainerPolicies []struct {
		ContainerName string `json:"containerName"`
		Mode          string `json:"mode"`
	} `json:"containerPolicies"`
}

type vpaRecommendation struct {
	ContainerRecommendations []struct {
		ContainerName string            `json:"containerName"`
		Target        map[string]string `json:"target"`
		LowerBound    map[string]string `json:"lowerBound"`
		UpperBound    map[string]string `json:"upperBound"`
	} `json:"containerRecommendations"`
}

type vpaCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// Unsure says why what it recommends may not be used, by its conditions: it does not say that it recommends anything,
// or says that it is not sure of it. Empty: it may.
func (v VPA) Unsure() string {
	provided, all := false, v.Status.Conditions.Or(nil)
	for _, c := range all[:min(len(all), mostConditions)] {
		if c.Status != "True" {
			continue
		}
		switch c.Type {
		case "ConfigUnsupported", "ConfigDeprecated", "LowConfidence":
			return "its condition " + c.Type + " is True"
		case "RecommendationProvided":
			provided = true
		}
	}
	if !provided {
		return "its condition RecommendationProvided is not True"
	}
	return ""
}

// mostConditions is how many of an object's conditions are looked at.
const mostConditions = 32

// Over reports whether it is over that workload.
func (v VPA) Over(t plan.Target) bool {
	ref := v.Spec.TargetRef.Or(vpaTarget{})
	apps := ref.APIVersion == "" || strings.HasPrefix(ref.APIVersion, "apps/")
	return apps && v.Metadata.Namespace == t.Namespace && ref.Kind == t.Kind && ref.Name == t.Name
}

// Modes of a VPA, and of one container under it, in which it changes no pod.
const (
	modeOff     = "Off"
	modeInitial = "Initial"
	modeDefault = "Recreate" // what stands for none, and for Auto
	allOthers   = "*"
)

// Mode is its updateMode.
func (v VPA) Mode() string {
	if mode := v.Spec.UpdatePolicy.Or(vpaUpdate{}).UpdateMode; mode != "" {
		return mode
	}
	return modeDefault
}

// Resizes says how it changes that container of pods: that of pods that run, that of new ones alone, or not at all.
func (v VPA) Resizes(container string) (running, fresh bool) {
	mode, others := "", ""
	for _, p := range v.Spec.ResourcePolicy.Or(vpaPolicies{}).ContainerPolicies {
		switch p.ContainerName {
		case container:
			mode = p.Mode
		case allOthers:
			others = p.Mode
		}
	}
	if mode == "" {
		mode = others
	}
	if mode == modeOff || v.Mode() == modeOff {
		return false, false
	}
	return v.Mode() != modeInitial, true
}

// Recommends is what those VPAs that are over the workload recommend for its container. Of several nobody can say which
// counts.
func Recommends(vpas []VPA, t plan.Target, now time.Time) *Recommendation {
	r := &Recommendation{At: now}
	var over []VPA
	for _, v := range vpas {
		if v.Over(t) {
			over = append(over, v)
		}
	}
	switch len(over) {
	case 0:
		r.Why = fmt.Sprintf("no VerticalPodAutoscaler is over %s %s", t.Kind, t.Name)
		return r
	case 1:
	default:
		r.Why = fmt.Sprintf("several VerticalPodAutoscalers are over %s %s: keep one", t.Kind, t.Name)
		return r
	}
	r.Name = over[0].Metadata.Name
	for _, c := range over[0].Status.Recommendation.Or(vpaRecommendation{}).ContainerRecommendations {
		if c.ContainerName == t.Container {
			if unsure := over[0].Unsure(); unsure != "" {
				r.Why = fmt.Sprintf("VerticalPodAutoscaler %s is not to be relied on: %s", r.Name, unsure)
				return r
			}
			r.Target, r.Lower, r.Upper = amounts(c.Target), amounts(c.LowerBound), amounts(c.UpperBound)
			return r
		}
	}
	r.Why = fmt.Sprintf("VerticalPodAutoscaler %s has no recommendation for container %q yet: its recommender needs some hours",
		r.Name, t.Container)
	return r
}

// amounts are quantities in cores and bytes; what is none is left out.
func amounts(list map[string]string) map[string]float64 {
	out := map[string]float64{}
	for _, name := range []string{size.CPU, size.Memory} {
		q, err := size.ParseQuantity(list[name])
		if err != nil || q.Sign() <= 0 {
			continue
		}
		if most := resource.NewQuantity(mostMemory, resource.BinarySI); q.Cmp(*most) > 0 {
			continue
		}
		out[name] = q.AsApproximateFloat64()
	}
	return out
}
