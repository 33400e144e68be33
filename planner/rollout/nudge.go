package rollout

import (
	"encoding/json"
	"fmt"
	"time"
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
