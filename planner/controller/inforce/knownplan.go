// Package inforce is the plan ConfigMap as this leader knows it, and whether a plan that was read is in force.
package inforce

import (
	"errors"
	"reflect"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/belief"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/store"
)

// Known is the plan ConfigMap as this leader knows it: what it wrote, what a cycle read, and what the watch saw.
// Cycles, repairs and the watch share it.
type Known struct {
	*wiring.Options
	mu       sync.Mutex
	document configmap.Document // the newest that is to be enforced, with people's pins and annotations
	judged   bool               // a cycle has compared the plan with the history: before that nothing is enforced
	toldOff  bool               // people were told that enforcement is switched off
	heard    heard
}

// heard is what people's words on the plan ConfigMap were when somebody saw it last: the watch, or who read or wrote
// it. A cycle alone sees them too seldom: whoever deletes the ConfigMap between two of them would undo a freeze, or its
// end.
type heard struct {
	known   bool
	version uint64 // the object's, which grows
	words   []byte
}

// Newest is the newest document that is known.
func (k *Known) Newest() configmap.Document {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.document
}

// Standing is what a document asks to be enforced: its plan or, where that is missing, cannot be read or was turned
// back, the last good one, with the document's pins and annotations in any case.
func (k *Known) Standing(d configmap.Document) configmap.Document {
	if p := k.Newest().Plan; p != nil && (d.Plan == nil || d.Plan.Revision < p.Revision) {
		d.Plan = p
	}
	return d
}

// SetEnforced takes over what is to be enforced, and answers whether it is news. Nobody may be woken by what is not: a cycle
// reads the plan, and would be followed by the next one at once.
func (k *Known) SetEnforced(d configmap.Document) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if reflect.DeepEqual(k.document, d) {
		return false
	}
	k.document = d
	if d.Plan != nil {
		k.Metrics.ObservePlan(*d.Plan)
	}
	return true
}

// HasJudged reports whether a cycle has compared the plan with the history.
func (k *Known) HasJudged() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.judged
}

// RecordUserFields takes what people wrote into a plan ConfigMap, unless later ones are known.
func (k *Known) RecordUserFields(cm *corev1.ConfigMap) { k.HearAfter(cm, 0) }

// HearAfter takes the words of a plan ConfigMap that was read while the last that were heard were of that version. A
// read that asks etcd is never behind what was known when it began: one with a lower version is of an etcd that was
// restored, whose versions begin again.
func (k *Known) HearAfter(cm *corev1.ConfigMap, last uint64) {
	words, err := store.Words(cm)
	if err != nil {
		k.Log.Error(err, "what people wrote into the plan ConfigMap is not kept")
		return
	}
	version, _ := strconv.ParseUint(cm.ResourceVersion, 10, 64)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.heard.known || version >= k.heard.version || k.heard.version == last {
		k.heard = heard{true, version, words}
	}
}

// LastHeard is the version of the ConfigMap whose words were heard last.
func (k *Known) LastHeard() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heard.version
}

// SwitchedOff reports whether the enforcement was switched off since it was asked last. A cycle may have read the plan
// before the watch told: it is closed when both say so.
func (k *Known) SwitchedOff(breakGlass bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.toldOff
	k.toldOff = breakGlass || was && k.document.BreakGlass
	return breakGlass && !was
}

// MarkJudged notes that a cycle has compared the plan with the history.
func (k *Known) MarkJudged() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.judged = true
}

// Words are the latest of people's that were heard, and whether any were.
func (k *Known) Words() (words []byte, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heard.words, k.heard.known
}

// Judge says of a plan that was read whether it is in force, by the newest that is known: one of a lower revision is a
// backup that somebody restored, and one that cannot be read is none. Then the newest is put back, and fault says why.
func Judge(doc configmap.Document, newest *plan.Plan) (inForce, last *plan.Plan, fault string) {
	inForce, last = doc.Plan, nil
	if older := doc.Plan != nil && newest != nil && doc.Plan.Revision < newest.Revision; doc.Plan == nil || older {
		inForce, last = nil, newest
	}
	return inForce, last, planFault(doc, inForce)
}

// planFault says what is wrong with the plan that was read; empty where it is in force, or there is none.
func planFault(doc configmap.Document, inForce *plan.Plan) string {
	switch {
	case errors.Is(doc.PlanErr, store.ErrForeign):
		return belief.PlanForeign
	case doc.PlanErr != nil:
		return belief.PlanBroken
	case doc.Plan != nil && inForce == nil:
		return belief.PlanOlder
	}
	return ""
}
