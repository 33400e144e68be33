// Package decision answers each kind of write by the plan in force: values in, a Verdict out.
package decision

import (
	"strconv"
	"strings"

	"ballast/planner/plan"
	"ballast/planner/printable"
)

// Verdict is what one write is answered: everything the handler sends, logs and counts.
type Verdict struct {
	Reason    plan.Reason
	Revision  int64 // of the plan that decided; 0 for none
	Patches   []Op
	Requested []Field
	Enforced  []Field
	Warnings  []string // at most MaxWarning bytes each
	Denied    string   // only ever for a pin that cannot be
}

// Op is one operation of a JSON patch (RFC 6902).
type Op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Field is one enforced field with its value, as the audit annotations print it. An empty value is an absent field.
type Field struct{ Name, Value string }

// MaxWarning is the longest a warning may be: the API server cuts what is longer once the sum is above 4 KiB, and
// people read one line.
const MaxWarning = 120

// MaxMessage is the longest text that is answered, in characters.
const MaxMessage = 1000

// maxWarnings keeps a write of many mistakes from filling a terminal.
const maxWarnings = 5

// warn adds a warning: the first of the given forms that fits, the last one cut where none does.
func (v *Verdict) warn(forms ...string) {
	if len(v.Warnings) >= maxWarnings {
		return
	}
	for i, form := range forms {
		form = printable.Text(form, MaxMessage) // it may have a name in it that the API server has not judged yet
		forms[i] = form
		if len(form) <= MaxWarning {
			v.Warnings = append(v.Warnings, form)
			return
		}
	}
	last := forms[len(forms)-1][:MaxWarning-3]
	v.Warnings = append(v.Warnings, strings.ToValidUTF8(last, "")+"...")
}

// PrintFields prints fields for an audit annotation: pairs joined by one space, "-" for a value or a list that is
// absent.
func PrintFields(list []Field) string {
	if len(list) == 0 {
		return "-"
	}
	var b strings.Builder
	for i, f := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.Name)
		b.WriteByte('=')
		b.WriteString(orDash(f.Value))
	}
	return b.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// PrintRevision prints a plan's revision for people and annotations.
func PrintRevision(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}
