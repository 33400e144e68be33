package people

import (
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// AsWritten is the value that a problem is about, as it stands; empty where it is no scalar, or the name was cut.
func AsWritten(pins string, problem PinProblem) string {
	if problem.Name == "" || len(pins) > MaxPinsBytes {
		return ""
	}
	var doc yamlnode.Node
	if yamlnode.Unmarshal([]byte(pins), &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yamlnode.MappingNode {
		return ""
	}
	pairs := doc.Content[0].Content
	for i := len(pairs) - 2; i >= 0; i -= 2 { // the last one where a name stands twice on a line
		key, value := pairs[i], pairs[i+1]
		if key.Value == problem.Name && (key.Line == problem.Line || value.Line == problem.Line) && value.Kind == yamlnode.ScalarNode {
			return value.Value
		}
	}
	return ""
}

// mistake is a pin that cannot be, wherever its line stands.
type mistake struct{ name, message, line string }

// FirstNew is the first problem of pins that those of before did not have, wherever its line stood; below 0 where there
// is none.
func FirstNew(before string, stood []PinProblem, after string, problems []PinProblem) int {
	old, lines := mistakes(before, stood), linesOf(after)
	return slices.IndexFunc(problems, func(p PinProblem) bool { return !old[mistake{p.Name, p.Message, line(lines, p.Line)}] })
}

// mistakes are those of a text.
func mistakes(text string, problems []PinProblem) map[mistake]bool {
	found, lines := map[mistake]bool{}, linesOf(text)
	for _, p := range problems {
		found[mistake{p.Name, p.Message, line(lines, p.Line)}] = true
	}
	return found
}

// linesOf are the lines of pins that are read at all.
func linesOf(text string) []string {
	if len(text) > MaxPinsBytes {
		return nil
	}
	return strings.Split(text, "\n")
}

func line(lines []string, number int) string {
	if number < 1 || number > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[number-1])
}
