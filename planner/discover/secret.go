package discover

import (
	"strconv"
	"time"

	"ballast/planner/discover/labeltext"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// AnnotationSkipReconcile has Argo CD leave a cluster alone.
const AnnotationSkipReconcile = "argocd.argoproj.io/skip-reconcile"

// What no cluster's name or URL is longer than: a host's name has 253 letters at most. Who may create Secrets makes
// each as large as etcd takes it, and the planner keeps all of them.
const (
	LongestCluster = 512
	LongestServer  = 512
)

// MostSecrets is how many cluster Secrets are planned: a plan has room for some 17,000 of the shortest names, and each
// takes the planner some kilobytes for as long as a cycle lasts.
const MostSecrets = 20_000

// Secret is what ballast keeps of a cluster Secret: enough to plan with, and nothing that a log, a replay file or a
// core dump may not show. It is part of a cycle's replayable input.
type Secret struct {
	UID           string           `json:"uid,omitempty"`
	Name          string           `json:"name"`
	Namespace     string           `json:"namespace,omitempty"`
	Cluster       string           `json:"cluster,omitempty"` // data.name
	Server        string           `json:"server,omitempty"`  // data.server
	Shard         ShardValue       `json:"shard,omitzero"`
	Pin           string           `json:"pin,omitempty"` // the annotation's digits, or invalidPin
	SkipReconcile bool             `json:"skipReconcile,omitempty"`
	Unmanaged     bool             `json:"unmanaged,omitempty"`
	Immutable     bool             `json:"immutable,omitempty"`
	HasData       bool             `json:"hasData,omitempty"`
	Deleting      bool             `json:"deleting,omitempty"`
	Unread        bool             `json:"unread,omitempty"`   // Argo CD cannot read data.config
	TooLong       bool             `json:"tooLong,omitempty"`  // data.name or data.server is longer than any is
	NoText        bool             `json:"noText,omitempty"`   // some text of it is no UTF-8, so that what goes by JSON changes it
	Beside        bool             `json:"beside,omitempty"`   // one of more than are planned has the same server
	Namesake      bool             `json:"namesake,omitempty"` // and the same data.name
	Created       time.Time        `json:"created,omitzero"`
	Labels        labeltext.Labels `json:"labels,omitempty"`
}

// WithLabels gives the Secrets that a cache did not pack the labels that are asked for; a packed one has them.
func (s Secret) WithLabels(all map[string]string, keys []string) Secret {
	s.Labels = labeltext.Of(all, keys)
	return s
}

// ShardState says what Argo CD makes of data.shard.
type ShardState string

// The states of data.shard.
const (
	ShardAbsent   ShardState = ""         // no such key: the algorithm decides
	ShardValid    ShardState = "valid"    // a number from 0 to 999999
	ShardInvalid  ShardState = "invalid"  // not a number to Argo CD: the algorithm decides
	ShardNegative ShardState = "negative" // a number to Argo CD, and no replica owns the cluster
	ShardTooLarge ShardState = "tooLarge" // a number to Argo CD above any count of replicas: shard 0 owns the cluster
)

// ShardValue is data.shard as Argo CD reads it. The raw bytes are never kept: people paste tokens into the wrong field.
type ShardValue struct {
	State ShardState `json:"state,omitempty"`
	N     int        `json:"n,omitempty"` // set only where State is ShardValid
}

// Decides reports whether Argo CD goes by it, and not by its algorithm.
func (v ShardValue) Decides() bool { return v.State != ShardAbsent && v.State != ShardInvalid }

// maxShard has six digits, the width that every output of ballast prints.
const maxShard = 999_999

// ParseShard reads data.shard with strconv.Atoi, as Argo CD does: " 1", "0x1", "1.0" and "" are no numbers, "+1" is 1.
func ParseShard(raw []byte) ShardValue {
	if raw == nil {
		return ShardValue{}
	}
	n, err := strconv.Atoi(string(raw))
	switch {
	case err != nil:
		return ShardValue{State: ShardInvalid}
	case n < 0:
		return ShardValue{State: ShardNegative}
	case n > maxShard:
		return ShardValue{State: ShardTooLarge}
	}
	return ShardValue{State: ShardValid, N: n}
}

// invalidPin stands for a pin annotation that is not a replica's number, whatever it held.
const invalidPin = "invalid"

// ParsePin keeps what the webhook holds the Secret to, and nothing else.
func ParsePin(annotation string, found bool) string {
	if !found {
		return ""
	}
	if n, ok := plan.ParsePin(annotation); !ok || people.BadPin(n, 0) != "" {
		return invalidPin
	}
	return annotation
}

// NormalizeServer is plan's, for those who speak of a fleet and of no plan.
func NormalizeServer(server string) string { return plan.NormalizeServer(server) }
