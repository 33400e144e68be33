package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ballast/cmd/ballast/say"
	"ballast/planner/cycle"
	"ballast/planner/failover"
	"ballast/planner/plan"
)

// Fits is whether what is supposed has room.
type Fits string

// The answers.
const (
	Yes     Fits = "yes"
	No      Fits = "no"
	Unknown Fits = "unknown" // nothing says what a replica may carry, or that it bears this much
)

// Fit is the answer in short: whether it fits, on how many replicas, how full the fullest is, and by how many moves.
type Fit struct {
	Fits    Fits      `json:"fits"`
	Why     string    `json:"why,omitempty"` // it does not, or is not known to
	Before  int       `json:"replicasBefore"`
	Without int       `json:"replicasWithout"` // what is supposed
	After   int       `json:"replicasAfter"`   // that are not lost
	Fullest int       `json:"fullest"`
	Load    plan.Load `json:"load"`
	Share   float64   `json:"share,omitempty"` // of what a replica may carry, or is known to; 0: nothing says it
	Moves   int       `json:"moves"`

	known string // what Share is of
	lost  bool
}

// fit judges where the fleet comes to rest.
func (a *Answer) fit(line *cycle.Line) {
	f := Fit{Fits: Yes, Before: len(a.Now.Replicas), Without: len(a.Without.Replicas), Fullest: -1, Moves: len(a.Moves),
		lost: a.Lost != nil}
	for _, r := range a.With.Replicas {
		if r.Lost {
			continue
		}
		f.After++
		if f.Fullest < 0 || r.Load > f.Load {
			f.Fullest, f.Load = r.Replica, r.Load
		}
	}
	if line != nil {
		f.Share, f.known = float64(f.Load)/float64(max(line.Load, 1)), "is known to bear"
		if line.Configured {
			f.known = "may carry"
		}
	}
	f.Fits, f.Why = a.judge(f, line)
	a.Fit = f
}

// judge is whether it fits, and why not.
func (a *Answer) judge(f Fit, line *cycle.Line) (Fits, string) {
	crowded := func(n failover.Note) bool { return n.Kind == failover.MemoryCrowded }
	hinders := func(p Problem) bool { return p.Keeps || p.Kind == "MemoryShort" }
	switch at := slices.IndexFunc(a.Problems, hinders); {
	case a.Lost != nil && a.Lost.Stay > 0:
		return No, fmt.Sprintf("%s would have no replica", say.Plural(a.Lost.Stay, "cluster"))
	case a.Lost != nil && slices.ContainsFunc(a.Lost.Notes, crowded):
		return No, "a replica would have too little memory"
	case at >= 0:
		return No, fmt.Sprintf("there would be the problem %s/%s", a.Problems[at].Phase, a.Problems[at].Kind)
	case !a.With.Settled:
		return No, "the fleet would not come to rest"
	case line == nil:
		return Unknown, "nothing says what a replica may carry (partition.capacity)"
	case f.Load <= line.Load:
		return Yes, ""
	case line.Configured:
		return No, fmt.Sprintf("replica %d would carry more than one may", f.Fullest)
	}
	return Unknown, fmt.Sprintf("replica %d would carry more than any is known to bear", f.Fullest)
}

// String is the answer in one sentence.
func (f Fit) String() string {
	words := map[Fits]string{Yes: "Yes, it fits: ", No: "No, it does not fit: ",
		Unknown: "Whether it fits is not known: "}
	parts := slices.DeleteFunc([]string{f.Why, f.replicas(), f.fullest(), say.Plural(f.Moves, "move")}, func(s string) bool { return s == "" })
	return cmp.Or(words[f.Fits], "") + strings.Join(parts, "; ") + "."
}

func (f Fit) replicas() string {
	says := fmt.Sprintf("%s instead of %d", say.Plural(f.After, "replica"), f.Before)
	switch {
	case f.lost:
		says = fmt.Sprintf("%s left of %d now", say.Plural(f.After, "replica"), f.Before)
	case f.After == f.Before:
		says = say.Plural(f.After, "replica") + " as now"
	}
	if f.Without != f.Before {
		says += fmt.Sprintf(", and %d without it", f.Without)
	}
	return says
}

func (f Fit) fullest() string {
	if f.Fullest < 0 {
		return ""
	}
	says := fmt.Sprintf("the fullest, replica %d, would carry %s", f.Fullest, f.Load.Display())
	if f.Share > 0 {
		says += fmt.Sprintf(", %.2f of what one %s", f.Share, f.known)
	}
	return says
}
