package steering

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ballast/planner/plan"
	"ballast/planner/plan/people"
	"ballast/planner/printable"
)

// Mistyped are the warnings on annotations that a write adds or changes and that do not do what their writer meant: a
// value that is not read, a name that is not known. Each has forms, the longest first.
func Mistyped(on func() Surface, is, was map[string]string) [][]string {
	if maps.Equal(is, was) {
		return nil
	}
	surface := on()
	var warnings [][]string
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if before, stood := was[key]; stood && before == is[key] {
			continue
		}
		name := bare(key)
		at := slices.IndexFunc(surface.annotations, func(a annotation) bool { return a.name == name })
		switch {
		case at >= 0:
			if s := surface.annotations[at]; s.read(is[key]).mistake {
				warnings = append(warnings, []string{
					fmt.Sprintf("ballast: annotation %s: %s %s", key, quoted(is[key]), s.mend),
					fmt.Sprintf("ballast: %s: %s %s", name, quoted(is[key]), s.mend),
				})
			}
		case !slices.Contains(surface.silent, name):
			warnings = append(warnings, misnamed(surface, name))
		}
	}
	return warnings
}

// misnamed is the warning on an annotation that is not read on this kind of object.
func misnamed(on Surface, name string) []string {
	const notHere = " is not read here"
	brief := "ballast: annotation " + printable.Note(name)
	said := "ballast: annotation " + plan.Group + "/" + printable.Note(name) + notHere
	if place := home(name); place != "" {
		return []string{said + "; it belongs on " + place, brief + " belongs on " + place}
	}
	names := on.Names()
	if near := nearest(name, names); near != "" {
		ask := "; did you mean " + near + "?"
		return []string{said + ask, brief + notHere + ask}
	}
	all := strings.Join(names, ", ")
	return []string{said + "; read are: " + all, brief + ": read here are " + all, said}
}

// home says where an annotation of another kind of object belongs; empty for one that is unknown everywhere.
func home(name string) string {
	named := func(a annotation) bool { return a.name == name }
	switch {
	case slices.ContainsFunc(onWorkload(), named):
		return "a cluster Secret or the workload"
	case slices.ContainsFunc(onCluster(0), named):
		return "a cluster Secret; on the plan, pins stand in data.pins"
	case slices.ContainsFunc(onPlan(), named):
		return "the plan ConfigMap"
	}
	return ""
}

// nearest is the name that was meant: another case, a part of it, or a typing mistake.
func nearest(name string, names []string) string {
	lower := strings.ToLower(name)
	for _, n := range names {
		if len(lower) > 2 && (strings.HasPrefix(n, lower) || strings.HasPrefix(lower, n)) {
			return n
		}
	}
	return people.Nearest(lower, names)
}

// quoted shows a person what was read, in quotes and in ASCII, where it is a word that is printed as it stands: people
// paste tokens, and not a part of one is shown.
func quoted(value string) string {
	const word = 12
	if len(value) > word || printable.Text(value, word) != value {
		return "its value"
	}
	return strconv.QuoteToASCII(value)
}
