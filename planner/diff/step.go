package diff

import (
	"encoding/json"
	"fmt"
	"strings"

	"ballast/planner/plan"
)

// Step is one write that would bring what stands closer to the plan. The set is closed: PatchShard, PatchWorkload,
// PatchPod, Nudge.
type Step interface {
	fmt.Stringer
	json.Marshaler
	step()
}

// Why says what makes a step needed. The set is closed.
type Why string

// The causes of steps.
const (
	Unstamped Why = "Unstamped" // the Secret has no shard
	Broken    Why = "Broken"    // the Secret's shard is no number, or below 0
	Moved     Why = "Moved"     // the rollout under way moves the cluster
	Pinned    Why = "Pinned"    // a person's pin says otherwise
	Drifted   Why = "Drifted"   // somebody else changed it
	Rolling   Why = "Rolling"   // the rollout's stage says otherwise
	Stopped   Why = "Stopped"   // the workload was found at 0
	Sized     Why = "Sized"     // the plan says otherwise how large the replica is
)

// PatchShard writes a Secret's data.shard. Was is for display: the number that stands, "-" (none) or "invalid". Follows
// says that another Secret of its server leads: whoever pins one moves any number of them.
type PatchShard struct {
	Secret  string `json:"secret"`
	Shard   int    `json:"shard"`
	Was     string `json:"was"`
	Why     Why    `json:"why"`
	Follows bool   `json:"follows,omitempty"`
}

// PatchWorkload writes what is set: spec.replicas, the env ARGOCD_CONTROLLER_REPLICAS, the pod template's
// annotation that makes it restart, and what its container asks for, which restarts it, too.
type PatchWorkload struct {
	Replicas           *int   `json:"replicas,omitempty"`
	ControllerReplicas *int   `json:"controllerReplicas,omitempty"`
	RestartedAt        string `json:"restartedAt,omitempty"`
	Why                Why    `json:"why"`

	Resources plan.Resources `json:"resources,omitzero"`
}

func (PatchShard) step()    {}
func (PatchWorkload) step() {}

// String is the step in one line: `shard of prod-eu: 1 -> 3 (Drifted)`.
func (s PatchShard) String() string {
	return fmt.Sprintf("shard of %s: %s -> %d (%s)", s.Secret, s.Was, s.Shard, s.Why)
}

// String is the step in one line: `workload: replicas=4 ARGOCD_CONTROLLER_REPLICAS=4 (Rolling)`.
func (s PatchWorkload) String() string {
	var parts []string
	if s.Replicas != nil {
		parts = append(parts, fmt.Sprintf("replicas=%d", *s.Replicas))
	}
	if s.ControllerReplicas != nil {
		parts = append(parts, fmt.Sprintf("ARGOCD_CONTROLLER_REPLICAS=%d", *s.ControllerReplicas))
	}
	if s.RestartedAt != "" {
		parts = append(parts, "restartedAt="+s.RestartedAt)
	}
	parts = append(parts, pairs(s.Resources)...)
	return fmt.Sprintf("workload: %s (%s)", strings.Join(parts, " "), s.Why)
}

// MarshalJSON names the step in front of its fields.
func (s PatchShard) MarshalJSON() ([]byte, error) {
	type fields PatchShard
	return json.Marshal(struct {
		Step string `json:"step"`
		fields
	}{"PatchShard", fields(s)})
}

// MarshalJSON names the step in front of its fields.
func (s PatchWorkload) MarshalJSON() ([]byte, error) {
	type fields PatchWorkload
	return json.Marshal(struct {
		Step string `json:"step"`
		fields
	}{"PatchWorkload", fields(s)})
}

// HeldReason says why something that differs from the plan is not written. The set is closed.
type HeldReason string

// The reasons for holding back.
const (
	HeldImmutable    HeldReason = "Immutable"    // an immutable Secret cannot be written
	HeldUnmanaged    HeldReason = "Unmanaged"    // the object opted out
	HeldBeyondReach  HeldReason = "BeyondReach"  // too few replicas run for that shard: Argo CD would take it for shard 0
	HeldStillCarried HeldReason = "StillCarried" // a Secret carries a shard that the smaller workload would not have
	HeldUnseen       HeldReason = "Unseen"       // most of the plan's Secrets were not seen, so nothing is known of what they carry
	HeldNoWorkload   HeldReason = "NoWorkload"   // the workload was not found
	HeldMisfit       HeldReason = "Misfit"       // Kubernetes would refuse the pod's size
	HeldRestarts     HeldReason = "Restarts"     // the pod's own resizePolicy restarts its container for the size
	HeldNoResize     HeldReason = "NoResize"     // the API server cannot change the size of a running pod
	HeldKeepsLimit   HeldReason = "KeepsLimit"   // the API server lowers no memory limit of a running pod
	HeldUnsized      HeldReason = "Unsized"      // the replica that gets the cluster is to be larger first
)

// Held is a difference that Steps leaves alone for now. Secret and Pod are empty where the workload is held back; By
// then names the Secret in the way. Of a pod, and of what waits for one, Words say why.
type Held struct {
	Secret string     `json:"secret,omitempty"`
	Reason HeldReason `json:"reason"`
	Shard  int        `json:"shard,omitempty"`
	By     string     `json:"by,omitempty"`
	Pod    string     `json:"pod,omitempty"`
	Words  string     `json:"words,omitempty"`
}

// Message is the sentence for people.
func (h Held) Message() string {
	switch h.Reason {
	case HeldImmutable:
		return fmt.Sprintf("Secret %q is immutable, so it cannot be given shard %d", h.Secret, h.Shard)
	case HeldUnsized:
		return fmt.Sprintf("Secret %q waits for shard %d: %s", h.Secret, h.Shard, h.Words)
	case HeldKeepsLimit:
		return fmt.Sprintf("pod %q keeps its memory limit: %s", h.Pod, h.Words)
	case HeldMisfit, HeldRestarts, HeldNoResize:
		if h.Pod == "" {
			return "the pod template is left at its size: " + h.Words
		}
		return fmt.Sprintf("pod %q is left at its size: %s", h.Pod, h.Words)
	case HeldUnmanaged:
		if h.Pod != "" {
			return fmt.Sprintf("pod %q is annotated as unmanaged, so it is left at its size", h.Pod)
		}
		if h.Secret == "" {
			return "the workload is annotated as unmanaged, so it is left as it is"
		}
		return fmt.Sprintf("Secret %q is annotated as unmanaged, so it is not given shard %d", h.Secret, h.Shard)
	case HeldBeyondReach:
		return fmt.Sprintf("Secret %q waits for shard %d: too few replicas run yet, and Argo CD would take it for shard 0", h.Secret, h.Shard)
	case HeldStillCarried:
		return fmt.Sprintf("the workload is not made smaller while Secret %q carries shard %d", h.By, h.Shard)
	case HeldUnseen:
		return "the workload is not made smaller while most of the plan's Secrets are not seen"
	case HeldNoWorkload:
		return "the workload was not found, so nothing is written"
	}
	return string(h.Reason)
}

// Result is what differs from the plan: what to write, the workload first, then the pods by replica and the Secrets by
// name, and what is left alone, with the reason. A replica is to be large enough before it gets clusters.
type Result struct {
	Steps []Step `json:"steps,omitempty"`
	Held  []Held `json:"held,omitempty"`
}
