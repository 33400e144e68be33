package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ballast/planner/plan"
	"ballast/webhook/inforce"
)

// surface is a kind of object that people annotate.
type surface struct {
	steering []steering
	silent   []string // the names of other annotations that may be there
}

func planSurface() surface {
	s := surface{steering: onPlan(), silent: []string{bare(plan.AnnotationPausedBy), bare(plan.AnnotationPausedReason)}}
	for _, key := range inforce.PlannersAnnotations() {
		s.silent = append(s.silent, bare(key))
	}
	return s
}

func clusterSurface(maxReplicas int) func() surface {
	return func() surface { return surface{steering: onCluster(maxReplicas)} }
}

func workloadSurface() surface { return surface{steering: onWorkload()} }

// mistyped are the warnings on annotations that a write adds or changes and that do not do what their writer meant: a
// value that is not read, a name that is not known. Each has forms, the longest first.
func mistyped(on surface, is, was map[string]string) [][]string {
	var warnings [][]string
	for _, key := range sortedKeys(is) {
		if before, stood := was[key]; stood && before == is[key] {
			continue
		}
		name := bare(key)
		at := slices.IndexFunc(on.steering, func(s steering) bool { return s.name == name })
		switch {
		case at >= 0:
			if s := on.steering[at]; s.read(is[key]).mistake {
				warnings = append(warnings, []string{
					fmt.Sprintf("ballast: annotation %s: %s %s", key, quoted(is[key]), s.mend),
					fmt.Sprintf("ballast: %s: %s %s", name, quoted(is[key]), s.mend),
				})
			}
		case !slices.Contains(on.silent, name):
			warnings = append(warnings, misnamed(on, name))
		}
	}
	return warnings
}

// misnamed is the warning on an annotation that is not read on this kind of object.
func misnamed(on surface, name string) []string {
	const notHere = " is not read here"
	brief := "ballast: annotation " + printedNote(name)
	said := "ballast: annotation " + plan.Group + "/" + printedNote(name) + notHere
	if place := home(name); place != "" {
		return []string{said + "; it belongs on " + place, brief + " belongs on " + place}
	}
	var names []string
	for _, s := range on.steering {
		names = append(names, s.name)
	}
	if near := nearest(name, names); near != "" {
		ask := "; did you mean " + near + "?"
		return []string{said + ask, brief + notHere + ask}
	}
	all := strings.Join(names, ", ")
	return []string{said + "; read are: " + all, brief + ": read here are " + all, said}
}

// home says where an annotation of another kind of object belongs; empty for one that is unknown everywhere.
func home(name string) string {
	named := func(s steering) bool { return s.name == name }
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
	return plan.Nearest(lower, names)
}

func (v *Verdict) warnMistyped(on func() surface, is, was map[string]string) {
	if maps.Equal(is, was) {
		return // as in nearly every write
	}
	for _, forms := range mistyped(on(), is, was) {
		v.warn(forms...)
	}
}

// quoted shows a person what was read, in quotes and in ASCII, where it is a word: people paste tokens, and not a part
// of one is shown.
func quoted(value string) string {
	const word = 12
	if len(value) > word {
		return "its value"
	}
	return strconv.QuoteToASCII(value)
}

// printedNote is an annotation's name without what a name cannot hold, and not at length.
func printedNote(name string) string {
	const most = 30
	clean := strings.Map(func(r rune) rune {
		if r > 0x20 && r < 0x7f && r != '"' && r != '\\' {
			return r
		}
		return '?'
	}, name[:min(len(name), 4*most)])
	if len(clean) > most {
		return clean[:most-3] + "..."
	}
	return clean
}
