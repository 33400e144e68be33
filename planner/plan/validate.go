package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ReplicaLimit is the number no replica reaches: a shard has at most six digits.
const ReplicaLimit = 1_000_000

// ClusterLimit is more clusters than a plan has room for.
const ClusterLimit = 1_000_000

// MaxRevision bounds revisions: far more than will ever be written, and far from where counting on overflows. Anybody
// who may write the ConfigMap can forge a plan with its digest, and no number in it may use the revisions up.
const MaxRevision = 1 << 52

// RevisionAfter is the one that follows the newest: at the end of all revisions they stand still, and plans do not.
func RevisionAfter(newest int64) int64 { return min(newest, MaxRevision-1) + 1 }

// Bounds of what the webhook asks about each new cluster.
const (
	maxGroups = 64
	maxListed = 1000 // replicas of one list
)

// maxSelector bounds a selector that the webhooks parse.
const maxSelector = 4 << 10

// Validate reports every way in which the plan could not be enforced, in a fixed order.
func (p Plan) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if p.Revision < 1 {
		bad("revision: %d is below 1", p.Revision)
	}
	if p.Revision > MaxRevision {
		bad("revision: %d is above %d", p.Revision, int64(MaxRevision))
	}
	if p.Replicas < 0 || p.Replicas > ReplicaLimit {
		bad("replicas: %d is not between 0 and %d", p.Replicas, ReplicaLimit)
	}
	if p.ControllerReplicas < 0 || p.ControllerReplicas > ReplicaLimit {
		bad("controllerReplicas: %d is not between 0 and %d", p.ControllerReplicas, ReplicaLimit)
	}
	if n := p.NextControllerReplicas; n < 0 || n > ReplicaLimit {
		bad("nextControllerReplicas: %d is not between 0 and %d", n, ReplicaLimit)
	}
	if p.MaxReplicas < 1 || p.MaxReplicas > ReplicaLimit {
		bad("maxReplicas: %d is not between 1 and %d", p.MaxReplicas, ReplicaLimit)
	}
	if p.Target.Kind != StatefulSet && p.Target.Kind != Deployment {
		bad("target.kind: %q is neither %s nor %s", p.Target.Kind, StatefulSet, Deployment)
	}
	if p.Target.Namespace == "" || p.Target.Name == "" {
		bad("target: namespace and name are needed")
	}
	if n := len(p.Selector); n > maxSelector {
		bad("selector: it has %d bytes, and at most %d are read", n, maxSelector)
	}
	p.validateSizes(bad)
	p.validateGroups(bad)
	if p.Rollout != nil {
		p.Rollout.validate(bad)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Clusters)) {
		if r := p.Clusters[name].Replica; r < 0 || r >= ReplicaLimit {
			bad("clusters[%s].replica: %d is not between 0 and %d", name, r, ReplicaLimit-1)
		}
	}
	return errors.Join(errs...)
}

// validateSizes refuses what no container can be held at in place. Anybody who may write the ConfigMap can forge a plan
// with its digest, so that every number has a bound.
func (p Plan) validateSizes(bad func(format string, args ...any)) {
	s := p.Sizes
	switch {
	case s == nil:
		return
	case p.Resources != nil:
		bad("sizes: the plan has resources, too: a container is held in its pods or in the template")
	case s.Default.Empty() && len(s.Replicas) == 0:
		bad("sizes: they hold nothing")
	case p.Target.Kind == Deployment && len(s.Replicas) > 0:
		bad("sizes: the pods of a Deployment have no ordinal: only %q holds", DefaultSize)
	case len(s.Replicas) > maxListed:
		bad("sizes: there are %d, and at most %d are read", len(s.Replicas), maxListed)
		return
	}
	s.Default.validateSize("sizes["+DefaultSize+"]", bad)
	for _, ordinal := range slices.Sorted(maps.Keys(s.Replicas)) {
		of, size := fmt.Sprintf("sizes[%d]", ordinal), s.Replicas[ordinal]
		if ordinal < 0 || ordinal >= p.MaxReplicas {
			bad("%s: the replica is not between 0 and %d", of, p.MaxReplicas-1)
		}
		if size.Empty() {
			bad("%s: it holds nothing", of)
		}
		size.validateSize(of, bad)
	}
}

// validateGroups bounds what decides where a new cluster goes.
func (p Plan) validateGroups(bad func(format string, args ...any)) {
	replicas := func(of string, list []int) {
		if len(list) > maxListed {
			bad("%s: it has %d replicas, and at most %d are read", of, len(list), maxListed)
			return
		}
		for _, n := range list {
			if n < 0 || n >= ReplicaLimit {
				bad("%s: %d is not between 0 and %d", of, n, ReplicaLimit-1)
			}
		}
	}
	replicas("cordoned", p.Cordoned)
	if n := p.MaxClusters; n < 0 || n > ClusterLimit {
		bad("maxClusters: %d is not between 0 and %d", n, ClusterLimit)
	}
	replicas("full", p.Full)
	if len(p.Groups) > maxGroups {
		bad("groups: there are %d, and at most %d are read", len(p.Groups), maxGroups)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.Groups)) {
		g := p.Groups[name]
		if (g.Apart == "") == (g.Together == "") {
			bad("groups[%s]: it has not one of apart and together", name)
		}
		if n := len(g.Selector()); n > maxSelector {
			bad("groups[%s]: its selector has %d bytes, and at most %d are read", name, n, maxSelector)
		}
		replicas(fmt.Sprintf("groups[%s].at", name), g.At)
	}
}

// validate bounds the numbers of a rollout, which whoever reads the plan makes room for.
func (r Rollout) validate(bad func(format string, args ...any)) {
	for _, n := range []struct {
		field string
		value int
	}{
		{"replicas", r.Replicas}, {"controllerReplicas", r.ControllerReplicas},
		{"from.replicas", r.From.Replicas}, {"from.controllerReplicas", r.From.ControllerReplicas},
	} {
		if n.value < 0 || n.value > ReplicaLimit {
			bad("rollout.%s: %d is not between 0 and %d", n.field, n.value, ReplicaLimit)
		}
	}
	for _, of := range []struct {
		field    string
		replicas map[string]int
	}{{"moves", r.Moves}, {"was", r.Was}} {
		for _, name := range slices.Sorted(maps.Keys(of.replicas)) {
			if n := of.replicas[name]; n < 0 || n >= ReplicaLimit {
				bad("rollout.%s[%s]: %d is not between 0 and %d", of.field, name, n, ReplicaLimit-1)
			}
		}
	}
}

// Clone copies the plan deeply, so that a phase may change its copy.
func (p Plan) Clone() Plan {
	p.Clusters = maps.Clone(p.Clusters)
	p.References = maps.Clone(p.References)
	p.Cordoned = slices.Clone(p.Cordoned)
	p.Full = slices.Clone(p.Full)
	p.Groups = maps.Clone(p.Groups)
	for name, g := range p.Groups {
		g.At = slices.Clone(g.At)
		p.Groups[name] = g
	}
	if p.Resources != nil {
		r := p.Resources.clone()
		p.Resources = &r
	}
	p.Sizes = p.Sizes.clone()
	if p.Rollout != nil {
		r := *p.Rollout
		r.Moves, r.Was = maps.Clone(r.Moves), maps.Clone(r.Was)
		p.Rollout = &r
	}
	return p
}

// HoldsEnv reports whether the plan says anything of the env: 0 stands for the absent env of a fleet as found.
func (p Plan) HoldsEnv() bool { return p.Target.Kind != Deployment && p.ControllerReplicas > 0 }

// Awaits reports whether an env is the one that the plan waits for: it came with a change of the pod template, and
// stays.
func (p Plan) Awaits(env int) bool { return env > 0 && env == p.NextControllerReplicas }

// SameEnforced reports whether two plans enforce the same: everything but the revision and the loads, which are those
// of the decision and change with it only. A plan that is the same is not written again.
func (p Plan) SameEnforced(o Plan) bool {
	if p.Mode != o.Mode || !p.sameTarget(o) || !p.sameCounts(o) {
		return false
	}
	if !maps.Equal(p.References, o.References) {
		return false
	}
	if p.MaxClusters != o.MaxClusters || !slices.Equal(p.Full, o.Full) {
		return false
	}
	if !slices.Equal(p.Cordoned, o.Cordoned) || !maps.EqualFunc(p.Groups, o.Groups, ClusterGroup.same) {
		return false
	}
	if !p.Sizes.Same(o.Sizes) {
		return false
	}
	return sameResources(p.Resources, o.Resources) && sameRollout(p.Rollout, o.Rollout) &&
		maps.EqualFunc(p.Clusters, o.Clusters, func(a, b Row) bool {
			return a.Replica == b.Replica && a.Pinned == b.Pinned && a.Server == b.Server
		})
}

// sameTarget reports whether both plans are of the same workload, are written by the same user and apply to the same
// pods.
func (p Plan) sameTarget(o Plan) bool {
	by := p.PlannerUser == o.PlannerUser && p.Selector == o.Selector
	return p.Target == o.Target && by && p.Unmanaged == o.Unmanaged
}

// sameCounts reports whether both plans have the same numbers of replicas, and whose they are.
func (p Plan) sameCounts(o Plan) bool {
	replicas := p.Replicas == o.Replicas && p.FreeReplicas == o.FreeReplicas && p.MaxReplicas == o.MaxReplicas
	env := p.ControllerReplicas == o.ControllerReplicas && p.NextControllerReplicas == o.NextControllerReplicas
	return replicas && env
}

func (g ClusterGroup) same(o ClusterGroup) bool {
	return g.Apart == o.Apart && g.Together == o.Together && slices.Equal(g.At, o.At)
}

func sameResources(a, b *Resources) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Same(*b)
}

func sameRollout(a, b *Rollout) bool {
	if a == nil || b == nil {
		return a == b
	}
	if !a.sameStage(*b) || !a.sameGoal(*b) {
		return false
	}
	return maps.Equal(a.Moves, b.Moves) && maps.Equal(a.Was, b.Was)
}

// sameStage reports whether both rollouts are as far, since the same time.
func (r Rollout) sameStage(o Rollout) bool {
	stage := r.Mode == o.Mode && r.Stage == o.Stage && r.Since.Equal(o.Since)
	return stage && r.Wave == o.Wave && r.Waves == o.Waves
}

// sameGoal reports whether both rollouts go from the same replicas to the same.
func (r Rollout) sameGoal(o Rollout) bool {
	return r.From == o.From && r.Replicas == o.Replicas && r.ControllerReplicas == o.ControllerReplicas
}
