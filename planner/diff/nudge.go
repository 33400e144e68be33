package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// Nudge refreshes one Application of a moved cluster: the new owner of a cluster does nothing for it until one of its
// Applications is refreshed, which without a nudge may take as long as timeout.reconciliation. Cluster is the name of
// the Secret; by Server or Name an Application names its destination; Shard and Since say which move it is of: since
// the wave began, since a repair gave the cluster back, or since the pod started that is to wake; zero for the repair
// that the same steps make.
type Nudge struct {
	Cluster string    `json:"cluster"`
	Server  string    `json:"server"`
	Name    string    `json:"name,omitempty"`
	Shard   int       `json:"shard"`
	Since   time.Time `json:"since,omitzero"`
}

func (Nudge) step() {}

// String is the step in one line: `nudge of prod-eu on 3`.
func (s Nudge) String() string { return fmt.Sprintf("nudge of %s on %d", s.Cluster, s.Shard) }

// MarshalJSON names the step in front of its fields.
func (s Nudge) MarshalJSON() ([]byte, error) {
	type fields Nudge
	return json.Marshal(struct {
		Step string `json:"step"`
		fields
	}{"Nudge", fields(s)})
}

// nudges wakes the new owners of clusters: of those that the present wave moves, or takes back, and of those that a
// repair gave another owner. Their Secrets carry their replica, or are given it by these steps. A pod that is not ready
// hears nothing.
func (a *Result) nudges(v *plan.View, seen observed.State) {
	patched := map[string]Why{}
	for _, s := range a.Steps {
		if patch, ok := s.(PatchShard); ok {
			patched[patch.Secret] = patch.Why
		}
	}
	for _, s := range seen.Sorted() {
		replica, _, known := v.Effective(s.Name)
		why, given := patched[s.Name]
		if !known || !s.Managed() || s.Skip || seen.Owned[s.Name].Idle || !s.Carries(replica) && !given {
			continue
		}
		if len(seen.Pods) > 0 && seen.Asleep(replica) != "" {
			continue
		}
		if since, due := due(seen, v.Plan.Rollout, s.Name, replica, why); due {
			a.Steps = append(a.Steps, Nudge{Cluster: s.Name, Server: s.Server, Name: s.Cluster, Shard: replica,
				Since: since})
		}
	}
}

// due reports whether a cluster's new owner is to be woken, and since when it is the new one. Of a repair only a look
// that began later says that the owner has the cluster: what another writer took from it for a second it still showed
// then.
func due(s observed.State, r *plan.Rollout, name string, replica int, why Why) (since time.Time, due bool) {
	live := slices.Contains(s.Owned[name].Live, replica)
	if r != nil && (r.Stage == plan.Moving || r.Stage == plan.Reverting) {
		if _, moves := r.Moves[name]; moves {
			return r.Since, !live
		}
	}
	switch why {
	case Pinned, Drifted, Broken:
		return time.Time{}, true
	}
	repair, lately := s.Repaired[name]
	taken := live && s.Looked.After(repair.At)
	return repair.At, lately && repair.Shard == replica && !taken
}
