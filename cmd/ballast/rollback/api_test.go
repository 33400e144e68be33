package rollback

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/plan"
)

func listsPlans(t *testing.T, s *fixture.Site) {
	s.Plans(t, fixture.Steered(nil), nil)
	s.Keeps(t, fixture.Steered(nil), fixture.Wave(16, 1, nil, map[string]int{"dev": 0}), fixture.Revision(14, fixture.Four))
	out, notes := works(t, s.Alice, "", "rollback", "-o", "json")
	var got keptList
	fixture.MustDo(t, json.Unmarshal([]byte(out), &got))
	moves := func(n int) *int { return &n }
	want := keptList{InForce: 17, Hidden: 1, Plans: []keptPlan{
		{Revision: 17, DecidedAt: fixture.Noon, DecidedBy: "planner-0", Reason: "reason 17", Replicas: 3, Moves: moves(0), InForce: true},
		{Revision: 14, DecidedAt: fixture.Noon.Add(-2 * time.Minute), DecidedBy: "planner-0", Reason: "reason 14", Replicas: 4, Moves: moves(2)},
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(keptList{}, keptPlan{})); diff != "" || notes != "" {
		t.Errorf("it notes %q and lists (-want +got):\n%s", notes, diff)
	}
	fixture.Holds(t, fixture.First(works(t, s.Alice, "", "rollback", "--all")), "16 ", "(Moving) reason 16")
	s.Stands(t, nil)
}

func rollsBack(t *testing.T, s *fixture.Site) {
	s.Plans(t, fixture.Steered(nil), nil)
	s.Keeps(t, fixture.Steered(nil), fixture.Revision(14, fixture.Four))
	s.Writes(t, 0, func() {
		fixture.Holds(t, fixture.First(works(t, s.Alice, "", "rollback", "14", "--dry-run")), "From revision 17 back to 14: 2 moves, with 4 replicas instead of 3.", "Nothing was changed.")
		out, notes, failure := run(t, s.Alice, "no\n", "rollback", "14")
		if fixture.Holds(t, notes, "dev       0.02   2      3", "This is API server \"", "Go back from revision 17 to 14? [y/N]"); failure != "nothing was changed" || out != "" {
			t.Errorf("it ends with %q, %q", failure, out)
		}
		if _, _, failure := run(t, s.Alice, "", "rollback", "9", "--yes"); failure != "REVISION: 9 is not kept; choose one of 14" {
			t.Errorf("it ends with %q", failure)
		}
	})
	s.Stands(t, nil)
	s.Writes(t, 1, func() {
		fixture.Holds(t, fixture.First(works(t, s.Alice, "y\n", "rollback", "14")), "The planner begins within its interval")
	})
	s.Stands(t, map[string]string{plan.AnnotationRollback: "14"})
	s.Writes(t, 0, func() {
		var got difference
		out, _ := works(t, s.Alice, "", "rollback", "14", "--yes", "-o", "json")
		fixture.MustDo(t, json.Unmarshal([]byte(out), &got))
		if got.Changed || got.Asked != "14" || got.To != 14 || len(got.Moves) != 2 {
			t.Errorf("asked for again: %s", out)
		}
	})
	fixture.Holds(t, fixture.First(works(t, s.Alice, "", "rollback")), "Going back to revision 14 was asked for")
	s.Writes(t, 1, func() {
		fixture.Holds(t, fixture.First(works(t, s.Alice, "", "rollback", "--off")), "Going back to revision 14 is no longer asked for.")
	})
	s.Stands(t, map[string]string{plan.AnnotationRollback: ""})
	s.Writes(t, 0, func() {
		fixture.Holds(t, fixture.First(works(t, s.Alice, "", "rollback", "--off")), "No rollback was asked for")
	})
	s.Plans(t, fixture.Revision(17, fixture.Four), nil)
	s.Writes(t, 0, func() {
		fixture.Holds(t, fixture.First(works(t, s.Alice, "", "rollback", "14", "--yes")), "Nothing would move")
	})
}

func rollsBackWhatWasSeen(t *testing.T, s *fixture.Site) {
	s.Plans(t, fixture.Steered(nil), nil)
	s.Keeps(t, fixture.Steered(nil), fixture.Revision(14, fixture.Four))
	o := &options{Options: s.Connected(), history: "ballast-history"}
	connected := s.Connected()
	err := o.back(t.Context(), fixture.MustOpen(t, &connected), 14, &fixture.WhenAsked{Happens: func() { s.GoesOn(t, fixture.Revision(18, nil)) }}, io.Discard, io.Discard)
	if err == nil || err.Error() != "the plan became revision 18 while you looked at 17: look again; nothing was changed" {
		t.Errorf("it ends with %v", err)
	}
	if got, asked := s.Stored(t).Annotations[plan.AnnotationRollback]; asked {
		t.Errorf("revision %s is asked for", got)
	}
}

// keepsWhatAnotherAskedFor: who saw no rollback under way replaces none that began meanwhile, and one that they saw.
func keepsWhatAnotherAskedFor(t *testing.T, s *fixture.Site) {
	for before, want := range map[string]string{"": "15", "15": "14"} {
		s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationRollback: before})
		s.Keeps(t, fixture.Steered(nil), fixture.Revision(14, fixture.Four), fixture.Revision(15, fixture.Four))
		o := &options{Options: s.Connected(), history: "ballast-history"}
		connected := s.Connected()
		err := o.back(t.Context(), fixture.MustOpen(t, &connected), 14, &fixture.WhenAsked{Happens: func() { s.Annotates(t, plan.AnnotationRollback, "15") }}, io.Discard, io.Discard)
		refused := err != nil && err.Error() == "somebody asked for revision 15 while you looked: run rollback again to see what would replace that; nothing was changed"
		if got := s.Stored(t).Annotations[plan.AnnotationRollback]; got != want || refused != (before == "") {
			t.Errorf("where %q was asked for before, %q is asked for now, and it ends with %v", before, got, err)
		}
	}
}
