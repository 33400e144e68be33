// Package configfile reads the planner's configuration file: strictly, over the
// defaults, judged, and again when it changes.
package configfile

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/config"
	"ballast/planner/config/httpclient"
	"ballast/planner/config/strict"
	"ballast/planner/config/validation"
)

// Check judges what package validation knows nothing of, such as whether a phase can parse its queries.
type Check func(config.PlannerConfig) field.ErrorList

// Parse reads a configuration file over the defaults. The error lists every mistake, a hundred at most, with its path,
// line and mend, those of the checks too; it is an aggregate of *field.Error where the text is YAML at all.
func Parse(data []byte, checks ...Check) (config.PlannerConfig, error) {
	root, err := strict.Document(data)
	if err != nil {
		return config.PlannerConfig{}, err
	}
	c := config.Default()
	c.APIVersion, c.Kind = "", "" // only a file that says what it is can be read by the next version
	d := strict.NewDecoder()
	d.Decode(root, &c)
	found := validation.Validate(c)
	for _, check := range checks {
		found = append(found, check(c)...)
	}
	if errs := d.Mistakes(found); len(errs) > 0 {
		return config.PlannerConfig{}, errs.ToAggregate()
	}
	return c, nil
}

// ParseFile reads a file; relative paths in it are relative to its folder.
func ParseFile(path string, checks ...Check) (config.PlannerConfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return config.PlannerConfig{}, fmt.Errorf("reading the configuration: %w", err)
	}
	return parseIn(data, filepath.Dir(path), checks)
}

func parseIn(data []byte, dir string, checks []Check) (config.PlannerConfig, error) {
	c, err := Parse(data, checks...)
	if err != nil || c.Poll.Prometheus == nil {
		return c, err
	}
	h := &c.Poll.Prometheus.HTTP
	h.SetDirectory(dir)
	if errs := httpclient.OwnFiles(*h, field.NewPath("poll", "prometheus", "http"), httpclient.Followed); len(errs) > 0 {
		return config.PlannerConfig{}, errs.ToAggregate()
	}
	return c, nil
}
