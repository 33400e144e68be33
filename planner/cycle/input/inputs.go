// Package input is all that a cycle depends on: values, which marshal to JSON and replay.
package input

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"ballast/planner/change/harm"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/people"
	"ballast/planner/plan/probing"
	"ballast/planner/poll"
	"ballast/planner/size/inputs"
)

// Inputs is all that a cycle depends on. It marshals to JSON, so that a cycle seen in production runs again in a test;
// of the Secrets it has names, servers and shards, and no credentials.
type Inputs struct {
	Now         time.Time            `json:"now"`
	Config      config.PlannerConfig `json:"config"`
	PlannerUser string               `json:"plannerUser"`
	InForce     *plan.Plan           `json:"inForce,omitempty"`     // nil: there is none, or it cannot be read
	Last        *plan.Plan           `json:"last,omitempty"`        // the newest plan of the history, to mend a lost one from
	PlanFault   string               `json:"planFault,omitempty"`   // why the plan that stands is not in force: a Problem's kind
	Pins        plan.Pins            `json:"pins,omitempty"`        // data.pins
	PinProblems []people.PinProblem  `json:"pinProblems,omitempty"` // of data.pins
	Paused      bool                 `json:"paused,omitempty"`
	Keyless     string               `json:"keyless,omitempty"` // why the plan's key cannot be read: a leader after this one would believe no plan
	BreakGlass  bool                 `json:"breakGlass,omitempty"`
	Discovered  discover.Input       `json:"discovered"`
	Workload    discover.Workload    `json:"workload"`
	Fetched     []poll.Fetched       `json:"fetched"`
	Owners      poll.Fetched         `json:"owners"`                // who reconciles which server now, by metrics: keys pod|server
	Enforcement *bool                `json:"enforcement,omitempty"` // whether the webhooks hold the plan; nil: unknown
	Unheld      []string             `json:"unheld,omitempty"`      // which webhook does not, and how that shows
	PutBack     *probing.PutBack     `json:"putBack,omitempty"`     // whose writes the webhooks put back; nil: none said it
	Observed    Observed             `json:"observed,omitzero"`
	Cordon      string               `json:"cordon,omitempty"`   // replicas that people want empty, as the annotation has it
	Rollback    *Rollback            `json:"rollback,omitempty"` // a person asks for an earlier plan
	Rebase      configmap.Rebase     `json:"rebase,omitempty"`   // what a person wants of the references
	Tripped     string               `json:"tripped,omitempty"`  // why ballast stopped itself; a person takes it away
	Conflicts   []Finding            `json:"neighbours,omitempty"`

	Installation []Finding `json:"installation,omitempty"` // where the cluster is not what ballast was made for
	// Clusters that repairs brought back from another owner since the last cycle.
	Repaired     []string            `json:"healed,omitempty"`
	Barred       map[string]string   `json:"barred,omitempty"`      // Secrets that the API server lets nobody of ballast write, by its words
	Surroundings inputs.Surroundings `json:"surroundings,omitzero"` // what size rules read beside loads
	Resizes      *bool               `json:"resizes,omitempty"`     // whether the API server has pods/resize; nil: unknown
	Unsized      map[string]string   `json:"unsized,omitempty"`     // pods whose size the API server lets ballast not change, by its words
	Roomless     map[string]bool     `json:"roomless,omitempty"`    // those of them whose node has less to give any pod
	KeepsLimits  bool                `json:"keepsLimits,omitempty"` // the API server lowers no memory limit of a running pod
	Memory       memory.Memory       `json:"memory"`
}

// Finding is what a look at something beside the plan found: at what else has a say over the workload (package
// conflicts), or at the installation (package installation). It is told as a Problem of that kind and subject. It is a
// type of its own, since those packages are an API server's clients.
type Finding struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Message string `json:"message"`
}

// Observed is what the application-controllers' pods are and say. Known is false where they could not be listed.
type Observed struct {
	Known    bool                  `json:"known,omitempty"`
	Dynamic  bool                  `json:"dynamic,omitempty"` // replicas are claimed slots, not ordinals
	Pods     []observed.Pod        `json:"pods,omitempty"`
	Slots    []observed.Slot       `json:"slots,omitempty"` // of a Deployment's dynamic distribution
	Reported ownership.Observation `json:"reported,omitzero"`
	Work     map[int]ServerWork    `json:"work,omitempty"` // reconciliations so far, by replica
	Trouble  []string              `json:"trouble,omitempty"`
	Unlisted []string              `json:"unlisted,omitempty"` // what keeps Applications from being found, while others are
}

// ServerWork is what a replica did for each cluster, by server URL.
type ServerWork map[string]harm.Work

// Rollback is a person's wish for an earlier plan. Plan is nil where the history has none of that revision; Problem
// says so.
type Rollback struct {
	Revision int64      `json:"revision"`
	Plan     *plan.Plan `json:"plan,omitempty"`
	Problem  string     `json:"problem,omitempty"`
}

// Refused says why a plan cannot be gone back to; empty where it can. Another container is no other workload, and where
// the replicas are people's those of then count for nothing.
func (r *Rollback) Refused(now plan.Plan) string {
	switch {
	case r.Plan == nil:
		return r.Problem
	case r.Plan.Rollout != nil:
		return fmt.Sprintf("revision %d was written in the middle of a rollout, and says nothing of where that went; `ballast rollback` lists those at rest", r.Revision)
	case !r.Plan.Target.SameWorkload(now.Target):
		return fmt.Sprintf("revision %d is for another workload, %s %q", r.Revision, r.Plan.Target.Kind,
			r.Plan.Target.Name)
	case now.FreeReplicas:
	case r.Plan.Replicas < 1 || r.Plan.Replicas > now.MaxReplicas:
		return fmt.Sprintf("revision %d has %d replicas, and partition.maxReplicas is %d: raise it first", r.Revision,
			r.Plan.Replicas, now.MaxReplicas)
	}
	return ""
}

// KnownFleet is what was known of the fleet. A leader who has no memory takes the plan's rows for it whose Secrets are
// there for an hour: who makes thousands of Secrets with long names, so that the history has no room, must not have
// them all known at once. Of the rows without one nobody can say whether they were the fleet's.
func (in Inputs) KnownFleet() discover.Known {
	k, base := in.Memory.Known, cmp.Or(in.InForce, in.Last)
	if len(k.Clusters) > 0 || base == nil {
		return k
	}
	there := make(map[string]bool, len(in.Discovered.Secrets))
	for _, s := range in.Discovered.Secrets {
		_, row := base.Clusters[s.Name]
		there[s.Name] = true
		fresh := in.Now.Sub(s.Created) < discover.KnownAfter && !s.Created.IsZero()
		if row && !fresh && !s.Unmanaged {
			k.Clusters = append(k.Clusters, s.Name)
		}
	}
	slices.Sort(k.Clusters)
	if len(k.Unsure) > 0 {
		return k
	}
	for _, name := range slices.Sorted(maps.Keys(base.Clusters)) {
		if !there[name] {
			k.Unsure, k.UnsureSince = append(k.Unsure, name), in.Now
		}
	}
	return k
}

// Had reports whether a Secret had that server when it was seen last, or by its row.
func (in Inputs) Had(secret, server string) bool {
	if last, seen := in.Memory.Servers[secret]; seen {
		return last == server
	}
	base := cmp.Or(in.InForce, in.Last)
	if base == nil {
		return false
	}
	row, planned := base.Clusters[secret]
	return planned && row.Server == plan.ServerHash(server)
}

// Names are those of the clusters that the plan or a Secret has.
func (in Inputs) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range in.Discovered.Secrets {
			if !yield(s.Name) {
				return
			}
		}
		if p := cmp.Or(in.InForce, in.Last); p != nil {
			maps.Keys(p.Clusters)(yield)
		}
	}
}
