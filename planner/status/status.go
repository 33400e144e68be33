// Package status is what the leader says of how things are: whether it plans, whether its plan is held, what is under
// way and what that waits for, who is unwell. It stands in a ConfigMap beside the plan, and is for people and their
// tools; ballast itself goes by its revision, where plan and history are lost together and nothing else knows one, and
// by since when conditions are as they are. What rollback and evacuate foretell goes by who is unwell; what happens
// does not.
package status

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize"
	"ballast/planner/failover/health"
	"ballast/planner/plan"
	"ballast/planner/plan/probing"
	"ballast/planner/printable"
)

const (
	// Key is where it stands in its ConfigMap.
	Key = "status"
	// MaxBytes bounds it: lists are cut to most of their entries, and counted.
	MaxBytes = 256 << 10
	most     = 50
)

// Name is the name of its ConfigMap, by the plan's.
func Name(planMap string) string { return planMap + "-status" }

// Status is all of it. Revision is that of the plan in force when the leader had looked: what it says of a rollout is
// of that plan. Where none was, it is the last one that was said. Times are when the leader looked, and since when a
// condition is as it is.
type Status struct {
	Leader       string            `json:"leader"`
	LookedAt     time.Time         `json:"lookedAt"`
	Revision     int64             `json:"revision"`
	Conditions   []Condition       `json:"conditions"`
	Rollout      *Rollout          `json:"rollout,omitempty"`
	HeldUntil    time.Time         `json:"heldUntil,omitzero"` // a rollout failed, and nothing that levels begins before
	Budget       *Budget           `json:"budget,omitempty"`
	Candidate    *Candidate        `json:"candidate,omitempty"`
	Line         *Line             `json:"line,omitempty"`
	Blocked      []resize.Blocked  `json:"blocked,omitempty"` // changes that are wanted, and what keeps them from happening
	Replicas     []Replica         `json:"replicas,omitempty"`
	Elsewhere    []Elsewhere       `json:"elsewhere,omitempty"` // clusters that are not where the plan has them; without a grace period
	Unwell       []Unwell          `json:"unwell,omitempty"`
	FailoverHeld string            `json:"failoverHeld,omitempty"` // why nothing is done about them
	Orphaned     []Fault           `json:"orphaned,omitempty"`
	Doubled      []Fault           `json:"doubled,omitempty"`
	Problems     []problem.Problem `json:"problems,omitempty"`
	Resizes      *bool             `json:"resizes,omitempty"`     // whether the API server changes the size of a running pod; nil: unknown
	KeepsLimits  bool              `json:"keepsLimits,omitempty"` // it lowers no memory limit of one
	PutBack      *probing.PutBack  `json:"putBack,omitempty"`     // whose writes the webhooks put back, and refused
	Omitted      int               `json:"omitted,omitempty"`     // entries of the lists that had no room
}

// Outdated is how old the leader's word may be: it says something once a minute, and a cycle may take minutes.
const Outdated = 5 * time.Minute

// Old reports whether no leader has said anything for so long that things may be otherwise now, or its clock is as far
// ahead.
func (s Status) Old(now time.Time) bool { return now.Sub(s.LookedAt).Abs() > Outdated }

// Ahead reports whether the leader's clock is so far ahead of this one that nobody can tell how old its word is: Old
// for that alone.
func (s Status) Ahead(now time.Time) bool { return s.LookedAt.Sub(now) > Outdated }

// Rollout is how far the one under way is, beside what the plan says of it. Waits is what it waits for; empty where its
// stage has just begun.
type Rollout struct {
	Stage    plan.Stage `json:"stage"`
	Since    time.Time  `json:"since"`
	Waits    string     `json:"waits,omitempty"`
	Deadline time.Time  `json:"deadline,omitzero"`
	Late     bool       `json:"late,omitempty"`
	After    int        `json:"after,omitempty"` // clusters that move after the present wave
}

// Budget is how much may move. A nil Left is no limit; Next is when more may where none may now, and zero is never.
type Budget struct {
	Message string         `json:"message"`
	Left    *int           `json:"left,omitempty"`
	Next    time.Time      `json:"next,omitzero"`
	Windows []Window       `json:"windows,omitempty"`
	Causes  map[string]int `json:"causes,omitempty"`
}

// Window is a period that only so many clusters may move within.
type Window struct {
	Period  string `json:"period"`
	Percent int    `json:"percent"`
	Allowed int    `json:"allowed"`
	Used    int    `json:"used"`
}

// Candidate is what levelling would do now, and what keeps it from being done.
type Candidate struct {
	Replicas int    `json:"replicas"`
	Moves    int    `json:"moves"`
	Verdict  string `json:"verdict"`
}

// Line is what a replica may carry by the configuration, or else what one is known to bear since then.
type Line struct {
	Load       plan.Load `json:"load"`
	Configured bool      `json:"configured,omitempty"`
	Since      time.Time `json:"since,omitzero"`
}

// Unwell is a replica whose clusters are to go elsewhere.
type Unwell struct {
	Replica int           `json:"replica"`
	Reason  health.Reason `json:"reason"`
	Since   time.Time     `json:"since"`
	Pod     string        `json:"pod,omitempty"`
	Message string        `json:"message"`
}

// Fault is a cluster that no replica has, or several.
type Fault struct {
	Cluster string    `json:"cluster"`
	Since   time.Time `json:"since"`
	Last    *int      `json:"last,omitempty"`   // the replica that had it last
	Owners  []int     `json:"owners,omitempty"` // where there are several
}

// Heard is what is kept of the status of the leader before: since when its conditions are what they are, its revision,
// which a plan in force replaces, and nothing else that is said in this leader's name. Whoever may write the ConfigMap
// may have written it.
func Heard(former Status, now time.Time) Status {
	s := Status{Revision: former.Revision}
	for _, kind := range []Type{Planning, Enforced, Progressing, Degraded} {
		at := slices.IndexFunc(former.Conditions, func(c Condition) bool { return c.Type == kind })
		if at >= 0 && !former.Conditions[at].LastTransitionTime.After(now) {
			c := former.Conditions[at]
			s.Conditions = append(s.Conditions, Condition{Type: kind, Status: c.Status,
				LastTransitionTime: c.LastTransitionTime})
		}
	}
	return s
}

// cut bounds the lists, so that the text fits whatever is in them. What is of clusters' Secrets takes no room from
// older ones, by when they were made, and problems none from those of another kind.
func (s *Status) cut(made map[string]time.Time) {
	faultOf := func(f Fault) (string, string) { return f.Cluster, "" }
	problemOf := func(p problem.Problem) (string, string) { return p.Subject, p.Kind }
	for limit := most; limit > 0; limit /= 2 {
		s.Omitted += fairly(&s.Orphaned, limit, made, faultOf) + fairly(&s.Doubled, limit, made, faultOf)
		s.Omitted += fairly(&s.Problems, limit, made, problemOf)
		s.Omitted += cut(&s.Unwell, limit) + cut(&s.Blocked, limit) + cut(&s.Elsewhere, limit) +
			cut(&s.Replicas, 4*limit)
		for i := range s.Doubled {
			cut(&s.Doubled[i].Owners, most)
		}
		for i := range s.Elsewhere {
			s.Elsewhere[i].Owners = s.Elsewhere[i].Owners[:min(len(s.Elsewhere[i].Owners), most)] // the outcome's own
		}
		if text, err := s.Encode(); err == nil && len(text) <= MaxBytes {
			return
		}
	}
}

// fairly keeps of a list, in its order, the first of each kind before the second of any, and of one kind those of the
// oldest Secrets.
func fairly[T any](list *[]T, limit int, made map[string]time.Time, of func(T) (cluster, kind string)) (omitted int) {
	all := *list
	if len(all) <= limit {
		return 0
	}
	byAge, rank, seen := make([]int, len(all)), make([]int, len(all)), map[string]int{}
	for i := range all {
		byAge[i] = i
	}
	at := func(i int) time.Time { cluster, _ := of(all[i]); return made[cluster] }
	slices.SortStableFunc(byAge, func(a, b int) int { return at(a).Compare(at(b)) })
	for _, i := range byAge {
		_, kind := of(all[i])
		rank[i] = seen[kind]
		seen[kind]++
	}
	slices.SortStableFunc(byAge, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	kept := slices.Sorted(slices.Values(byAge[:limit]))
	*list = make([]T, 0, limit)
	for _, i := range kept {
		*list = append(*list, all[i])
	}
	return len(all) - limit
}

func cut[T any](list *[]T, limit int) (omitted int) {
	if omitted = max(len(*list)-limit, 0); omitted > 0 {
		*list = (*list)[:limit]
	}
	return omitted
}

// Encode is its text.
func (s Status) Encode() (string, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding the status: %w", err)
	}
	return string(text), nil
}

// Parse reads it. Whoever may write the ConfigMap may have written it: its texts are one line each, and it is bounded.
func Parse(text string) (Status, error) {
	var s Status
	if len(text) > MaxBytes {
		return s, fmt.Errorf("the status has %d bytes, more than %d", len(text), MaxBytes)
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Status{}, errors.New(printable.Text("the status cannot be read: "+err.Error(), maxMessage))
	}
	return s, nil
}

// Same reports whether two say the same, whenever each was said. How the vote on a candidate stands is another thing in
// each cycle.
func (s Status) Same(other Status) bool {
	if s.Candidate != nil && other.Candidate != nil {
		a, b := *s.Candidate, *other.Candidate
		a.Verdict, b.Verdict = "", ""
		s.Candidate, other.Candidate = &a, &b
	}
	s.LookedAt, other.LookedAt = time.Time{}, time.Time{}
	s.Replicas, other.Replicas = sameReplicas(s.Replicas), sameReplicas(other.Replicas)
	if s.Rollout != nil && other.Rollout != nil { // seconds that were rounded make no news
		a, b := *s.Rollout, *other.Rollout
		if gap := a.Deadline.Sub(b.Deadline).Abs(); gap <= 2*time.Second {
			a.Deadline = b.Deadline
		}
		s.Rollout, other.Rollout = &a, &b
	}
	a, err := s.Encode()
	if err != nil {
		return false
	}
	b, err := other.Encode()
	return err == nil && a == b
}
