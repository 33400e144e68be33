package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/plan/codec"
)

const (
	MaxBytes = 1 << 20  // above any file that fits a ConfigMap
	maxPaths = 16 << 20 // the paths of all values, by which mistakes are told: what people nest takes less than MaxBytes
)

// Document is the file's one mapping.
func Document(data []byte) (*yamlnode.Node, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("parsing the configuration: it has more than %d bytes", MaxBytes)
	}
	if !utf8.Valid(data) { // the library reads UTF-16, too, past whatever looks at bytes
		return nil, errors.New("parsing the configuration: it is not UTF-8: save it as that")
	}
	if codec.ManyDirectives(string(data)) {
		return nil, errors.New("parsing the configuration: it has many directives (lines that begin with %): delete them")
	}
	reader := yamlnode.NewDecoder(bytes.NewReader(data))
	var doc, more yamlnode.Node
	if err := reader.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, field.ErrorList{field.Required(field.NewPath("apiVersion"),
			"the file is empty: start from `ballast config default`")}.ToAggregate()
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
		return nil, fmt.Errorf("parsing the configuration: line %d starts %s, where a mapping belongs", root.Line,
			kindName(root))
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
