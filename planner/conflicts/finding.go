// Package conflicts finds what else has a say over the application-controller: autoscalers that scale it, budgets that
// would keep its nodes from being drained, and another instance of ballast that plans for it. The judgements are
// functions of values; look.go and lock.go ask the API server.
package conflicts

import "slices"

// Kind says what a finding is about: event reason, metric label and log value. The set is closed.
type Kind string

// The kinds of findings.
const (
	Autoscaled Kind = "Autoscaled" // somebody else scales the workload
	Resized    Kind = "Resized"    // somebody else changes the size of its pods
	PDBBlocks  Kind = "PDBBlocks"  // no node that runs a replica can be drained
	CannotLook Kind = "CannotLook" // the right to find out is missing, or there are more than can be read
)

// Finding is a neighbour that the plan and a person should know of. Subject names one object, or the resource that
// could not be looked at; Message is a sentence with the mend.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Subject string `json:"subject"`
	Message string `json:"message"`
}

// mostTold is how many findings of one kind are told one by one. Whoever may create autoscalers or budgets may create
// thousands, and neither a cycle's time nor its memory may grow with them.
const mostTold = 20

// Standing is what was found, and what was found before that a look which did not see everything says nothing of.
func Standing(found, before []Finding) []Finding {
	told := map[Kind]int{}
	for _, f := range found {
		told[f.Kind]++
	}
	for _, old := range before {
		if told[old.Kind] > mostTold { // who makes others each time must not have all of them told
			continue
		}
		same := func(f Finding) bool { return f.Kind == old.Kind && f.Subject == old.Subject }
		if old.Kind != CannotLook && !slices.ContainsFunc(found, same) {
			found, told[old.Kind] = append(found, old), told[old.Kind]+1
		}
	}
	return found
}
