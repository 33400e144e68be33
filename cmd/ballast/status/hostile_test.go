package status

import (
	"bytes"
	"strings"
	"testing"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/plan"
)

// The same through every step of a command, from a cluster whose Secrets, annotations, Lease and pins are hostile.
func TestStatusOfAHostileFleet(t *testing.T) {
	w := fixture.QuietWorld()
	w.People = map[string]string{plan.AnnotationDecidedAt: "\x1b[31mat", plan.AnnotationDecidedBy: "\x1b]0;by\x07", plan.AnnotationReason: "\x1b[2Jreason\nNothing differs from the plan.",
		plan.AnnotationTripped: "\u202epirt", plan.AnnotationCordon: "\x1b[5m=\n", plan.AnnotationRollback: "9\nx", plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "http://u:" + fixture.SecretText + "@h"}
	holder := "\x1b[31mleader"
	w.Lease.Spec.HolderIdentity = &holder
	w.Pins = "\"\\e[1A\\e[2Kspoof\": x\n"
	s := look(t, w)
	var table bytes.Buffer
	fixture.MustDo(t, s.WriteTable(&table))
	fixture.CheckOutput(t, "the table", table.String())
	for _, want := range []string{
		`Plan revision 17, Enforce, decided \u001b[31mat by \u001b]0;by\u0007` + "\n" + `  \u001b[2Jreason Nothing differs from the plan.` + "\n",
		`Leader   \u001b[31mleader, renewed 3s ago` + "\n",
		`Tripped  ballast stopped itself: \u202epirt` + "\n",
		"Paused   nothing new is decided; enforcement goes on (http://***@h)\n",
		"Rollback to revision 9 x, as a person asked\n",
		`Pin      pins line 1: \u001b[1A\u001b[2Kspoof: a replica is a whole number, like 3` + "\n",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is missing in\n%s", want, table.String())
		}
	}
}
