package plan

import "strings"

// AnnotationProbe is how the planner asks whether the plan's webhook answers: it puts a question there, by a dry-run of
// which nothing is stored, and the webhook puts the answer in its place.
const AnnotationProbe = Group + "/probe"

// What a question and its answer begin with. They differ, so that a second pass over the answer changes nothing.
const (
	probeQuestion = "asked-"
	probeAnswer   = "answered-"
)

// ProbeQuestion is the question of a probe. The nonce tells it from an older one.
func ProbeQuestion(nonce string) string { return probeQuestion + nonce }

// ProbeAnswer is the answer to a question, false for what is none.
func ProbeAnswer(question string) (string, bool) {
	nonce, asked := strings.CutPrefix(question, probeQuestion)
	if !asked || nonce == "" || len(nonce) > maxNonce {
		return "", false
	}
	return probeAnswer + Digest(nonce), true
}

// maxNonce bounds what is answered to.
const maxNonce = 64

// The warnings by which a webhook says whether a probe came on a connection that was dialled for it. The API server
// keeps connections for later calls: over those a webhook answers that nobody can reach any more.
const (
	ProbedOnNew  = "ballast: the probe came on a new connection"
	ProbedOnUsed = "ballast: the probe came on a connection that was used before"
)
