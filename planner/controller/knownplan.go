package controller

import (
	"reflect"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/plan"
	"ballast/planner/store"
)

// knownPlan is the plan ConfigMap as this leader knows it: what it wrote, what a cycle read, and what the watch saw.
// Cycles, repairs and the watch share it.
type knownPlan struct {
	*Options
	mu       sync.Mutex
	document plan.Document // the newest that is to be enforced, with people's pins and annotations
	judged   bool          // a cycle has compared the plan with the history: before that nothing is enforced
	toldOff  bool          // people were told that enforcement is switched off
	heard    heard
}

// heard is what people's words on the plan ConfigMap were when somebody saw it last: the watch, or who read or wrote it.
// A cycle alone sees them too seldom: whoever deletes the ConfigMap between two of them would undo a freeze, or its end.
type heard struct {
	known   bool
	version uint64 // the object's, which grows
	words   []byte
}

// newest is the newest document that is known.
func (k *knownPlan) newest() plan.Document {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.document
}

// standing is what a document asks to be enforced: its plan or, where that is missing, cannot be read or was turned
// back, the last good one, with the document's pins and annotations in any case.
func (k *knownPlan) standing(d plan.Document) plan.Document {
	if p := k.newest().Plan; p != nil && (d.Plan == nil || d.Plan.Revision < p.Revision) {
		d.Plan = p
	}
	return d
}

// learn takes over what is to be enforced, and answers whether it is news. Nobody may be woken by what is not: a cycle
// reads the plan, and would be followed by the next one at once.
func (k *knownPlan) learn(d plan.Document) bool {
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

// hasJudged reports whether a cycle has compared the plan with the history.
func (k *knownPlan) hasJudged() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.judged
}

// hear takes the words of a plan ConfigMap, unless later ones are known.
func (k *knownPlan) hear(cm *corev1.ConfigMap) { k.hearAfter(cm, 0) }

// hearAfter takes the words of a plan ConfigMap that was read while the last that were heard were of that version. A read that asks etcd is
// never behind what was known when it began: one with a lower version is of an etcd that was restored, whose versions begin again.
func (k *knownPlan) hearAfter(cm *corev1.ConfigMap, last uint64) {
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

// lastHeard is the version of the ConfigMap whose words were heard last.
func (k *knownPlan) lastHeard() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heard.version
}

// switchedOff reports whether the enforcement was switched off since it was asked last. A cycle may have read the plan
// before the watch told: it is closed when both say so.
func (k *knownPlan) switchedOff(breakGlass bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.toldOff
	k.toldOff = breakGlass || was && k.document.BreakGlass
	return breakGlass && !was
}

// judge notes that a cycle has compared the plan with the history.
func (k *knownPlan) judge() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.judged = true
}

// words are the latest of people's that were heard, and whether any were.
func (k *knownPlan) words() (words []byte, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heard.words, k.heard.known
}
