package diff

import (
	"maps"
	"slices"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

// pairs are a container's resources, each as section.name=quantity, in order.
func pairs(r plan.Resources) []string {
	var list []string
	for _, section := range []struct {
		name   string
		values map[string]string
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(section.values)) {
			list = append(list, section.name+"."+name+"="+section.values[name])
		}
	}
	return list
}

// templateResources is what the pod template gives the controller's container.
func templateResources(w *observed.Workload) plan.Resources {
	if w.Resources == nil {
		return plan.Resources{}
	}
	return *w.Resources
}

// lacking is what of a size a container does not have.
func lacking(has, size plan.Resources) plan.Resources {
	return plan.Resources{Requests: unlike(has.Requests, size.Requests), Limits: unlike(has.Limits, size.Limits)}
}

func unlike(has, want map[string]string) map[string]string {
	var m map[string]string
	for name, text := range want {
		if sameQuantity(has[name], text) {
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		m[name] = text
	}
	return m
}

func sameQuantity(a, b string) bool {
	if a == b {
		return true
	}
	x, err := plan.ReadQuantity(a)
	if err != nil {
		return false
	}
	y, err := plan.ReadQuantity(b)
	return err == nil && x.Cmp(y) == 0
}

// standing is what a container has of those resources.
func standing(has, of plan.Resources) plan.Resources {
	pick := func(has, of map[string]string) map[string]string {
		var m map[string]string
		for name := range of {
			text, there := has[name]
			if there && m == nil {
				m = map[string]string{}
			}
			if there {
				m[name] = text
			}
		}
		return m
	}
	return plan.Resources{Requests: pick(has.Requests, of.Requests), Limits: pick(has.Limits, of.Limits)}
}

// LowersMemory reports whether a container has a higher memory limit than a size.
func LowersMemory(has, size plan.Resources) bool {
	was, err := plan.ReadQuantity(has.Limits["memory"])
	if err != nil {
		return false
	}
	is, err := plan.ReadQuantity(size.Limits["memory"])
	return err == nil && is.Cmp(was) < 0
}

// KeepingMemory is what of a size a pod can be given that keeps its memory limit: all but that, and where its request
// would then make it another class of pod, no memory at all.
func KeepingMemory(asks podspec.Size, size plan.Resources) plan.Resources {
	kept := plan.Resources{Requests: size.Requests, Limits: but(size.Limits, "memory")}
	if asks.Misfit(kept) != "" {
		return without(kept, "memory")
	}
	return kept
}

// without is a size without one resource.
func without(r plan.Resources, name string) plan.Resources {
	return plan.Resources{Requests: but(r.Requests, name), Limits: but(r.Limits, name)}
}

func but(values map[string]string, name string) map[string]string {
	rest := maps.Clone(values)
	delete(rest, name)
	if len(rest) == 0 {
		return nil
	}
	return rest
}
