package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	yamlnode "go.yaml.in/yaml/v3"

	"ballast/planner/config"
)

// marshal writes a configuration as a file, fields in the order of the types. Secrets are masked.
func marshal(c config.PlannerConfig) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	var doc yamlnode.Node // JSON is YAML; the nodes keep its order
	if err := yamlnode.Unmarshal(text.Bytes(), &doc); err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	unstyle(&doc)
	var out bytes.Buffer
	writer := yamlnode.NewEncoder(&out)
	writer.SetIndent(2)
	if err := errors.Join(writer.Encode(&doc), writer.Close()); err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	return out.Bytes(), nil
}

// unstyle turns JSON's braces and quotes into lines; what is empty keeps its braces.
func unstyle(n *yamlnode.Node) {
	if len(n.Content) > 0 || n.Kind == yamlnode.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		unstyle(c)
	}
}
