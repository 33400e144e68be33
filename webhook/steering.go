package webhook

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"ballast/planner/plan"
	"ballast/webhook/inforce"
	"ballast/webhook/rawjson"
)

// steering is an annotation by which people steer ballast on one kind of object.
type steering struct {
	name string // behind the group
	read func(value string) meaning
	mend string // what to write instead, behind the value in a warning
}

// meaning is what an annotation's value comes to.
type meaning struct {
	asked   string // as it is printed: of a closed form, or "invalid", for people paste tokens
	taken   string // what ballast takes it for; empty for nothing
	mistake bool   // the writer meant something that ballast does not read
}

// onPlan are those of the plan ConfigMap, by name.
func onPlan() []steering {
	return []steering{
		{bare(plan.AnnotationAcceptDiscovery), readCount(plan.MaxAccepted), `is passed over; write the number of clusters, as in "12"`},
		{bare(plan.AnnotationCordon), readCordons, `is not all read; write replica=time: "3=2026-11-20T17:00:00Z"`},
		{bare(plan.AnnotationEnforcement), readWord("off", "on"), `is read as on; write "off" to open the break-glass`},
		{bare(plan.AnnotationPaused), readWord("true", "false"), `is read as not paused; write "true" to freeze`},
		{bare(plan.AnnotationRebase), readRebase, `is passed over; write "true" to have loads measured anew, "undo" for what was before`},
		{bare(plan.AnnotationRollback), readCount(plan.MaxRollback), `is no revision; write a number: ballast rollback lists them`},
		{bare(plan.AnnotationTripped), readSet, ""},
	}
}

// onCluster are those of a cluster Secret. maxReplicas bounds a pin; 0 for none.
func onCluster(maxReplicas int) []steering {
	highest := "up"
	if maxReplicas > 0 {
		highest = "to " + strconv.Itoa(maxReplicas-1)
	}
	return []steering{
		{bare(plan.AnnotationPin), readPin(maxReplicas), "is passed over; a pin is a whole number from 0 " + highest},
		onWorkload()[0],
	}
}

// onWorkload are those of the application-controller's workload.
func onWorkload() []steering {
	optOut := readWord("true", "false")
	return []steering{{bare(plan.AnnotationUnmanaged), optOut, `is passed over; write "true" to opt out`}}
}

// bare is an annotation's name without the group.
func bare(annotation string) string { return strings.TrimPrefix(annotation, plan.Group+"/") }

// readWord takes one word, to the letter. The other one says what an absent annotation does, and is no mistake.
// readRebase is what is to become of the references.
func readRebase(value string) meaning {
	if value == string(plan.RebaseBack) {
		return meaning{value, value, false}
	}
	return readWord(string(plan.RebaseAnew), "false")(value)
}

func readWord(word, other string) func(string) meaning {
	return func(value string) meaning {
		switch value {
		case "":
			return meaning{}
		case word:
			return meaning{word, word, false}
		case other:
			return meaning{asked: other}
		}
		return meaning{invalid, "", true}
	}
}

// readCount takes a whole number up to a bound, as the planner does.
func readCount(most int64) func(string) meaning {
	return func(value string) meaning {
		if value == "" {
			return meaning{}
		}
		n, ok := plan.ParseAsked(value, most)
		if !ok {
			return meaning{printableCount(value), "", true}
		}
		printed := strconv.FormatInt(n, 10)
		return meaning{printed, printed, false}
	}
}

// readPin takes the pin of one Secret, to the letter.
func readPin(maxReplicas int) func(string) meaning {
	return func(value string) meaning {
		n, ok := plan.ParsePin(value)
		switch {
		case value == "":
			return meaning{}
		case !ok:
			return meaning{invalid, "", true}
		case plan.BadPin(n, maxReplicas) != "":
			return meaning{printableCount(value), "", true}
		}
		return meaning{value, value, false}
	}
}

// maxAuditCordons bounds the cordons that one write's audit annotations list.
const maxAuditCordons = 20

// readCordons takes replicas to empty, each until a time, as the planner does. It prints the replicas. An entry that
// cannot be does not keep the others from being read.
func readCordons(value string) meaning {
	cordons, err := plan.ParseCordons(value)
	replicas := make([]int, len(cordons))
	for i, c := range cordons {
		replicas[i] = c.Replica
	}
	taken := printReplicas(replicas)
	if err != nil {
		return meaning{invalid, taken, true}
	}
	return meaning{taken, taken, false}
}

// printReplicas prints the first few, and how many more there are: "1,3" or "0,1,2,+17".
func printReplicas(replicas []int) string {
	var list []string
	for _, n := range replicas[:min(len(replicas), maxAuditCordons)] {
		list = append(list, strconv.Itoa(n))
	}
	if more := len(replicas) - len(list); more > 0 {
		list = append(list, "+"+strconv.Itoa(more))
	}
	return strings.Join(list, ",")
}

// readSet is of an annotation whose text is for people: that it is there counts, and what it says is not printed.
func readSet(value string) meaning {
	if value == "" {
		return meaning{}
	}
	return meaning{"set", "set", false}
}

// The API server takes annotations whose names have two parts of 253 and 63 characters, and 256 KiB of all of them.
const (
	maxNote  = 253 + len("/") + 63
	maxNotes = 256 << 10
)

// What is read of the annotations of ballast's group. An object has a dozen, and the API server sends none twice and
// none with escapes: of those that it sends, each that ballast knows is read, behind however many others. What is not
// read is looked at and not copied.
const (
	maxKnownNotes   = 64          // with those that a body has twice
	maxUnknownNotes = maxWarnings // kept for a warning, of which there are few
	maxEscapedNotes = 64          // keys with escapes, of whatever group
)

// readNotes are the annotations of ballast's group, whatever else an object has. All of an object's annotations have no more than
// maxNotes together in the API server, too.
func readNotes(annotations rawjson.Node) map[string]string {
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
	for _, name := range append(inforce.PlannersAnnotations(),
		plan.AnnotationAcceptDiscovery, plan.AnnotationCordon, plan.AnnotationEnforcement, plan.AnnotationPaused,
		plan.AnnotationPausedBy, plan.AnnotationPausedReason, plan.AnnotationPin, plan.AnnotationRebase, plan.AnnotationRollback,
		plan.AnnotationTripped, plan.AnnotationUnmanaged) {
		names[name] = true
	}
	return names
})
