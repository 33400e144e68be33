package discover

import "time"

// Input is what was seen in Argo CD's namespace; with Known it decides the fleet.
type Input struct {
	Namespace        string   `json:"namespace"`
	Secrets          []Secret `json:"secrets"`
	LeftOut          int      `json:"leftOut,omitempty"` // how many more there are than are planned
	InClusterEnabled bool     `json:"inClusterEnabled"`
	InClusterOwner   int      `json:"inClusterOwner"`            // the shard on which Argo CD keeps an implicit in-cluster
	AcceptDiscovery  *int     `json:"acceptDiscovery,omitempty"` // people's annotation accept-discovery
	Algorithm        string   `json:"algorithm,omitempty"`       // controller.sharding.algorithm of argocd-cmd-params-cm
}

// Options are the configuration's part.
type Options struct {
	MaxShrink float64                          // share of the known clusters that may be lost at once, 0 to 1
	Before    map[string]string                // the Secrets' servers in the last discovery; nil: not known
	Made      map[string]time.Time             // when those Secrets were made
	Had       func(secret, server string) bool // whether the Secret had that server before; nil: none is known to
}
