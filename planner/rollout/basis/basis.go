// Package basis is what a stage of a rollout stands on: the plan, what is seen, the configuration, and plain questions
// of these.
package basis

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// Options are what a rollout heeds beside the plan and what is seen: `rollout` of the PlannerConfig, and what the cycle
// knows.
type Options struct {
	// Mode is one of plan's, "" = plan.ModeDefault: of rollouts that begin. One that is under way keeps its own.
	Mode         string        `json:"mode,omitempty"`
	StageTimeout time.Duration `json:"stageTimeout"`
	// MaxClusters is how many clusters a replica may have, 0 = no cap: what has to leave a replica heeds it.
	MaxClusters int `json:"maxClusters,omitempty"`
	// Closed are the replicas that may receive nothing, Unwell those for which nobody works.
	Closed map[int]bool `json:"closed,omitempty"`
	Unwell map[int]bool `json:"unwell,omitempty"`

	// Of mode default.
	RolloutRestart bool `json:"rolloutRestart,omitempty"`
	// Partial: the Secrets that are seen are not believed to be all, so that no replica goes.
	Partial bool `json:"partial,omitempty"`
	// Of mode x0y.
	DrainTimeout time.Duration `json:"drainTimeout,omitempty"`
	// TurnsBack says why it is to go back to where it came from.
	TurnsBack string `json:"turnsBack,omitempty"`

	// Of the modes default and live.

	// Rescue: clusters leave replicas that are unwell or cordoned. Those whose Secrets are there do, whatever number of
	// others is gone; no replica goes for it.
	Rescue bool `json:"rescue,omitempty"`

	// Of mode live.

	// Insists says that a person asked for it.
	Insists bool `json:"insists,omitempty"`
	// MaxMovesPerWave is how many servers one wave may move, and Budget how many may be moved now at all (math.MaxInt =
	// no limit).
	MaxMovesPerWave int `json:"maxMovesPerWave,omitempty"`
	Budget          int `json:"budget,omitempty"`
	// AwaitSize are the replicas that are to be larger before they receive, and why. What nobody works for does not wait.
	AwaitSize map[int]string `json:"small,omitempty"`
	// Memory is what the clusters of a replica may take together, 0 = not known, and Bytes what each takes.
	Memory plan.Bytes            `json:"memory,omitempty"`
	Bytes  map[string]plan.Bytes `json:"bytes,omitempty"`
	// KeepEnv: the env that the mode would set waits for somebody's change of the pod template, and one that is enough
	// for the replicas stays.
	KeepEnv bool `json:"keepEnv,omitempty"`
	// EndsBecause says why a rollout is to end where it may: between two waves, or before replicas go. Empty: it goes on.
	EndsBecause string `json:"ends,omitempty"`
	// NoMoreWaves says why no further wave is to begin. What has left a replica by then lets that replica go all the same.
	NoMoreWaves string `json:"shut,omitempty"`
}

// Basis is what a stage stands on: what Advance was given, and the plan as it is by now.
type Basis struct {
	View     *plan.View
	Plan     plan.Plan
	Seen     observed.State
	Target   map[string]int
	Options  Options
	At       time.Time
	beside   *placement.Servers // what stays together; made when it is asked for
	disputes map[string]bool    // by Secret; made when it is asked for
}

// Together is what a cluster has in common with those that it stays together with, by the Secrets that are seen.
func (g *Basis) Together(name string) string {
	return g.Groups().Of(name, g.Hash(name))
}

// Servers is how many servers the plan's clusters have.
func (g *Basis) Servers() int { return g.Groups().Count(maps.Keys(g.Plan.Clusters), g.Hash) }

// Hash is the row's hash of its server.
func (g *Basis) Hash(name string) string { return g.Plan.Clusters[name].Server }

// Groups are the servers of the Secrets that are seen; it is worked out once.
func (g *Basis) Groups() *placement.Servers {
	if g.beside == nil {
		g.beside = placement.NewServers(len(g.Seen.Secrets))
		for _, s := range g.Seen.Secrets {
			switch {
			case s.Alone:
				g.beside.Add(s.Name, "")
			case s.Server != "":
				g.beside.Add(s.Name, s.Server)
				if s.Bound != "" {
					g.beside.Bind(s.Server, s.Bound)
				}
			}
		}
	}
	return g.beside
}

// Held is the plan, with as many replicas as people have where those are more than it may ever have: nothing waits for
// them to go.
func (g *Basis) Held() plan.Plan {
	p := g.Plan
	beyond := p.FreeReplicas && p.Rollout.Mode != plan.ModeX0Y && g.Seen.Workload.Count().Replicas > p.MaxReplicas
	if beyond && p.Replicas == p.MaxReplicas {
		p.Replicas = g.Seen.Workload.Replicas
	}
	return p
}

// Kept says what keeps a workload from being made smaller.
func (g *Basis) Kept() string {
	w := g.Seen.Workload
	if g.Plan.FreeReplicas || w == nil || w.Replicas <= g.Plan.Replicas {
		return ""
	}
	next := plan.Count{Replicas: g.Plan.Replicas, ControllerReplicas: g.Plan.ControllerReplicas}.Reach(g.Plan.Target.Kind)
	now := w.Count().Reach(g.Plan.Target.Kind)
	stray := Strays(g.Seen, next, now)
	switch unseen := next < now && g.Seen.Blind(g.Plan); {
	case w.Unmanaged:
		return fmt.Sprintf("the workload is annotated as unmanaged, and stays at %d replicas", w.Replicas)
	case unseen || len(stray) > 0:
		return fmt.Sprintf("the workload is not made smaller while %s", WaitsFor(nil, stray, unseen))
	}
	return fmt.Sprintf("the workload still asks for %d replicas", w.Replicas)
}

// Unseen reports whether too few of the plan's Secrets are seen to go by them. A rescue goes by those that are there.
func (g *Basis) Unseen() bool { return !g.Options.Rescue && g.Seen.Blind(g.Plan) }

// Blind says why nothing can be said of the fleet as a whole.
func (g *Basis) Blind() string {
	switch {
	case g.Unseen():
		return "most of the plan's Secrets are not seen"
	case !g.Seen.OwnersKnown:
		return observed.OwnersUnknown
	}
	return ""
}

// Unserved reports whether nobody works for a replica's clusters, as far as is known: then they are to leave it, and
// nothing goes back to it.
func (g *Basis) Unserved(replica int) bool {
	return g.Options.Unwell[replica] || len(g.Seen.Pods) > 0 && g.Seen.Asleep(replica) != ""
}

// PinnedTo reports whether people pinned a cluster to that replica.
func (g *Basis) PinnedTo(name string, replica int) bool {
	pin, pinned := g.View.Pin(name)
	return pinned && pin == replica
}

// Works reports whether a replica has any cluster connected.
func (g *Basis) Works(replica int) bool {
	for _, owned := range g.Seen.Owned {
		if slices.Contains(owned.Live, replica) {
			return true
		}
	}
	return false
}

// Disputed reports whether people's own Secret of a cluster's server decides who has it.
func (g *Basis) Disputed(name string) bool {
	if g.disputes == nil {
		g.disputes = map[string]bool{}
		for _, s := range g.Seen.Secrets {
			g.disputes[s.Name] = s.Disputed
		}
	}
	return g.disputes[name]
}

// Unassigned are the managed Secrets that do not carry their replica yet, by name.
func Unassigned(v *plan.View, seen observed.State) []string {
	var names []string
	for _, s := range seen.Secrets {
		if replica, _, ok := v.Effective(s.Name); ok && s.Managed() && !s.Carries(replica) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Strays are the Secrets that carry a shard between two reaches, by name.
func Strays(seen observed.State, low, high int) []string {
	var names []string
	for _, s := range seen.Secrets {
		if s.Valid && s.Shard >= low && s.Shard < high {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// ServerHash is what a row carries of the server; a broken Secret has none.
func ServerHash(s observed.Secret) string {
	if s.Server == "" {
		return ""
	}
	return plan.ServerHash(s.Server)
}

// WaitsFor says what Secrets are waited for.
func WaitsFor(behind, stray []string, unseen bool) string {
	switch {
	case unseen:
		return "most of the plan's Secrets are not seen"
	case len(behind) > 0:
		return fmt.Sprintf("%d Secrets do not carry their replica yet, the first is %q", len(behind), behind[0])
	case len(stray) > 0:
		return fmt.Sprintf("%d Secrets carry a replica that is to go, the first is %q", len(stray), stray[0])
	}
	return "the plan changed meanwhile"
}

// Present is below which shard a replica is there that may have what carries it: one that people took away is gone,
// whoever carries it.
func Present(p plan.Plan, seen observed.State, limit, from int) int {
	if !p.FreeReplicas {
		return from
	}
	return min(from, max(limit, seen.Workload.Count().Replicas))
}
