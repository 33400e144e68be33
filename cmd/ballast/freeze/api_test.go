package freeze

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/steer"
	"ballast/planner/plan"
)

func freezes(t *testing.T, s *fixture.Site) {
	s.Plans(t, fixture.Steered(nil), nil)
	s.Writes(t, 1, func() {
		out, _ := works(t, s.Alice, "", "freeze", "--reason", "a sale")
		fixture.Holds(t, out, "Frozen: the planner decides nothing by itself", "By         alice\n", "Reason     a sale\n", "revision 17 goes on being enforced")
	})
	s.Stands(t, map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "a sale", plan.AnnotationPausedBy: "alice"})
	s.Writes(t, 1, func() {
		out, _ := works(t, s.Alice, "", "freeze", "--off", "-o", "json")
		var got frozen
		fixture.MustDo(t, json.Unmarshal([]byte(out), &got))
		if diff := cmp.Diff(frozen{Revision: 17, Mode: plan.Enforce, Changed: true}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	s.Stands(t, nil)
	s.Writes(t, 0, func() { works(t, s.Alice, "", "freeze", "--off") })
}

func leavesAFreeze(t *testing.T, s *fixture.Site) {
	bobs := map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "a migration", plan.AnnotationPausedBy: "bob"}
	s.Plans(t, fixture.Steered(nil), bobs)
	s.Writes(t, 0, func() {
		out, _ := works(t, s.Alice, "", "freeze")
		fixture.Holds(t, out, "Frozen, as before", "bob", "a migration")
	})
	s.Stands(t, bobs)
	s.Writes(t, 1, func() { works(t, s.Alice, "", "freeze", "--reason", "a sale, too") })
	s.Stands(t, map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "a sale, too", plan.AnnotationPausedBy: "alice"})
	s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: steer.FrozenByUninstall}) // which goes with it
	s.Writes(t, 1, func() { works(t, s.Alice, "", "freeze") })
	s.Stands(t, map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "alice", plan.AnnotationPausedReason: ""})
	s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationPaused: "yes", plan.AnnotationPausedBy: "bob"}) // which freezes nothing
	works(t, s.Alice, "", "freeze")
	s.Stands(t, map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "alice"})
}

func resumes(t *testing.T, s *fixture.Site) {
	stopped := map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "bob", plan.AnnotationTripped: `cluster "dev" has no owner`}
	s.Plans(t, fixture.Steered(nil), stopped)
	s.Writes(t, 0, func() {
		out, _, failure := run(t, s.Alice, "n\n", "resume")
		if fixture.Holds(t, out, `ballast stopped itself: cluster "dev" has no owner`, "bob froze it beside\n", "end the freeze, too", "[y/N]"); failure != "nothing was changed" {
			t.Errorf("it ends with %q", failure)
		}
	})
	s.Writes(t, 1, func() { // a freeze leaves the trip
		fixture.Holds(t, fixture.First(works(t, s.Alice, "", "freeze", "--reason", "x", "-o", "json")), `"tripped": "cluster \"dev\" has no owner"`)
	})
	s.Writes(t, 1, func() {
		out, _ := works(t, s.Alice, "y\n", "resume")
		where, rest, _ := strings.Cut(out, "\n") // which API server is another one in each test
		if fixture.Golden(t, "resumed-after-a-trip", rest); !strings.HasPrefix(where, "This is API server \"") {
			t.Errorf("it begins with %q", where)
		}
	})
	s.Stands(t, map[string]string{plan.AnnotationPaused: "", plan.AnnotationPausedBy: "", plan.AnnotationTripped: ""})
	s.Plans(t, fixture.Steered(nil), stopped)
	s.Writes(t, 1, func() { works(t, s.Alice, "", "resume", "--yes") })
	s.Stands(t, map[string]string{plan.AnnotationPaused: "", plan.AnnotationPausedBy: "", plan.AnnotationTripped: ""})
	s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationPaused: "true"})
	s.Writes(t, 0, func() { // a freeze alone is somebody's, too
		out, _, failure := run(t, s.Alice, "", "resume")
		if fixture.Holds(t, out, "somebody froze it\n", "End the freeze and let it decide again? [y/N]"); failure != "nothing was changed" {
			t.Errorf("it ends with %q", failure)
		}
	})
	s.Writes(t, 1, func() { works(t, s.Alice, "", "resume", "--yes") })
	s.Stands(t, map[string]string{plan.AnnotationPaused: ""})
	s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "bob", plan.AnnotationPausedReason: "a sale"})
	out, _ := works(t, s.Alice, "y\n", "resume")
	fixture.Holds(t, out, "bob froze it: a sale\n", "Not frozen")
	s.Stands(t, map[string]string{plan.AnnotationPaused: "", plan.AnnotationPausedBy: "", plan.AnnotationPausedReason: ""})
	s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "alice"})
	s.Writes(t, 1, func() { works(t, s.Alice, "", "resume") }) // her own
	s.Writes(t, 0, func() { works(t, s.Alice, "", "resume") }) // nothing to end, and nothing to ask
}

func clearsNoNewTrip(t *testing.T, s *fixture.Site) {
	s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationTripped: "a cluster has no owner"})
	o := &options{Options: s.Connected()}
	err := o.resume(t.Context(), &fixture.WhenAsked{Happens: func() { s.Annotates(t, plan.AnnotationTripped, "a pod was killed for its memory") }}, io.Discard)
	if !errors.Is(err, errTrippedAnew) {
		t.Errorf("got %v, want %v", err, errTrippedAnew)
	}
	s.Stands(t, map[string]string{plan.AnnotationTripped: "a pod was killed for its memory"})
}

// liftsNoNewFreeze: who looks at a trip has not seen the freeze that came while they were asked.
func liftsNoNewFreeze(t *testing.T, s *fixture.Site) {
	s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationTripped: "a cluster has no owner"})
	o := &options{Options: s.Connected()}
	err := o.resume(t.Context(), &fixture.WhenAsked{Happens: func() { s.Annotates(t, plan.AnnotationPaused, "true") }}, io.Discard)
	if !errors.Is(err, errFrozenAnew) {
		t.Errorf("got %v, want %v", err, errFrozenAnew)
	}
	s.Stands(t, map[string]string{plan.AnnotationTripped: "a cluster has no owner", plan.AnnotationPaused: "true"})
	s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "bob"})
	err = o.resume(t.Context(), &fixture.WhenAsked{Happens: func() { s.Annotates(t, plan.AnnotationPausedBy, "carol") }}, io.Discard)
	if !errors.Is(err, errFrozenAnew) {
		t.Errorf("over another's freeze: got %v, want %v", err, errFrozenAnew)
	}
	s.Plans(t, fixture.Steered(nil), map[string]string{plan.AnnotationTripped: "a cluster has no owner", plan.AnnotationPaused: "true"})
	o.yes = true
	if err := o.resume(t.Context(), &fixture.WhenAsked{}, io.Discard); err != nil {
		t.Error(err)
	}
	s.Stands(t, map[string]string{plan.AnnotationTripped: "", plan.AnnotationPaused: ""})
}
