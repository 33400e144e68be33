// Package finding is what a check of `ballast doctor` finds.
package finding

import "fmt"

// Result is how a check ended.
type Result string

// The results of a check.
const (
	OK      Result = "OK"
	Warning Result = "Warning"
	Fault   Result = "Fault"   // ballast must not enforce before it is mended
	Unknown Result = "Unknown" // it could not be looked at
)

// Finding is what a check found. Subjects are the objects it is about.
type Finding struct {
	Check    string   `json:"check"`
	Result   Result   `json:"result"`
	Message  string   `json:"message"`
	Mend     string   `json:"mend,omitempty"`
	Subjects []string `json:"subjects,omitempty"`
}

// With is a finding of that result, and what mends it.
func (r Result) With(message, mend string) []Finding {
	return []Finding{{Result: r, Message: message, Mend: mend}}
}

// Well is that nothing has to be mended.
func Well(format string, args ...any) []Finding { return OK.With(fmt.Sprintf(format, args...), "") }

// MayNot is how somebody who may gives the right to look.
func MayNot(verb, resource string) string {
	return fmt.Sprintf("whoever may gives it: kubectl create clusterrole ballast-doctor --verb=%s --resource=%s && "+
		"kubectl create clusterrolebinding ballast-doctor --clusterrole=ballast-doctor --user=YOU (kubectl auth whoami)", verb, resource)
}
