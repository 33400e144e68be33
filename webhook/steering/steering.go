// Package steering reads the annotations by which people steer ballast: what a value comes to, which of them a write
// changes, and what whoever mistyped one is told.
package steering

import (
	"strconv"
	"strings"

	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/people"
	"ballast/planner/printable"
)

// annotation is one by which people steer ballast on one kind of object.
type annotation struct {
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
func onPlan() []annotation {
	return []annotation{
		{bare(plan.AnnotationAcceptDiscovery), readCount(people.MaxAccepted),
			`is passed over; write the number of clusters, as in "12"`},
		{bare(plan.AnnotationCordon), readCordons, `is not all read; write replica=time: "3=2026-11-20T17:00:00Z"`},
		{bare(plan.AnnotationEnforcement), readWord("off", "on"), `is read as on; write "off" to open the break-glass`},
		{bare(plan.AnnotationPaused), readWord("true", "false"), `is read as not paused; write "true" to freeze`},
		{bare(plan.AnnotationRebase), readRebase, `is passed over; write "true" to have loads measured anew, "undo" for what was before`},
		{bare(plan.AnnotationRollback), readCount(people.MaxRollback),
			`is no revision; write a number: ballast rollback lists them`},
		{bare(plan.AnnotationTripped), readSet, ""},
	}
}

// onCluster are those of a cluster Secret. maxReplicas bounds a pin; 0 for none.
func onCluster(maxReplicas int) []annotation {
	highest := "up"
	if maxReplicas > 0 {
		highest = "to " + strconv.Itoa(maxReplicas-1)
	}
	return []annotation{
		{bare(plan.AnnotationPin), readPin(maxReplicas), "is passed over; a pin is a whole number from 0 " + highest},
		onWorkload()[0],
	}
}

// onWorkload are those of the application-controller's workload.
func onWorkload() []annotation {
	optOut := readWord("true", "false")
	return []annotation{{bare(plan.AnnotationUnmanaged), optOut, `is passed over; write "true" to opt out`}}
}

// bare is an annotation's name without the group.
func bare(annotation string) string { return strings.TrimPrefix(annotation, plan.Group+"/") }

// readRebase is what is to become of the references.
func readRebase(value string) meaning {
	if value == string(configmap.RebaseBack) {
		return meaning{value, value, false}
	}
	return readWord(string(configmap.RebaseAnew), "false")(value)
}

// readWord takes one word, to the letter. The other one says what an absent annotation does, and is no mistake.
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
		return meaning{printable.Invalid, "", true}
	}
}

// readCount takes a whole number up to a bound, as the planner does.
func readCount(most int64) func(string) meaning {
	return func(value string) meaning {
		if value == "" {
			return meaning{}
		}
		n, ok := people.ParseAsked(value, most)
		if !ok {
			return meaning{printable.Count(value), "", true}
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
			return meaning{printable.Invalid, "", true}
		case people.BadPin(n, maxReplicas) != "":
			return meaning{printable.Count(value), "", true}
		}
		return meaning{value, value, false}
	}
}

// maxAuditCordons bounds the cordons that one write's audit annotations list.
const maxAuditCordons = 20

// readCordons takes replicas to empty, each until a time, as the planner does. It prints the replicas. An entry that
// cannot be does not keep the others from being read.
func readCordons(value string) meaning {
	cordons, err := people.ParseCordons(value)
	replicas := make([]int, len(cordons))
	for i, c := range cordons {
		replicas[i] = c.Replica
	}
	taken := printReplicas(replicas)
	if err != nil {
		return meaning{printable.Invalid, taken, true}
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
