package discover

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Leader is the Secret that leads the others of its server. While it is gone, nobody else leads for an hour: it may be
// made anew, and who made another one beside it must not gain by that.
type Leader struct {
	Name  string    `json:"name"`
	Gone  time.Time `json:"gone,omitzero"`
	Known bool      `json:"known,omitempty"` // it was there for an hour, and is ballast's to write
	Made  time.Time `json:"made,omitzero"`   // when its Secret was
}

// String names it in a sentence.
func (l Leader) String() string {
	if l.Gone.IsZero() {
		return fmt.Sprintf("Secret %q", l.Name)
	}
	return fmt.Sprintf("Secret %q, which is gone since %s,", l.Name, l.Gone.UTC().Format(time.RFC3339))
}

// leadsFor is how long a leader that is gone keeps its place, as long as its row.
const leadsFor = time.Hour

// waits reports whether a leader keeps its place; a clock that went back counts as no time.
func (l Leader) waits(now time.Time) bool {
	return l.Gone.IsZero() || now.Before(l.Gone) || now.Sub(l.Gone) < leadsFor
}

func (l Leader) goneAt(now time.Time) Leader {
	if l.Gone.IsZero() || now.Before(l.Gone) {
		l.Gone = now
	}
	return l
}

// mostLeaders bounds the memory of them: the history has 900 KiB for everything, and a name may have 253 letters.
const mostLeaders = 1000

// leaderKey is a server in the history, which must hold no credentials of a URL.
func leaderKey(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:16])
}
