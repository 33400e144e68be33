// Package peer is what CPVPS and HVPA do, read from their manifests: to turn a manifest into ours, and to compare sizes
// with theirs. Where their code breaks a promise of their documents it keeps the promise.
package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"ballast/planner/size"
)

// maxBytes bounds a manifest.
const maxBytes = 256 << 10

// asJSON reads one YAML document.
func asJSON(data []byte) ([]byte, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("reading the manifest: it has %d bytes, more than %d", len(data), maxBytes)
	}
	if bytes.Contains(data, []byte("\n---\n")) {
		return nil, errors.New("reading the manifest: it has several documents: convert them one by one")
	}
	var doc yamlnode.Node
	if err := yamlnode.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	if n := aliased(&doc); n != nil {
		return nil, fmt.Errorf("reading the manifest: line %d has an anchor or alias: write the value out", n.Line)
	}
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	return text, nil
}

// aliased finds an anchor or alias, by which a few bytes become any number.
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

// Kind is a manifest's kind; empty where it has none.
func Kind(data []byte) (string, error) {
	text, err := asJSON(data)
	if err != nil {
		return "", err
	}
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return "", fmt.Errorf("reading the manifest's kind: %w", err)
	}
	return head.Kind, nil
}

// Amount is a quantity as it stands in a manifest, a text or a number.
type Amount string

// UnmarshalJSON takes both.
func (a *Amount) UnmarshalJSON(data []byte) error {
	var text string
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*a = Amount(text)
		return nil
	}
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil {
		return err
	}
	*a = Amount(number.String())
	return nil
}

// Quantity is the amount; nil where none is given.
func (a *Amount) Quantity() (*resource.Quantity, error) {
	if a == nil || *a == "" {
		return nil, nil
	}
	q, err := size.ParseQuantity(string(*a))
	if err != nil {
		return nil, err
	}
	return &q, nil
}

// metadata is what of an object's is looked at.
type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations"`
}

// target is the workload that a manifest names.
type target struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}
