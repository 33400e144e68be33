package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// PrometheusConfig is the configuration of a Prometheus that scrapes the targets in a file_sd file.
func PrometheusConfig(targetsFile string, interval time.Duration) ([]byte, error) {
	every := fmt.Sprintf("%dms", interval.Milliseconds())
	config, err := yaml.Marshal(map[string]any{
		"global": map[string]any{"scrape_interval": every, "scrape_timeout": every},
		"scrape_configs": []map[string]any{{
			"job_name":        "argocd",
			"file_sd_configs": []map[string]any{{"files": []string{targetsFile}, "refresh_interval": "5s"}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing a Prometheus configuration: %w", err)
	}
	return config, nil
}

// WriteTargets puts targets into a file_sd file in one step: Prometheus may read it at any time.
func WriteTargets(file string, targets []Target) error {
	data, err := json.Marshal(targets)
	if err != nil {
		return fmt.Errorf("marshalling targets: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".targets-")
	if err != nil {
		return fmt.Errorf("writing targets: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already, unless something failed
	_, err = f.Write(data)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("writing targets into %q: %w", file, err)
	}
	return nil
}
