package auditlog

import (
	"slices"
	"strconv"

	"ballast/planner/plan"
	"ballast/planner/printable"
)

// maxText bounds a user's name, in characters; an LDAP name or a cloud role has some 150.
const maxText = 256

// printText makes a name that anybody may have chosen safe for a terminal.
func printText(s string) string { return printable.Text(s, maxText) }

func printName(s string) string {
	if s == "" {
		return s
	}
	return printable.Name(s)
}

func printReason(s string) string {
	if slices.Contains(plan.Reasons(), plan.Reason(s)) {
		return s
	}
	return Invalid
}

// The verbs of a deletion, which no webhook is asked about.
const (
	verbDelete    = "delete"
	verbDeleteAll = "deletecollection"
)

// printVerb knows the verbs that change something.
func printVerb(s string) string {
	if slices.Contains([]string{"create", "update", "patch", verbDelete, verbDeleteAll}, s) {
		return s
	}
	return Invalid
}

// readRevision is 0 for none, and for what is no revision.
func readRevision(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
