// Package evaluate decides whether a candidate that the partition phase proposes is worth taking, and remembers what it
// needs for that in a History that a new leader can go on with.
package evaluate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Candidate is a partition that could be put in force: which replica owns each cluster, by Secret name.
type Candidate struct {
	Replicas int            `json:"replicas"`
	Of       map[string]int `json:"of"`
}

// Ballot is one vote: the candidate that was proposed at a time.
type Ballot struct {
	At  time.Time `json:"at"`
	Key string    `json:"key"`
}

// Vote is what a vote has so far. Basis is what all candidates agree on, Since when the vote began. A candidate is
// kept by its Key, or was dropped to bound the memory; its ballots then still count against the others.
type Vote struct {
	Basis      string               `json:"basis,omitempty"`
	Since      time.Time            `json:"since,omitzero"`
	Ballots    []Ballot             `json:"ballots,omitempty"`
	Candidates map[string]Candidate `json:"candidates,omitempty"`
}

// Without is the vote without one candidate, and without the ballots for it.
func (h Vote) Without(key string) Vote {
	h.Candidates = maps.Clone(h.Candidates)
	delete(h.Candidates, key)
	h.Ballots = slices.DeleteFunc(slices.Clone(h.Ballots), func(b Ballot) bool { return b.Key == key })
	return h
}

// ElectionReason says why an election came out as it did, of a closed set.
type ElectionReason string

// The reasons.
const (
	MostVotes     ElectionReason = "MostVotes"     // wanted more often than any other
	AsIs          ElectionReason = "AsIs"          // None takes every candidate
	TooFewSamples ElectionReason = "TooFewSamples" // the vote goes on
	WindowOpen    ElectionReason = "WindowOpen"    // there are enough samples, and the vote goes on until its window ends
	NewVote       ElectionReason = "NewVote"       // the bounds or many clusters changed, so that it began anew, and goes on
)

// Election is the outcome of a vote: Key and Candidate are set if Elected. Votes of Samples wanted it; Needed is the
// number of samples below which nothing is elected, Until the time before which nothing is.
type Election struct {
	Elected   bool
	Key       string
	Candidate Candidate
	Votes     int
	Samples   int
	Needed    int
	Until     time.Time
	Reason    ElectionReason
}

// String is a sentence for the plan's reason. It does not hide a winner that hardly anybody wanted.
func (e Election) String() string {
	switch e.Reason {
	case AsIs:
		return "taken as it is, without a vote"
	case MostVotes:
		return fmt.Sprintf("wanted by %d of %d samples, more than any other", e.Votes, e.Samples)
	case NewVote:
		return fmt.Sprintf("the bounds or many clusters changed: a new vote has %d of %d samples", e.Samples, e.Needed)
	case WindowOpen:
		return fmt.Sprintf("the vote has %d samples, and goes on until %s", e.Samples,
			e.Until.UTC().Format(time.RFC3339))
	default:
		return fmt.Sprintf("the vote has %d of %d samples", e.Samples, e.Needed)
	}
}

// None elects every candidate at once.
func None(c Candidate) Election {
	return Election{Elected: true, Key: Key(c), Candidate: c, Votes: 1, Samples: 1, Needed: 1, Reason: AsIs}
}

// Key names a candidate by its content: equal candidates have one key on every machine. It is the first 64 bits of a
// SHA-256 over the number of replicas and the clusters by name, each with its length so that no two candidates read the
// same, in hexadecimal.
func Key(c Candidate) string {
	names := make([]string, 0, len(c.Of))
	for name := range c.Of {
		names = append(names, name)
	}
	slices.Sort(names)
	h := sha256.New()
	buf := binary.AppendVarint(nil, int64(c.Replicas))
	for _, name := range names {
		buf = binary.AppendUvarint(buf, uint64(len(name)))
		buf = append(buf, name...)
		buf = binary.AppendVarint(buf, int64(c.Of[name]))
		if len(buf) > 1<<12 {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	h.Write(buf)
	return hex.EncodeToString(h.Sum(nil)[:8])
}
