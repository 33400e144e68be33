package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/plan"
)

const (
	maxBytes = 1 << 20  // above any file that fits a ConfigMap
	maxPaths = 16 << 20 // the paths of all values, by which mistakes are told: what people nest takes less than maxBytes
)

// Check judges what this package knows nothing of, such as whether a phase can parse its queries.
type Check func(PlannerConfig) field.ErrorList

// Parse reads a configuration file over the defaults. The error lists every mistake, a hundred at most, with its path,
// line and mend, those of the checks too; it is an aggregate of *field.Error where the text is YAML at all.
func Parse(data []byte, checks ...Check) (PlannerConfig, error) {
	root, err := document(data)
	if err != nil {
		return PlannerConfig{}, err
	}
	c := Default()
	c.APIVersion, c.Kind = "", "" // only a file that says what it is can be read by the next version
	d := newDecoder()
	d.value(root, reflect.ValueOf(&c).Elem(), nil)
	found := c.Validate()
	for _, check := range checks {
		found = append(found, check(c)...)
	}
	if errs := d.mistakes(found); len(errs) > 0 {
		return PlannerConfig{}, errs.ToAggregate()
	}
	return c, nil
}

// wholeFile is how the empty path prints.
const wholeFile = "<nil>"

// mistakes adds what validation found, each with its line, in the file's order. A value that could not be read is not
// judged a second time.
func (d *decoder) mistakes(found field.ErrorList) field.ErrorList {
	errs, unread := slices.Clone(d.errs), map[string]bool{}
	for _, e := range errs {
		unread[e.Field] = true
	}
	for _, e := range found {
		if !unread[e.Field] {
			errs = append(errs, e)
		}
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return cmp.Compare(d.line(a.Field), d.line(b.Field)) })
	if more := d.more + len(errs) - maxMistakes; more > 0 {
		rest := fmt.Sprintf("has %d mistakes more", more)
		errs = append(errs[:maxMistakes], field.Invalid(nil, field.OmitValueType{}, rest))
	}
	for _, e := range errs {
		switch line := d.line(e.Field); {
		case line > 0 && e.Detail == "":
			e.Detail = fmt.Sprintf("line %d", line)
		case line > 0:
			e.Detail += fmt.Sprintf(" (line %d)", line)
		}
		if e.Field == wholeFile {
			e.Field = "the file"
		}
	}
	return errs
}

// line is where a field stands, or the field that it is missing from; 0 where that is the file.
func (d *decoder) line(path string) int {
	for path != "" {
		if line, ok := d.lines[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0
}

// ParseFile reads a file; relative paths in it are relative to its folder.
func ParseFile(path string, checks ...Check) (PlannerConfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return PlannerConfig{}, fmt.Errorf("reading the configuration: %w", err)
	}
	return parseIn(data, filepath.Dir(path), checks)
}

func parseIn(data []byte, dir string, checks []Check) (PlannerConfig, error) {
	c, err := Parse(data, checks...)
	if err != nil || c.Poll.Prometheus == nil {
		return c, err
	}
	h := &c.Poll.Prometheus.HTTP
	h.SetDirectory(dir)
	if errs := ownFiles(*h, field.NewPath("poll", "prometheus", "http"), followed); len(errs) > 0 {
		return PlannerConfig{}, errs.ToAggregate()
	}
	return c, nil
}

// document is the file's one mapping.
func document(data []byte) (*yamlnode.Node, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("parsing the configuration: it has more than %d bytes", maxBytes)
	}
	if !utf8.Valid(data) { // the library reads UTF-16, too, past whatever looks at bytes
		return nil, errors.New("parsing the configuration: it is not UTF-8: save it as that")
	}
	if plan.ManyDirectives(string(data)) {
		return nil, errors.New("parsing the configuration: it has many directives (lines that begin with %): delete them")
	}
	reader := yamlnode.NewDecoder(bytes.NewReader(data))
	var doc, more yamlnode.Node
	if err := reader.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, field.ErrorList{field.Required(field.NewPath("apiVersion"), "the file is empty: start from `ballast config default`")}.ToAggregate()
	} else if err != nil {
		return nil, fmt.Errorf("parsing the configuration: %w", err)
	}
	if err := reader.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("parsing the configuration: it has more than one document: delete what follows the first ---")
	}
	if n := aliased(&doc); n != nil {
		return nil, fmt.Errorf("parsing the configuration: line %d has an anchor or alias: write the value out", n.Line)
	}
	if paths(&doc, 0, maxPaths) < 0 {
		return nil, errors.New("parsing the configuration: it nests too many values too deep, or under too long names")
	}
	if root := doc.Content[0]; root.Kind != yamlnode.MappingNode {
		return nil, fmt.Errorf("parsing the configuration: line %d starts %s, where a mapping belongs", root.Line, kindName(root))
	}
	return doc.Content[0], nil
}

// paths takes the length of every value's path off left, and stops below 0. An entry of a list counts like a name of
// eight letters.
func paths(n *yamlnode.Node, at, left int) int {
	left -= at
	for i := 0; i < len(n.Content) && left >= 0; i++ {
		name := 8
		if n.Kind == yamlnode.MappingNode {
			name = len(n.Content[i-i%2].Value) + 2
		}
		left = paths(n.Content[i], at+name, left)
	}
	return left
}

// aliased finds an anchor or alias. They make a short file long, and a path ambiguous.
func aliased(n *yamlnode.Node) *yamlnode.Node {
	if n.Kind == yamlnode.AliasNode || n.Anchor != "" {
		return n
	}
	for _, c := range n.Content {
		if found := aliased(c); found != nil {
			return found
		}
	}
	return nil
}
