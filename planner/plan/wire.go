package plan

import "encoding/json"

// Wire is the document's JSON shape; the encoder writes the same keys in the same order by hand, because no YAML
// library keeps a row on one line, and rows are what people read and edit.
type Wire struct {
	APIVersion         string            `json:"apiVersion"`
	Kind               string            `json:"kind"`
	Revision           int64             `json:"revision"`
	Mode               Mode              `json:"mode"`
	Target             Target            `json:"target"`
	PlannerUser        string            `json:"plannerUser"`
	Selector           string            `json:"selector,omitempty"`
	Replicas           int               `json:"replicas"`
	FreeReplicas       bool              `json:"freeReplicas,omitempty"`
	Unmanaged          bool              `json:"unmanaged,omitempty"`
	ControllerReplicas int               `json:"controllerReplicas"`
	MaxReplicas        int               `json:"maxReplicas"`
	NextEnv            int               `json:"nextControllerReplicas,omitempty"`
	Resources          *Resources        `json:"resources,omitempty"`
	References         map[string]string `json:"references,omitempty"`
	Cordoned           []int             `json:"cordoned,omitempty"`
	MaxClusters        int               `json:"maxClusters,omitempty"`
	Full               []int             `json:"full,omitempty"`

	Sizes    map[string]Resources    `json:"sizes,omitempty"`
	Groups   map[string]ClusterGroup `json:"groups,omitempty"`
	Clusters map[string]Row          `json:"clusters"`
	Rollout  *Rollout                `json:"rollout,omitempty"`
}

// MarshalJSON writes the plan as its document's JSON.
func (p Plan) MarshalJSON() ([]byte, error) {
	return json.Marshal(Wire{APIVersion: APIVersion, Kind: Kind, Revision: p.Revision, Mode: p.Mode, Target: p.Target,
		PlannerUser: p.PlannerUser, Selector: p.Selector, Replicas: p.Replicas, FreeReplicas: p.FreeReplicas,
		Unmanaged:          p.Unmanaged,
		ControllerReplicas: p.ControllerReplicas, MaxReplicas: p.MaxReplicas, NextEnv: p.NextControllerReplicas,
		Resources:  p.Resources,
		References: p.References, Cordoned: p.Cordoned, MaxClusters: p.MaxClusters, Full: p.Full, Sizes: p.Sizes.wire(),
		Groups:   p.Groups,
		Clusters: p.Clusters, Rollout: p.Rollout})
}

// UnmarshalJSON reads the plan from its document's JSON.
func (p *Plan) UnmarshalJSON(data []byte) error {
	var w Wire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	read, err := w.Plan()
	*p = read
	return err
}

// Plan is the plan that was read; its sizes are judged here.
func (w Wire) Plan() (Plan, error) {
	sizes, err := sizesOf(w.Sizes)
	return Plan{Revision: w.Revision, Mode: w.Mode, Target: w.Target, PlannerUser: w.PlannerUser,
		Selector: w.Selector, FreeReplicas: w.FreeReplicas, Unmanaged: w.Unmanaged, Replicas: w.Replicas,
		ControllerReplicas: w.ControllerReplicas,
		MaxReplicas:        w.MaxReplicas, NextControllerReplicas: w.NextEnv, Resources: w.Resources,
		References: w.References,
		Cordoned:   w.Cordoned, MaxClusters: w.MaxClusters, Full: w.Full, Sizes: sizes, Groups: w.Groups,
		Clusters: w.Clusters, Rollout: w.Rollout}, err
}
