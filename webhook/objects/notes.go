package objects

import (
	"bytes"
	"strings"
	"sync"

	"ballast/planner/plan"
	"ballast/webhook/rawjson"
)

// The API server takes annotations whose names have two parts of 253 and 63 characters, and 256 KiB of all of them.
const (
	maxNote  = 253 + len("/") + 63
	maxNotes = 256 << 10
)

// What is read of the annotations of ballast's group. An object has a dozen, and the API server sends none twice and
// none with escapes: of those that it sends, each that ballast knows is read, behind however many others. What is not
// read is looked at and not copied.
const (
	maxKnownNotes   = 64 // with those that a body has twice
	maxUnknownNotes = 5  // kept for a warning, of which there are few
	maxEscapedNotes = 64 // keys with escapes, of whatever group
)

// Notes are the annotations of ballast's group, whatever else an object has. All of an object's annotations have no
// more than maxNotes together in the API server, too.
func Notes(annotations rawjson.Node) map[string]string {
	var notes map[string]string
	var seen noteCounts
	room := maxNotes
	for key, value := range annotations.Members {
		if value.Absent() {
			continue
		}
		name, ok := seen.name(key)
		if !ok {
			continue
		}
		if notes == nil {
			notes = map[string]string{}
		}
		notes[name] = value.Legible(room)
		room -= len(notes[name])
	}
	return notes
}

// noteCounts are how many keys of one object were read.
type noteCounts struct{ known, unknown, escaped int }

// name is the name of an annotation of ballast's group that is read.
func (c *noteCounts) name(key rawjson.Node) (string, bool) {
	const begins = `"` + plan.Group + "/"
	if bytes.IndexByte(key, '\\') >= 0 {
		if c.escaped++; c.escaped > maxEscapedNotes {
			return "", false
		}
		name := key.Text(maxNote)
		return name, strings.HasPrefix(name, begins[1:]) && c.reads([]byte(name))
	}
	if !bytes.HasPrefix(key, []byte(begins)) || !c.reads(key[1:len(key)-1]) {
		return "", false
	}
	return key.Text(maxNote), true
}

// reads counts a name of ballast's group, and reports whether it is read.
func (c *noteCounts) reads(name []byte) bool {
	if known()[string(name)] {
		c.known++
		return c.known <= maxKnownNotes
	}
	c.unknown++
	return c.unknown <= maxUnknownNotes
}

// known are all annotations that ballast reads or writes on objects that it is asked about. The set is made once, since
// whoever reaches the port asks it of as many names as it likes.
var known = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, name := range append(plan.PlannersAnnotations(),
		plan.AnnotationAcceptDiscovery, plan.AnnotationCordon, plan.AnnotationEnforcement, plan.AnnotationPaused,
		plan.AnnotationPausedBy, plan.AnnotationPausedReason, plan.AnnotationPin, plan.AnnotationRebase,
		plan.AnnotationRollback,
		plan.AnnotationTripped, plan.AnnotationUnmanaged) {
		names[name] = true
	}
	return names
})
