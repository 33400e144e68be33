package people

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/printable"
)

// errOwnForm says that data.pins is written in a way that has no line for each pin.
var errOwnForm = errors.New("data.pins is not written as one `cluster-secret: replica` a line; write it so, or add the pins by hand")

// AddPins writes pins into data.pins and leaves every other character as it stands: comments and order survive. A pin
// that stands already gets its new replica on its line; the others follow at the end, sorted by name. Pins in braces
// become lines. What comes of it is read back: a text that says anything else is an error.
func AddPins(text string, add plan.Pins) (string, error) {
	root, problem := pinsNode(text)
	if problem != nil {
		return "", fmt.Errorf("adding pins: %w", *problem)
	}
	if strings.ContainsAny(strings.ReplaceAll(text, "\r\n", "\n"), "\r\u0085\u2028\u2029") {
		return "", fmt.Errorf("adding pins: %w", errOwnForm) // to YAML each ends a line, and to nobody else
	}
	edited, root, err := asLines(text, root)
	if err != nil {
		return "", fmt.Errorf("adding pins: %w", err)
	}
	lines := strings.SplitAfter(edited, "\n")
	done, err := replacePins(lines, root, add)
	if err != nil {
		return "", fmt.Errorf("adding pins: %w", err)
	}
	edited = appendPins(lines, root, add, done)
	if !says(edited, text, add) {
		return "", fmt.Errorf("adding pins: %w", errOwnForm)
	}
	return edited, nil
}

// says reports whether the edited text has the pins that the text had, with those that were added over them.
func says(edited, text string, add plan.Pins) bool {
	want, _ := ParsePins(text, 0)
	maps.Copy(want, add)
	got, _ := ParsePins(edited, 0)
	return maps.Equal(want, got)
}

// asLines is the text with a line for each pin, and its mapping. Of a text without a mapping (empty, `null`, `~`,
// comments) the comments stay.
func asLines(text string, root *yamlnode.Node) (string, *yamlnode.Node, error) {
	switch {
	case root == nil:
		return onlyComments(text), nil, nil
	case root.Style&yamlnode.FlowStyle == 0:
		return text, root, nil
	}
	text, err := unflow(text, root)
	if err != nil {
		return "", nil, err
	}
	root, problem := pinsNode(text)
	if problem != nil {
		return "", nil, errOwnForm
	}
	return text, root, nil
}

// onlyComments drops every line that is no comment, and what stands before one on its line.
func onlyComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if at := commentIn(line); at >= 0 {
			b.WriteString(line[at:])
		} else if strings.TrimSpace(line) == "" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// commentIn is where a line's comment begins, in bytes; -1 without one. A # within quotes begins none.
func commentIn(line string) int {
	var quote byte
	for i := range len(line) {
		switch c := line[i]; {
		case quote == '"' && c == '"' && line[i-1] == '\\':
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case (c == '"' || c == '\'') && (i == 0 || strings.IndexByte(" \t{,:", line[i-1]) >= 0):
			quote = c
		case c == '#' && (i == 0 || strings.IndexByte(" \t{},", line[i-1]) >= 0):
			return i
		}
	}
	return -1
}

// unflow turns `{a: 1, b: 2}` into lines, since a line is what a pin is added to. A comment stays with the pin before
// it on its line, and one that has a line of its own before the next pin.
func unflow(text string, root *yamlnode.Node) (string, error) {
	var b strings.Builder
	lines, at := strings.Split(text, "\n"), 0
	comments := func(until int) { // those that stand above a line
		for ; at < min(until, len(lines)); at++ {
			if from := commentIn(lines[at]); from >= 0 {
				b.WriteString(lines[at][from:] + "\n")
			}
		}
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yamlnode.ScalarNode || value.Kind != yamlnode.ScalarNode {
			return "", errOwnForm
		}
		comments(key.Line - 1)
		fmt.Fprintf(&b, "%s: %s", codec.Scalar(key.Value), plainValue(value.Value))
		last := i+3 >= len(root.Content) || root.Content[i+2].Line > value.Line
		if last && value.Line == at+1 {
			if from := commentIn(lines[at]); from >= 0 {
				b.WriteString(" " + lines[at][from:])
			}
			at++
		}
		b.WriteString("\n")
	}
	comments(len(lines))
	return b.String(), nil
}

// plainValue writes a replica as a number, and what is none so that it still says the same.
func plainValue(v string) string {
	if n, err := strconv.Atoi(v); err == nil && strconv.Itoa(n) == v {
		return v
	}
	return codec.Scalar(v)
}

// replacePins gives the pins that stand already their new replicas, and answers which it found.
func replacePins(lines []string, root *yamlnode.Node, add plan.Pins) (done plan.Pins, err error) {
	done = plan.Pins{}
	if root == nil {
		return done, nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		replica, wanted := add[key.Value]
		if _, twice := done[key.Value]; !wanted || twice {
			continue
		}
		if key.Line != value.Line || value.Kind != yamlnode.ScalarNode {
			return nil, PinProblem{key.Line, printable.Short(key.Value), "a replica is a whole number, like 3"}
		}
		if !replaceScalar(lines, key.Line-1, value, replica) {
			return nil, errOwnForm
		}
		done[key.Value] = replica
	}
	return done, nil
}

// replaceScalar swaps the value on its line; columns count from 1 in characters, quotes and comments around it stay.
// Where YAML counted otherwise, it finds none.
func replaceScalar(lines []string, line int, value *yamlnode.Node, replica int) bool {
	if line >= len(lines) {
		return false
	}
	runes := []rune(lines[line])
	start := value.Column - 1
	if start > len(runes) {
		return false
	}
	end := start
	for end < len(runes) && !strings.ContainsRune(" \t\r\n#", runes[end]) {
		end++
	}
	lines[line] = string(runes[:start]) + strconv.Itoa(replica) + string(runes[end:])
	return true
}

// appendPins adds the pins that do not stand yet at the end of the document, which `...` or another one's `---` may
// mark.
func appendPins(lines []string, root *yamlnode.Node, add, done plan.Pins) string {
	indent, end := "", len(lines)
	if root != nil && len(root.Content) > 0 {
		indent = strings.Repeat(" ", root.Content[0].Column-1)
		from := min(root.Content[0].Line, len(lines))
		if marker := slices.IndexFunc(lines[from:], endsDocument); marker >= 0 {
			end = from + marker
		}
	}
	text := strings.Join(lines[:end], "")
	for _, name := range slices.Sorted(maps.Keys(add)) {
		if _, ok := done[name]; ok {
			continue
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += indent + codec.Scalar(name) + ": " + strconv.Itoa(add[name]) + "\n"
	}
	return text + strings.Join(lines[end:], "")
}
