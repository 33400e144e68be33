// Package problem has what a cycle tells people of: what a phase could not do or will not believe.
package problem

import (
	"cmp"
	"fmt"
	"strings"

	"ballast/planner/printable"
)

// Phase names a phase in problems, metrics and logs.
type Phase string

// The phases, in their order.
const (
	PhaseDiscover  Phase = "discover"
	PhasePoll      Phase = "poll"
	PhaseNormalize Phase = "normalize"
	PhaseIndex     Phase = "index"
	PhasePartition Phase = "partition"
	PhaseRollout   Phase = "rollout"
	PhaseSize      Phase = "size"
	PhaseOwnership Phase = "ownership" // what the pods say
	PhaseStore     Phase = "store"     // reading and writing the plan
)

// Problem is what a phase could not do or will not believe. Keeps says that it keeps the plan from changing.
type Problem struct {
	Phase   Phase  `json:"phase"`
	Subject string `json:"subject,omitempty"` // the Secret, metric or pin that it is about
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Keeps   bool   `json:"keeps,omitempty"`
}

// Text is a text of others, fit for people and bounded.
func Text(s string) string { return printable.Text(s, maxMessage) }

// maxMessage is the longest message of a problem, in characters.
const maxMessage = 1000

// Printable is the gate of every problem: its texts come from Secrets, annotations, pods and Prometheus. Of an error of
// several lines it makes one.
func (p Problem) Printable() Problem {
	p.Subject = Text(p.Subject)
	p.Message = Text(strings.ReplaceAll(p.Message, "\n", "; "))
	return p
}

// Printable makes each of them fit for people, in place.
func Printable(problems []Problem) []Problem {
	for i, p := range problems {
		problems[i] = p.Printable()
	}
	return problems
}

// ClipList names three of a list, and how many more there are: it keeps a reason readable when a thousand clusters come
// at once.
func ClipList(names []string) string {
	const most = 3
	s := ""
	for i, n := range names {
		if i == most {
			return s + fmt.Sprintf(" and %d more", len(names)-most)
		}
		s += []string{"", ", "}[cmp.Compare(i, 0)] + n
	}
	return s
}
