package outcome

import (
	"fmt"
	"time"

	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
)

// Counts is what a cycle found out about the number of replicas.
type Counts struct {
	Weights *Weighing        `json:"weights,omitempty"`
	Blocked []resize.Blocked `json:"blocked,omitempty"`
}

// Weighing is how many replicas size.weights ask for, and of what.
type Weighing struct {
	Load       float64      `json:"load"`
	Start      memory.Start `json:"start"`
	Weight     int          `json:"weight"` // of the load's interval
	Replicas   int          `json:"replicas"`
	Fullest    float64      `json:"fullest"`              // load of one of so many
	Horizontal int          `json:"horizontal,omitempty"` // so many there would be if none grew
	Fewer      int          `json:"fewer,omitempty"`      // so many the weights ask for, each larger than they ask
	OverNode   bool         `json:"overNode,omitempty"`
	Why        string       `json:"why"`
	Most       float64      `json:"-"` // that a replica may carry, whatever is too small a change otherwise
}

// Line is what a replica may carry, by the configuration, or where that says nothing, what the fullest well one carried
// when the fleet was taken over, at Since: it is known to be borne. Fullest is the replica that carries most of it now.
type Line struct {
	Load       plan.Load `json:"load"`
	Configured bool      `json:"configured,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	Fullest    int       `json:"fullest"`
	Share      float64   `json:"share"` // of the line, that the fullest carries
}

// Headroom says how much of the line the fullest replica would carry instead of what it does; empty: there is no line.
func (l *Line) Headroom(now, then []plan.Replica) string {
	if l == nil || l.Load <= 0 {
		return ""
	}
	of := "what one is known to bear"
	if l.Configured {
		of = "partition.capacity"
	}
	share := func(replicas []plan.Replica) float64 { return fullest(replicas).Float() / l.Load.Float() }
	return fmt.Sprintf("the fullest at %.2f of %s instead of %.2f", share(then), of, share(now))
}

func fullest(replicas []plan.Replica) (most plan.Load) {
	for _, r := range replicas {
		most = max(most, r.TotalLoad)
	}
	return most
}
