package rebase

import (
	"testing"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/planner/plan"
)

func measured(p *plan.Plan) { p.References = map[string]string{"apps": "120", "events": "33.5"} }

func TestRebaseGolden(t *testing.T) {
	asked, undone := map[string]string{plan.AnnotationRebase: "true"}, map[string]string{plan.AnnotationRebase: "undo"}
	for name, r := range map[string]rebased{
		"asked":            rebasedAs(fixture.StateWith(t, fixture.Steered(measured), "", asked), true),
		"asked-before":     rebasedAs(fixture.StateWith(t, fixture.Steered(measured), "", asked), false),
		"undone":           rebasedAs(fixture.StateWith(t, fixture.Steered(measured), "", undone), true),
		"not-asked":        rebasedAs(fixture.StateWith(t, fixture.Steered(measured), "", nil), true),
		"not-asked-before": rebasedAs(fixture.StateWith(t, fixture.Steered(nil), "", nil), false),
	} {
		t.Run(name, func(t *testing.T) {
			table, json := fixture.Printed(t, r)
			fixture.Golden(t, name, table+"--- json\n"+json)
		})
	}
}

func TestWhateverRebasePrintsIsHarmless(t *testing.T) {
	fixture.Harmless(t, map[string]func() say.Result{"rebased": func() say.Result { return &rebased{} }})
}

// TestRebaseOnARealAPIServer: what the command writes passes the shipped webhook's rule, and nothing is written without a
// person's word, or where there is nothing to measure anew.
func TestRebaseOnARealAPIServer(t *testing.T) {
	s := fixture.StartSite(t)
	ends := func(stdin, want string, args ...string) (out string) {
		t.Helper()
		out, _, failure := fixture.AsPerson(t, fixture.RootOf(NewCommand()), s.Alice, stdin, append([]string{"rebase"}, args...)...)
		if failure != want {
			t.Errorf("%v: it ends with %q, want %q", args, failure, want)
		}
		return out
	}
	s.Plans(t, fixture.Steered(nil), nil)
	s.Writes(t, 0, func() { ends("", errNoReferences.Error(), "--yes") })
	s.Plans(t, fixture.Steered(measured), nil)
	s.Writes(t, 0, func() { ends("n\n", "nothing was changed") })
	s.Writes(t, 1, func() { fixture.Holds(t, ends("y\n", ""), "Asked: the planner takes", "Reference  events 33.5\n") })
	s.Stands(t, map[string]string{plan.AnnotationRebase: "true"})
	s.Writes(t, 0, func() { fixture.Holds(t, ends("", "", "--yes"), "Asked, as before") })
	s.Writes(t, 1, func() {
		fixture.Holds(t, ends("", "", "--yes", "--undo"), "Asked: the planner brings the references of before back")
	})
	s.Stands(t, map[string]string{plan.AnnotationRebase: "undo"})
	s.Writes(t, 1, func() { fixture.Holds(t, ends("", "", "--off"), "Not asked: the references stay") })
	s.Stands(t, nil)
}
