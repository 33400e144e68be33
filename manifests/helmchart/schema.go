package helmchart

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/utils/ptr"
)

// schema is what the chart's values may be, as JSON Schema has it.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        string             `json:"type,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Default     any                `json:"default,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Additional  *bool              `json:"additionalProperties,omitempty"`
}

const (
	label     = `^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	subdomain = `^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
)

// bounds are what a value's default does not say of it.
var bounds = map[string]schema{
	"workload":               {Pattern: label},
	"certificates":           {Enum: []string{"cert-manager", "self-signed"}},
	"nudge":                  {Enum: []string{"namespace", "any-namespace", "none"}},
	"image.repository":       {Pattern: `^[^\s:@]+(:[0-9]+/[^\s:@]+)?$`},
	"image.digest":           {Pattern: `^(sha256:[0-9a-f]{64})?$`},
	"image.pullPolicy":       {Enum: []string{"", "Always", "IfNotPresent", "Never"}},
	"alerts.runbooks":        {Pattern: "^[^\\s\"'{}]*$"}, // it stands in templates as it is, as what follows does
	"clientAuth.name":        {Pattern: `^[A-Za-z0-9._:-]+$`},
	"planner.serviceAccount": {Pattern: subdomain},
	"webhook.serviceAccount": {Pattern: subdomain},
	"planner.replicas":       {Minimum: ptr.To(1)},
	"webhook.replicas":       {Minimum: ptr.To(1)},
	"config": {Properties: map[string]*schema{"mode": {Type: "string",
		Enum: []string{"Observe", "Hold", "Enforce"}, Description: "What ballast may do."}}},
}

// open are the values whose keys are Kubernetes' or the user's.
var open = map[string]bool{"config": true, "monitoringLabels": true, "resources": true, "podAnnotations": true,
	"nodeSelector": true, "affinity": true}

// Schema makes the chart's values.schema.json of values.yaml: each value's comment describes it, its default says its
// type.
func Schema(values []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return nil, fmt.Errorf("reading the values: %w", err)
	}
	root, err := describe("", document.Content[0])
	if err != nil {
		return nil, err
	}
	root.Schema, root.Title = "http://json-schema.org/draft-07/schema#", "Values of ballast's chart"
	root.Properties["global"] = &schema{Type: "object",
		Description: "Values that a parent chart shares; ballast reads none."}
	text, err := json.MarshalIndent(root, "", "  ")
	return append(text, '\n'), err
}

func describe(path string, node *yaml.Node) (*schema, error) {
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	s := bounds[path]
	switch value.(type) {
	case map[string]any:
		s.Type = "object"
		return &s, s.describeAll(path, node)
	case []any:
		s.Type = "array"
	case bool:
		s.Type = "boolean"
	case int:
		s.Type = "integer"
	case string:
		s.Type = "string"
	default:
		return nil, fmt.Errorf("value %q is %T, which has no type here", path, value)
	}
	s.Default = value
	return &s, nil
}

func (s *schema) describeAll(path string, node *yaml.Node) error {
	name := path[strings.LastIndex(path, ".")+1:]
	if open[name] {
		return nil
	}
	s.Properties = map[string]*schema{}
	s.Additional = new(bool)
	for i := 0; i < len(node.Content); i += 2 {
		key, at := node.Content[i], node.Content[i].Value
		if path != "" {
			at = path + "." + at
		}
		below, err := describe(at, node.Content[i+1])
		if err != nil {
			return err
		}
		if below.Description = comment(key.HeadComment); below.Description == "" {
			return fmt.Errorf("value %q has no comment", at)
		}
		s.Properties[key.Value] = below
	}
	return nil
}

// comment is the last paragraph above a key.
func comment(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	last := strings.Split(paragraphs[len(paragraphs)-1], "\n")
	for i, line := range last {
		last[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}
	return strings.Join(last, " ")
}
