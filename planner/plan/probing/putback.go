// Package probing is what a probe asks the plan's webhooks in an annotation that is never stored, and what they answer:
// that they hold the plan, and whose writes they put back.
package probing

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"ballast/planner/plan"
)

// AnnotationPutBack is where a probe of the plan's webhook asks whose writes it put back or refused, and has the
// answer. Like the probe itself it is never stored.
const AnnotationPutBack = plan.Group + "/probe-putback"

// PutBackAsked is the question.
const PutBackAsked = "asked"

const (
	// MostUsers is how many users one answer names; the others are counted together.
	MostUsers = 20
	// maxPutBack bounds an answer: twenty names of MaxUser bytes, each of which JSON may write as six (as it does <),
	// and the rest.
	maxPutBack = MostUsers*(6*MaxUser+maxBesideUser) + 1<<10
	// maxBesideUser is what JSON has of a user beside the name: two counts, a time and the fields' names.
	maxBesideUser = 256
	// MaxUser is the longest name of a user, in bytes.
	MaxUser = 253
)

// UserWrites is what became of one user's writes. Last is the time of the last of them.
type UserWrites struct {
	User    string    `json:"user"`
	PutBack int       `json:"putBack,omitempty"` // the plan's value was put back
	Refused int       `json:"refused,omitempty"`
	Last    time.Time `json:"last"`
}

// PutBack is what one webhook's pod knows of whose writes it put back or refused since it began. Those that were least
// lately written by have no entry of their own once there are too many: Others counts their writes.
type PutBack struct {
	Webhook string       `json:"webhook"` // tells it from the other pods
	Since   time.Time    `json:"since"`
	Users   []UserWrites `json:"users,omitempty"`
	Others  int          `json:"others,omitempty"`

	// Unverified says that callers without a certificate said so: whoever reaches the webhook's port may name any user.
	Unverified bool `json:"unverified,omitempty"`
}

// Encode is the answer: the users with most writes first.
func (p PutBack) Encode() string {
	p.Users = slices.Clone(p.Users)
	p.cut()
	text, err := json.Marshal(p)
	if err != nil { // a time that JSON does not have
		return ""
	}
	return string(text)
}

// Together is what several webhooks' pods know, as if one did; nil where none said anything.
func Together(all []PutBack) *PutBack {
	if len(all) == 0 {
		return nil
	}
	sum, of := PutBack{Webhook: "all", Since: all[0].Since}, map[string]UserWrites{}
	for _, p := range all {
		if p.Since.Before(sum.Since) {
			sum.Since = p.Since
		}
		sum.Others, sum.Unverified = sum.Others+p.Others, sum.Unverified || p.Unverified
		for _, u := range p.Users {
			s := of[u.User]
			if u.Last.After(s.Last) {
				s.Last = u.Last
			}
			of[u.User] = UserWrites{u.User, s.PutBack + u.PutBack, s.Refused + u.Refused, s.Last}
		}
	}
	for _, u := range of {
		sum.Users = append(sum.Users, u)
	}
	sum.cut()
	return &sum
}

// cut sorts the users, and counts those beyond the most that are named with the others.
func (p *PutBack) cut() {
	SortUsers(p.Users)
	for len(p.Users) > MostUsers {
		last := p.Users[len(p.Users)-1]
		p.Users, p.Others = p.Users[:len(p.Users)-1], p.Others+last.PutBack+last.Refused
	}
}

// SortUsers puts those with most writes first.
func SortUsers(users []UserWrites) {
	slices.SortFunc(users, func(a, b UserWrites) int {
		return cmp.Or(cmp.Compare(b.PutBack+b.Refused, a.PutBack+a.Refused), cmp.Compare(a.User, b.User))
	})
}

// ParsePutBack reads an answer. What is none, or more than a webhook answers, is refused.
func ParsePutBack(text string) (PutBack, bool) {
	var p PutBack
	if text == "" || len(text) > maxPutBack || json.Unmarshal([]byte(text), &p) != nil {
		return PutBack{}, false
	}
	bad := func(u UserWrites) bool { return u.PutBack < 0 || u.Refused < 0 || len(u.User) > MaxUser }
	named := p.Webhook != "" && len(p.Webhook) <= maxNonce
	listed := len(p.Users) <= MostUsers && !slices.ContainsFunc(p.Users, bad)
	if !named || p.Others < 0 || !listed {
		return PutBack{}, false
	}
	return p, true
}

// AnnotationProbe is how the planner asks whether the plan's webhook answers: it puts a question there, by a dry-run of
// which nothing is stored, and the webhook puts the answer in its place.
const AnnotationProbe = plan.Group + "/probe"

// What a question and its answer begin with. They differ, so that a second pass over the answer changes nothing.
const (
	probeQuestion = "asked-"
	probeAnswer   = "answered-"
)

// Question is the question of a probe. The nonce tells it from an older one.
func Question(nonce string) string { return probeQuestion + nonce }

// Answer is the answer to a question, false for what is none.
func Answer(question string) (string, bool) {
	nonce, asked := strings.CutPrefix(question, probeQuestion)
	if !asked || nonce == "" || len(nonce) > maxNonce {
		return "", false
	}
	return probeAnswer + plan.Digest(nonce), true
}

// maxNonce bounds what is answered to.
const maxNonce = 64

// The warnings by which a webhook says whether a probe came on a connection that was dialled for it. The API server
// keeps connections for later calls: over those a webhook answers that nobody can reach any more.
const (
	ProbedOnNew  = "ballast: the probe came on a new connection"
	ProbedOnUsed = "ballast: the probe came on a connection that was used before"
)
