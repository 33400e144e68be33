// Package people is what people write in the plan ConfigMap and in its annotations: pins, cordons, numbers. It reads
// them within bounds, says what is wrong and how to mend it, and adds pins to what stands.
package people

import (
	"cmp"
	"fmt"

	yamlnode "go.yaml.in/yaml/v3"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/printable"
)

// MaxPinsBytes bounds data.pins: 4,000 pins with names of 60 characters. The YAML library takes some 80 bytes for each.
const MaxPinsBytes = 256 << 10

// ParsePins reads data.pins. Pins that cannot be are left out and reported; a pin named twice counts as its first line.
// maxReplicas bounds the replicas; 0 judges no upper bound.
func ParsePins(text string, maxReplicas int) (plan.Pins, []PinProblem) {
	root, problem := pinsNode(text)
	if problem != nil {
		return plan.Pins{}, []PinProblem{*problem}
	}
	pins := plan.Pins{}
	var problems []PinProblem
	if more := moreDocuments(text, root); more != nil {
		problems = append(problems, *more)
	}
	if root == nil {
		return pins, problems
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if _, twice := pins[key.Value]; twice {
			problems = append(problems, PinProblem{key.Line, printable.Short(key.Value),
				"is pinned twice: delete one of the lines"})
			continue
		}
		replica, message := pinValue(key, value, maxReplicas)
		if message != "" {
			problems = append(problems, PinProblem{value.Line, printable.Short(key.Value), message})
			continue
		}
		pins[key.Value] = replica
	}
	return pins, problems
}

// pinsNode is the mapping under data.pins; nil when there is none.
func pinsNode(text string) (*yamlnode.Node, *PinProblem) {
	if len(text) > MaxPinsBytes {
		return nil, &PinProblem{Line: 1, Message: fmt.Sprintf("has %d KiB, and at most %d are read: pin fewer clusters",
			(len(text)+1023)>>10, MaxPinsBytes>>10)}
	}
	if codec.ManyDirectives(text) {
		return nil, &PinProblem{Line: 1, Message: "has many directives (lines that begin with %): write one `cluster-secret: replica` a line"}
	}
	var doc yamlnode.Node
	if err := yamlnode.Unmarshal([]byte(text), &doc); err != nil {
		return nil, &PinProblem{Line: 1, Message: "is not YAML; write one `cluster-secret: replica` a line"}
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind == yamlnode.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yamlnode.MappingNode {
		return nil, &PinProblem{Line: root.Line, Message: "is not a mapping; write one `cluster-secret: replica` a line"}
	}
	return root, nil
}

func pinValue(key, value *yamlnode.Node, maxReplicas int) (int, string) {
	if key.Kind != yamlnode.ScalarNode || key.Value == "" {
		return 0, "a pin's key is the name of a cluster Secret"
	}
	if key.Anchor != "" || value.Anchor != "" || value.Kind == yamlnode.AliasNode {
		return 0, "has an anchor or an alias: write the number out"
	}
	replica, ok := plan.ParsePin(value.Value)
	if value.Kind != yamlnode.ScalarNode || !ok {
		return 0, "a replica is a whole number, like 3"
	}
	if why := BadPin(replica, maxReplicas); why != "" {
		return 0, why
	}
	return replica, ""
}

// Nearest is the name in names that is most like name, by edit distance and then by name; empty when none is within a
// third of its length.
func Nearest(name string, names []string) string {
	best, distance := "", len(name)/3+1
	for _, n := range names {
		if d := editDistance(name, n, distance); d < distance || d == distance && best != "" && cmp.Less(n, best) {
			best, distance = n, d
		}
	}
	return best
}

// editDistance is Levenshtein's where that is at most limit, and more than limit where it is not: names come from
// people, lists from fleets of thousands. What the names begin and end with in common, as a fleet's do, costs a
// comparison; of the rest only the cells that can still be within the limit are filled, and none after a row without
// one.
func editDistance(a, b string, limit int) int {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if max(len(a)-len(b), len(b)-len(a)) > limit {
		return limit + 1
	}
	var cells [256]int // a Secret's name has at most 253 characters: no search leaves garbage
	row := cells[:]
	if len(b) >= len(cells) {
		row = make([]int, len(b)+1)
	}
	row = row[:len(b)+1]
	for j := range row {
		row[j] = min(j, limit+1)
	}
	for i := range len(a) {
		if !nextRow(row, a[i], b, i, limit) {
			return limit + 1
		}
	}
	return row[len(b)]
}

// nextRow makes the row of edit distances behind i characters the one behind i+1, of which c is the last, and reports
// whether anything in it is within the limit.
func nextRow(row []int, c byte, b string, i, limit int) bool {
	from, to := max(i-limit, 0), min(i+limit+1, len(b)) // cells further from the diagonal are above the limit
	diagonal := row[from]
	row[from] = limit + 1
	if from == 0 {
		row[0] = min(i+1, limit+1)
	}
	least := row[from]
	for j := from; j < to; j++ {
		change := diagonal
		if c != b[j] {
			change++
		}
		diagonal = row[j+1]
		row[j+1] = min(change, row[j]+1, row[j+1]+1, limit+1)
		least = min(least, row[j+1])
	}
	return least <= limit
}
