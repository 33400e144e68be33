package validation

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/config"
	"ballast/planner/config/strict"
	"ballast/planner/plan"
)

// mostMemory is more than any node has.
const mostMemory = plan.Bytes(1) << 50

func validateDimensions(c config.PlannerConfig, p *field.Path) field.ErrorList {
	d := c.Index.Dimensions
	if d == nil {
		return nil
	}
	if d.Memory == nil && d.Work != nil {
		return nil // as without any
	}
	if d.Memory == nil {
		return field.ErrorList{field.Required(p, "name memory, which is the one dimension that there is beside work, or leave dimensions out")}
	}
	at := p.Child("memory")
	errs := validateMemory(*d.Memory, at)
	if c.Partition.LPT != nil {
		errs = append(errs, field.Invalid(at, field.OmitValueType{},
			"is not kept to by lpt, which goes by one load: set partition.sticky, or leave the memory out"))
	}
	return append(errs, validateMemoryWeights(c, at.Child("weights"))...)
}

func validateMemory(m config.Memory, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.Weights == nil && m.Base.Float() != 0 {
		errs = append(errs, field.Invalid(p.Child("base"), string(m.Base),
			"is learned where the weights are: leave it out, or write weights, too, like {objects: 2Ki}"))
	}
	sum := 0.0
	for _, id := range slices.Sorted(maps.Keys(m.Weights)) {
		w := m.Weights[id]
		if w.Float() > float64(mostMemory) {
			errs = append(errs, field.Invalid(p.Child("weights").Key(id), string(w), "is more than 1024Ti"))
		}
		sum += w.Float()
	}
	if m.Weights != nil && sum == 0 {
		errs = append(errs, field.Invalid(p.Child("weights"), field.OmitValueType{},
			"are all 0, so that no cluster takes any memory: give one metric a weight above 0"))
	}
	if share := m.LimitShare.Float(); share < 0.01 || share > 1 {
		errs = append(errs, field.Invalid(p.Child("limitShare"), string(m.LimitShare),
			"is not a share of the pods' memory limit, 0.01 to 1"))
	}
	if m.Base.Bytes() > mostMemory {
		errs = append(errs, field.Invalid(p.Child("base"), string(m.Base), "is more than 1024Ti"))
	}
	if m.Capacity == nil {
		return errs
	}
	switch capacity := m.Capacity.Bytes(); {
	case capacity < 1 || capacity > mostMemory:
		errs = append(errs, field.Invalid(p.Child("capacity"), string(*m.Capacity),
			"is not between 1 and 1024Ti: null takes limitShare of the pods' memory limit"))
	case capacity <= m.Base.Bytes():
		errs = append(errs, field.Invalid(p.Child("base"), string(m.Base),
			fmt.Sprintf("leaves clusters nothing of the capacity of %s", *m.Capacity)))
	}
	return errs
}

// validateMemoryWeights wants metrics' ids, where those are known here; of the default set the poll phase knows them.
func validateMemoryWeights(c config.PlannerConfig, p *field.Path) field.ErrorList {
	if c.Poll.Prometheus == nil || c.Poll.Prometheus.OfClusters() == nil {
		return nil
	}
	var ids []string
	for _, m := range c.Poll.Prometheus.OfClusters() {
		ids = append(ids, m.ID)
	}
	return UnknownMetrics(c.Index.Dimensions.Memory.Weights, ids, p)
}

// UnknownMetrics refuses weights of what is no metric.
func UnknownMetrics(weights map[string]config.Bytes, ids []string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, id := range slices.Sorted(maps.Keys(weights)) {
		if !slices.Contains(ids, id) {
			errs = append(errs, field.Invalid(p.Key(id), field.OmitValueType{},
				"is no metric's id: "+strict.Hint(id, slices.Sorted(slices.Values(ids)))))
		}
	}
	return errs
}
