package podlist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ballast/planner/plan"
)

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
		claim.Heartbeat = plan.WithinJSON(*c.HeartbeatTime)
	}
	return claim, nil
}
