package webhook

import (
	"net/http"
	"strings"

	"ballast/planner/plan/probing"
	"ballast/webhook/decision"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
)

// A probe is a dry-run by the planner: it writes what the webhook has to correct, and nothing is stored. The API server
// keeps connections for later calls, over which a replica answers that no new call could reach. So the webhook closes
// the connection of each probe behind its answer, and says whether the probe was the first call on it: the planner asks
// again until one was.

// isProbe reports whether a review is the planner's probe.
func isProbe(s *inforce.State, rv *review) bool { return rv.dryRun && s.IsPlanner(rv.User) }

// answerProbe closes the connection behind the answer, and says whether it was new.
func answerProbe(w http.ResponseWriter, v *decision.Verdict, fresh bool) {
	w.Header().Set("Connection", "close")
	said := probing.ProbedOnUsed
	if fresh {
		said = probing.ProbedOnNew
	}
	v.Warnings = append(v.Warnings, said)
}

// probePlan puts the answer where a probe of the plan's webhook put its question: nothing else of the planner's writes
// is changed, so that nothing else could show that the webhook is there.
func probePlan(v *decision.Verdict, rv *review) {
	if !rv.dryRun {
		return
	}
	answer, asked := probing.Answer(rv.object.Field("metadata").Field("annotations").Field(probing.AnnotationProbe).Text(objects.MaxWord))
	if !asked {
		return
	}
	path := "/metadata/annotations/" + strings.ReplaceAll(probing.AnnotationProbe, "/", "~1")
	v.Patches = append(v.Patches, decision.Op{Op: "replace", Path: path, Value: answer})
}
