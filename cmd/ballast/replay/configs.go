package replay

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ballast/cmd/ballast/settings"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/replay"
	"ballast/planner/sharding"
)

// installedName is the configuration of the installed planner.
const installedName = "installed"

// wanted is what --config asks for: a name, or a configuration of its own.
type wanted struct {
	name   string
	config *config.PlannerConfig // nil: the name says it
}

// comparison is all that is compared, in the order in which it was named.
type comparison []wanted

// files reads what --config names.
func (o *options) files() (comparison, error) {
	names := o.configs
	if len(names) == 0 {
		names = []string{replay.Shipped, replay.LPT, string(sharding.Legacy)}
		if o.last != "" {
			names[0] = installedName
		}
	}
	var all comparison
	for _, name := range names {
		w, err := o.read(name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(other wanted) bool { return other.name == w.name }) {
			return nil, fmt.Errorf("--config: two are called %q: give each a name, as %s-2=FILE", w.name, w.name)
		}
		all = append(all, w)
	}
	return all, nil
}

func (o *options) read(text string) (wanted, error) {
	if _, known := replay.Known(text); known {
		return wanted{name: text}, nil
	}
	if text == installedName {
		if o.last == "" {
			return wanted{}, fmt.Errorf("--config: %q is asked of a cluster, with --last alone; name its file instead: "+
				"kubectl -n argocd get configmap ballast-config -o jsonpath='{.data.config\\.yaml}'", text)
		}
		return wanted{name: text}, nil
	}
	name, file, named := strings.Cut(text, "=")
	if !named {
		name, file = strings.TrimSuffix(filepath.Base(text), filepath.Ext(text)), text
	}
	if name == "" || file == "" {
		return wanted{}, fmt.Errorf("--config: %q is neither a file, nor NAME=FILE, nor one of %s", text,
			strings.Join(replay.Names(), ", "))
	}
	c, err := configfile.ParseFile(file, settings.CheckMetrics)
	if err != nil {
		return wanted{}, fmt.Errorf("--config: reading %q, which is no name of %s: %w", file,
			strings.Join(replay.Names(), ", "), err)
	}
	return wanted{name, &c}, nil
}

// measures is the configuration by which is measured: the first of its own.
func (c comparison) measures() *config.PlannerConfig {
	for _, w := range c {
		if w.config != nil {
			return w.config
		}
	}
	return nil
}

// setups are what is replayed. What needs no file measures as the first file does; what Argo CD's own algorithms fill
// is compared with its capacity.
func (c comparison) setups() ([]replay.Setup, error) {
	var all []replay.Setup
	first := c.measures()
	for _, w := range c {
		s, known := replay.Known(w.name)
		switch {
		case w.config != nil:
			s = replay.Setup{Name: w.name, Config: *w.config}
		case !known:
			return nil, fmt.Errorf("--config: nobody knows %q", w.name)
		case first != nil:
			s.Config.Poll, s.Config.Normalize, s.Config.Index = first.Poll, first.Normalize, first.Index
			if s.Algorithm != "" {
				s.Config.Partition.Capacity = first.Partition.Capacity
			}
		}
		all = append(all, s)
	}
	return all, nil
}
