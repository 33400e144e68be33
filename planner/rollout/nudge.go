package rollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ballast/planner/plan"
)

// Nudge refreshes one Application of a moved cluster: the new owner of a cluster does nothing for it until one of its
// Applications is refreshed, which without a nudge may take as long as timeout.reconciliation. Cluster is the name of the
// Secret; by Server or Name an Application names its destination; Shard and Since (of the wave) say which move it is of.
type Nudge struct {
	Cluster string    `json:"cluster"`
	Server  string    `json:"server"`
	Name    string    `json:"name,omitempty"`
	Shard   int       `json:"shard"`
	Since   time.Time `json:"since"`
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

// nudges wakes the new owners of the clusters that the present wave moves, or takes back: those whose Secret carries its
// replica, or is given it by this agenda. A pod that is not ready hears nothing.
func (a *Agenda) nudges(v *plan.View, seen Seen) {
	r := v.Plan.Rollout
	if r == nil || len(r.Moves) == 0 || r.Stage != plan.Moving && r.Stage != plan.Reverting {
		return
	}
	given := map[string]bool{}
	for _, s := range a.Steps {
		if patch, ok := s.(PatchShard); ok {
			given[patch.Secret] = true
		}
	}
	for _, s := range sorted(seen.Secrets) {
		_, moves := r.Moves[s.Name]
		replica, _, known := v.Effective(s.Name)
		owned := seen.Owned[s.Name]
		if !moves || !known || !s.managed() || s.Skip || owned.Idle || !s.carries(replica) && !given[s.Name] {
			continue
		}
		if slices.Contains(owned.Live, replica) || len(seen.Pods) > 0 && seen.asleep(replica) != "" {
			continue
		}
		a.Steps = append(a.Steps, Nudge{Cluster: s.Name, Server: s.Server, Name: s.Cluster, Shard: replica, Since: r.Since})
	}
}
