package config

import _ "embed"

//go:embed default.yaml
var defaultYAML string

// DefaultYAML is Default as an annotated file.
func DefaultYAML() string { return defaultYAML }
