package podlist

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ballast/planner/observed"
	"ballast/planner/patchable"
)

// Controllers are the application-controller's pods and, where Argo CD distributes clusters dynamically, what they
// claim. Pods are sorted by replica and name.
type Controllers struct {
	Pods     []observed.Controller `json:"pods"`
	Dynamic  bool                  `json:"dynamic,omitempty"` // replicas are claimed slots, not ordinals
	Claims   []Claim               `json:"claims,omitempty"`
	Patience Patience              `json:"patience,omitzero"`
	Problems []string              `json:"problems,omitempty"` // sentences about what could not be read, or is set badly
}

// Patience says how often a controller shows that it lives, and how long it may be silent. Argo CD writes the heartbeat
// when the kubelet probes the pod, but gives a slot away by its own setting alone.
type Patience struct {
	Heartbeat time.Duration `json:"heartbeat"` // ARGOCD_CONTROLLER_HEARTBEAT_TIME
	Probe     time.Duration `json:"probe"`     // the probe's period
}

// longestProbe is the slowest probe that is waited for: who may write the template must not have a controller that
// hangs taken for one that works by it, for days. Argo CD gives its slot away by the heartbeat anyhow.
const longestProbe = 5 * time.Minute

// Silence is how long a healthy controller may be silent: three beats, by whichever of the two is slower.
func (p Patience) Silence() time.Duration {
	return missedBeats * max(p.Heartbeat, min(p.Probe, longestProbe))
}

// problem warns of a slot that can be taken from a healthy controller.
func (p Patience) problem() (string, bool) {
	if p.Probe < missedBeats*p.Heartbeat {
		return "", false
	}
	return fmt.Sprintf("the readiness probe of the application-controller runs every %s, but Argo CD gives a slot away after %s without a heartbeat, which only the probe writes: set periodSeconds to %d or less",
		p.Probe, missedBeats*p.Heartbeat, int(p.Heartbeat/time.Second)), true
}

// Slots are the slots below wanted and every other one that is listed, by number. A slot that is listed twice shows
// twice.
func (c Controllers) Slots(wanted int, now time.Time) []observed.Slot {
	here := map[string]bool{}
	for _, p := range c.Pods {
		here[p.Name] = true
	}
	var slots []observed.Slot
	listed := map[int]bool{}
	for _, claim := range c.Claims {
		listed[claim.Shard] = true
		slots = append(slots, c.slot(claim, here, now))
	}
	for shard := range wanted {
		if !listed[shard] {
			slots = append(slots, observed.Slot{Shard: shard, State: observed.SlotFree})
		}
	}
	slices.SortStableFunc(slots, func(a, b observed.Slot) int { return cmp.Compare(a.Shard, b.Shard) })
	return slots
}

func (c Controllers) slot(claim Claim, here map[string]bool, now time.Time) observed.Slot {
	s := observed.Slot{Shard: claim.Shard, State: observed.SlotHeld, Controller: claim.Controller}
	if !claim.Heartbeat.IsZero() {
		s.Silence = max(now.Sub(claim.Heartbeat), 0)
	}
	switch {
	case claim.Controller == "":
		s.State = observed.SlotFree
	case !here[claim.Controller]:
		s.State = observed.SlotGone
	case !claim.fresh(c.Patience, now):
		s.State = observed.SlotSilent
	}
	return s
}

// fresh reports whether the heartbeat is young enough. One from the future, beyond what clocks differ, is not believed.
func (c Claim) fresh(p Patience, now time.Time) bool {
	return !c.Heartbeat.IsZero() && now.Sub(c.Heartbeat).Abs() < p.Silence()
}

// Healthy counts the slots that are held.
func Healthy(slots []observed.Slot) int {
	n := 0
	for _, s := range slots {
		if s.State == observed.SlotHeld {
			n++
		}
	}
	return n
}

// What Argo CD keeps of its dynamic cluster distribution, and the env that tunes it.
const (
	ClaimsConfigMap = "argocd-app-controller-shard-cm"
	ClaimsKey       = "shardControllerMapping"
	EnvHeartbeat    = "ARGOCD_CONTROLLER_HEARTBEAT_TIME"
)

const (
	defaultHeartbeat = 10 * time.Second
	maxHeartbeat     = 60 * time.Second
	missedBeats      = 3 // Argo CD's own factor: a slot that was silent for longer is anyone's
	maxClaims        = 10_000
	maxClaimNotes    = 5
)

// Claim is a slot of Argo CD's mapping. An empty Controller is a slot that nobody took; a zero Heartbeat was never
// written.
type Claim struct {
	Shard      int       `json:"shard"`
	Controller string    `json:"controller,omitempty"`
	Heartbeat  time.Time `json:"heartbeat,omitzero"`
}

// ParseClaims reads the mapping. Entries that cannot be read are left out and named by the error, beside the others, as
// is a shard that is listed twice; a text that is no list is an error alone. No text is a mapping that was not written
// yet.
func ParseClaims(text string) ([]Claim, error) {
	if text == "" {
		return nil, nil
	}
	var entries []json.RawMessage
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, fmt.Errorf("reading %s: %w", ClaimsKey, err)
	}
	if len(entries) > maxClaims {
		return nil, fmt.Errorf("reading %s: it has %d entries, which is no number of replicas", ClaimsKey, len(entries))
	}
	var claims []Claim
	var notes []error
	seen := map[int]bool{}
	for i, entry := range entries {
		claim, err := parseClaim(entry)
		if err == nil {
			claims = append(claims, claim)
			if seen[claim.Shard] { // two controllers may believe in it, so both stay
				err = fmt.Errorf("shard %d is listed twice", claim.Shard)
			}
			seen[claim.Shard] = true
		}
		if err != nil && len(notes) < maxClaimNotes {
			notes = append(notes, fmt.Errorf("reading %s: entry %d: %w", ClaimsKey, i, err))
		}
	}
	return claims, errors.Join(notes...)
}

// claimJSON is Argo CD's spelling; JSON's own rules fold the case, as Argo CD's reader does.
type claimJSON struct {
	ShardNumber    *int
	ControllerName string
	HeartbeatTime  *time.Time
}

func parseClaim(entry json.RawMessage) (Claim, error) {
	if bytes.Equal(bytes.TrimSpace(entry), []byte("null")) {
		return Claim{}, errors.New("it is null")
	}
	var c claimJSON
	if err := json.Unmarshal(entry, &c); err != nil {
		return Claim{}, err
	}
	if c.ShardNumber == nil || *c.ShardNumber < 0 || *c.ShardNumber >= maxClaims {
		return Claim{}, errors.New("ShardNumber is not a replica's number")
	}
	claim := Claim{Shard: *c.ShardNumber, Controller: c.ControllerName}
	if c.HeartbeatTime != nil && c.HeartbeatTime.Unix() > 0 {
		claim.Heartbeat = patchable.WithinJSON(*c.HeartbeatTime)
	}
	return claim, nil
}
