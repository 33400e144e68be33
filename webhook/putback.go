package webhook

import (
	"crypto/rand"
	"crypto/subtle"
	"maps"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"ballast/planner/plan"
	"ballast/planner/plan/probing"
	"ballast/planner/printable"
	"ballast/webhook/decision"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
)

const (
	// mostUsers bounds what a webhook remembers: five times what one answer names.
	mostUsers = 5 * probing.MostUsers
	// maxUserKept is how many bytes tell one user from another: what is shown of two may be the same.
	maxUserKept = 1 << 10
)

// putBacks is whose writes were put back or refused. Metrics have no label for a user, which is without bounds; the
// planner asks for the users by its probe, and shows them on its page.
type putBacks struct {
	mu      sync.Mutex
	webhook string
	since   time.Time
	users   map[string]probing.UserWrites // by the name as it is
	others  int

	unverified bool
}

func newPutBacks(now time.Time) *putBacks {
	return &putBacks{webhook: rand.Text(), since: now.UTC().Truncate(time.Second),
		users: map[string]probing.UserWrites{}}
}

// knowsPlan reports whether that is the MAC of the plan that stands.
func knowsPlan(s *inforce.State, mac string) bool {
	if s == nil || s.Kept == nil || mac == "" {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(s.Kept.Annotations[plan.AnnotationMAC]), []byte(mac)) == 1
}

// note counts a write that is not what it asked for. A dry-run changes nothing, and what the planner writes is the
// plan's. Of a caller without a certificate nobody knows whether it is the API server, and so whose write it is.
func (p *putBacks) note(s *inforce.State, rv *review, v decision.Verdict, verified bool) {
	back := v.Reason == plan.Restored || v.Reason == plan.PlanKept
	counts := (back || v.Denied != "") && !rv.dryRun && !s.IsPlanner(rv.User)
	if !counts {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unverified = p.unverified || !verified
	who := rv.User[:min(len(rv.User), maxUserKept)]
	u, known := p.users[who]
	if !known && len(p.users) >= mostUsers {
		p.forget()
	}
	u.User, u.Last = shown(rv.User), rv.At.UTC().Truncate(time.Second)
	if v.Denied != "" {
		u.Refused++
	} else {
		u.PutBack++
	}
	p.users[strings.Clone(who)] = u
}

// shown is what people see of a user's name, cut between two characters.
func shown(user string) string {
	user = printable.Text(user, probing.MaxUser)
	if len(user) <= probing.MaxUser {
		return user
	}
	cut := probing.MaxUser - len("…")
	for !utf8.RuneStart(user[cut]) {
		cut--
	}
	return user[:cut] + "…"
}

// forget leaves out the user whose last write is the oldest.
func (p *putBacks) forget() {
	oldest := ""
	for name, u := range p.users {
		if at := p.users[oldest].Last; oldest == "" || u.Last.Before(at) || u.Last.Equal(at) && name < oldest {
			oldest = name
		}
	}
	p.others += p.users[oldest].PutBack + p.users[oldest].Refused
	delete(p.users, oldest)
}

// told is all of it.
func (p *putBacks) told() probing.PutBack {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := probing.PutBack{Webhook: p.webhook, Since: p.since, Others: p.others, Unverified: p.unverified}
	for u := range maps.Values(p.users) {
		told.Users = append(told.Users, u)
	}
	return told
}

// answers puts it where a probe of the planner asked for it. Whoever reaches the port may say that he is the planner:
// he is told nothing who does not know the MAC of the plan that stands, which takes the right to read it.
func (p *putBacks) answers(s *inforce.State, v *decision.Verdict, rv *review) {
	annotations := rv.object.Field("metadata").Field("annotations")
	asked := rv.dryRun && annotations.Field(probing.AnnotationPutBack).Text(objects.MaxWord) == probing.PutBackAsked
	if !asked || !knowsPlan(s, annotations.Field(plan.AnnotationMAC).Text(objects.MaxWord)) {
		return
	}
	path := "/metadata/annotations/" + strings.ReplaceAll(probing.AnnotationPutBack, "/", "~1")
	v.Patches = append(v.Patches, decision.Op{Op: "replace", Path: path, Value: p.told().Encode()})
}
