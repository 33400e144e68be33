package validation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/config"
	"ballast/planner/plan"
)

// Validate reports every mistake, in the order of the fields.
func Validate(c config.PlannerConfig) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, only(field.NewPath("apiVersion"), c.APIVersion, plan.APIVersion)...)
	errs = append(errs, only(field.NewPath("kind"), c.Kind, config.Kind)...)
	errs = append(errs, only(field.NewPath("mode"), c.Mode, plan.Observe, plan.Hold, plan.Enforce)...)
	errs = append(errs, between(field.NewPath("interval"), c.Interval, minInterval, maxTime)...)
	errs = append(errs, validateTarget(c.Target, field.NewPath("target"))...)
	errs = append(errs, validateObjects(c.Plan, field.NewPath("plan"))...)
	errs = append(errs, validateDiscover(c.Discover, field.NewPath("discover"))...)
	errs = append(errs, validatePoll(c.Poll, c.Interval, field.NewPath("poll"))...)
	errs = append(errs, validateNormalize(c.Normalize, field.NewPath("normalize"))...)
	errs = append(errs, validateIndex(c.Index, field.NewPath("index"))...)
	errs = append(errs, validateWeights(c)...)
	errs = append(errs, validateDimensions(c, field.NewPath("index", "dimensions"))...)
	errs = append(errs, validatePartition(c.Partition, field.NewPath("partition"))...)
	errs = append(errs, validateEvaluate(c.Evaluate, c.Interval, field.NewPath("evaluate"))...)
	errs = append(errs, validateSize(c, field.NewPath("size"))...)
	errs = append(errs, validateIntervals(c, field.NewPath("size", "weights"))...)
	errs = append(errs, validateChange(c.Change, field.NewPath("change"))...)
	errs = append(errs, validateRollout(c.Rollout, field.NewPath("rollout"))...)
	errs = append(errs, validateScaler(c)...)
	errs = append(errs, between(field.NewPath("telemetry", "clusters"), c.Telemetry.Clusters, 0, maxShownClusters)...)
	return append(errs, validateFailover(c.Failover, field.NewPath("failover"))...)
}

// objectName wants the name of a Kubernetes object.
func objectName(p *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(p, name, message))
	}
	return errs
}

func validateTarget(t plan.Target, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(t.Namespace) {
		errs = append(errs, field.Invalid(p.Child("namespace"), t.Namespace, message))
	}
	if t.Kind != "" {
		errs = append(errs, only(p.Child("kind"), t.Kind, plan.StatefulSet, plan.Deployment)...)
	}
	if t.Name != "" {
		errs = append(errs, objectName(p.Child("name"), t.Name)...)
	}
	if t.Container != "" {
		for _, message := range validation.IsDNS1123Label(t.Container) {
			errs = append(errs, field.Invalid(p.Child("container"), t.Container, message))
		}
	}
	return errs
}

func validateObjects(o config.Objects, p *field.Path) field.ErrorList {
	errs := append(objectName(p.Child("configMap"), o.ConfigMap), objectName(p.Child("history"), o.History)...)
	if o.ConfigMap == o.History {
		errs = append(errs, field.Invalid(p.Child("history"), o.History, "is the plan's ConfigMap too: name another"))
	}
	return errs
}

func validateDiscover(d config.Discover, p *field.Path) field.ErrorList {
	at := p.Child("selector")
	errs := metavalidation.ValidateLabelSelector(&d.Selector, metavalidation.LabelSelectorValidationOptions{}, at)
	if selector, err := metav1.LabelSelectorAsSelector(&d.Selector); err == nil && len(errs) == 0 && selector.Matches(labels.Set{}) {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf(
			"selects Secrets without any label too: require a label that only cluster Secrets have, like matchLabels: {%s: %s}", plan.SecretTypeLabel, plan.SecretTypeCluster)))
	}
	return append(errs, between(p.Child("maxShrink"), d.MaxShrink, 0, 100)...)
}

func validateNormalize(n config.Normalize, p *field.Path) field.ErrorList {
	errs := oneImplementation(&n, p)
	if n.Robust != nil {
		if n.Robust.PositiveOffset.Float() < 0 {
			errs = append(errs, field.Invalid(p.Child("robust", "positiveOffset"), string(n.Robust.PositiveOffset),
				"is below 0: no index takes scores below 0"))
		}
	}
	return errs
}

func validateIndex(x config.Index, p *field.Path) field.ErrorList {
	errs := oneImplementation(&x, p)
	if x.PNorm == nil {
		return errs
	}
	at := p.Child("pNorm")
	if x.PNorm.P.Float() < 1 {
		errs = append(errs, field.Invalid(at.Child("p"), string(x.PNorm.P),
			"is below 1: 1 adds metrics up, more favours the larger ones"))
	}
	sum := 0.0
	for _, id := range slices.Sorted(maps.Keys(x.PNorm.Weights)) {
		w := x.PNorm.Weights[id].Float()
		if w < 0 {
			errs = append(errs, field.Invalid(at.Child("weights").Key(id), string(x.PNorm.Weights[id]), "is below 0"))
		}
		sum += max(w, 0)
	}
	if x.PNorm.Weights != nil && sum == 0 {
		errs = append(errs, field.Invalid(at.Child("weights"), field.OmitValueType{},
			"are all 0, so that no cluster has any load: give one metric a weight above 0"))
	}
	return errs
}

// validateScaler refuses what cannot be where people scale: a rollout that does so too, and a Deployment, whose pods of
// before and after a change own by different numbers.
func validateScaler(c config.PlannerConfig) field.ErrorList {
	if c.Partition.Replicas == nil || !c.Partition.Replicas.Workload {
		return nil
	}
	var errs field.ErrorList
	if c.Rollout.X0Y != nil {
		errs = append(errs, field.Invalid(field.NewPath("rollout", "x0y"), field.OmitValueType{},
			"stops and starts every replica, and partition.replicas: workload leaves spec.replicas to people: "+
				"set rollout.live or rollout.default, or a number of replicas"))
	}
	if live := c.Rollout.Live; live != nil && live.Adopt == config.AdoptWithNext {
		errs = append(errs, field.Invalid(field.NewPath("rollout", "live", "adopt"), field.OmitValueType{},
			"WithNextRollout may bring the env while replicas come or go that people scale (partition.replicas: workload): "+
				"set Now, or a number of replicas"))
	}
	if c.Target.Kind == plan.Deployment {
		errs = append(errs, field.Invalid(field.NewPath("partition", "replicas"), field.OmitValueType{},
			"workload is for a StatefulSet: pods of a Deployment read their number of replicas once, at their start, so that a cluster may have two owners "+
				"after each change: set a number of replicas, or leave it out"))
	}
	return errs
}

// validate wants drain <= low <= high, above 0 and up to 1: a replica that is filled beyond high would give up at once
// what it took.
func validateSticky(s *config.Sticky, p *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	shares := []struct {
		name  string
		share config.Decimal
	}{{"drain", s.Drain}, {"low", s.Low}, {"high", s.High}}
	for i, one := range shares {
		switch share := one.share.Float(); {
		case share < 0.01 || share > 1:
			errs = append(errs, field.Invalid(p.Child(one.name), string(one.share),
				"is not a share of the capacity, 0.01 to 1"))
		case i > 0 && share < shares[i-1].share.Float():
			below := fmt.Sprintf("is below %s (%s): drain <= low <= high", shares[i-1].name, shares[i-1].share)
			errs = append(errs, field.Invalid(p.Child(one.name), string(one.share), below))
		}
	}
	errs = append(errs, between(p.Child("downWindow"), s.DownWindow, 0, maxTime)...)
	return append(errs, between(p.Child("maxMoves"), s.MaxMoves, 0, 100_000)...)
}

func validatePartition(r config.Partition, p *field.Path) field.ErrorList {
	errs := append(oneImplementation(&r, p), validateSticky(r.Sticky, p.Child("sticky"))...)
	low, high := 1, maxReplicas
	if r.MinReplicas != nil {
		errs = append(errs, between(p.Child("minReplicas"), *r.MinReplicas, 1, maxReplicas)...)
		low = max(*r.MinReplicas, low)
	}
	if r.MaxReplicas != nil {
		errs = append(errs, between(p.Child("maxReplicas"), *r.MaxReplicas, 1, maxReplicas)...)
		high = min(*r.MaxReplicas, high)
	}
	if low > high && len(errs) == 0 {
		errs = append(errs, field.Invalid(p.Child("minReplicas"), low, fmt.Sprintf("is above maxReplicas %d", high)))
	}
	if r.Replicas != nil && !r.Replicas.Workload && len(errs) == 0 {
		errs = append(errs, between(p.Child("replicas"), r.Replicas.Fixed, low, high)...)
	}
	if r.MaxClustersPerReplica < 0 {
		errs = append(errs, field.Invalid(p.Child("maxClustersPerReplica"), r.MaxClustersPerReplica,
			"is below 0; 0 is no cap"))
	}
	if r.Capacity != nil {
		var load plan.Load
		if err := load.UnmarshalText([]byte(*r.Capacity)); err != nil || load <= 0 {
			errs = append(errs, field.Invalid(p.Child("capacity"), string(*r.Capacity),
				"is not a load above 0: null leaves the number of replicas as it is"))
		}
	}
	return append(errs, validateGroups(r, p.Child("groups"))...)
}

func validateEvaluate(e config.Evaluate, interval config.Duration, p *field.Path) field.ErrorList {
	errs := oneImplementation(&e, p)
	if e.CostBenefit != nil {
		errs = append(errs, between(p.Child("costBenefit", "horizon"), e.CostBenefit.Horizon,
			config.Duration(time.Hour), config.Duration(30*24*time.Hour))...)
	}
	if e.MostWanted == nil {
		return errs
	}
	at, m := p.Child("mostWanted"), e.MostWanted
	errs = append(errs, between(at.Child("window"), m.Window, config.Duration(time.Second), maxTime)...)
	errs = append(errs, between(at.Child("minSamples"), m.MinSamples, 1, 100_000)...)
	if len(errs) == 0 && interval >= minInterval && int64(m.Window/interval) < int64(m.MinSamples) {
		errs = append(errs, field.Invalid(at.Child("minSamples"), m.MinSamples, fmt.Sprintf(
			"is never reached: a window of %v holds %d cycles of %v", m.Window, m.Window/interval, interval)))
	}
	return errs
}
