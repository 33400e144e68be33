// Package labeltext keeps a few labels of an object as one text.
package labeltext

import (
	"maps"
	"slices"
	"strings"
)

// Labels are those of a Secret's that partition.groups asks for, as in team=payments,tier=hub, in the order of their
// names. It is one text: a map takes more than the rest of a small Secret does.
type Labels string

// longestLabel is the length of the longest value that a label has, and longestKey that of a name with its prefix.
const (
	longestLabel = 63
	longestKey   = 253 + 1 + 63
)

// Of keeps those labels. What is no label is left out: an API server has none such.
func Of(all map[string]string, keys []string) Labels {
	if len(keys) == 0 || len(all) == 0 {
		return ""
	}
	var kept []string
	for _, key := range keys {
		value, found := all[key]
		odd := strings.ContainsAny(key+value, ",=") || len(key) > longestKey || len(value) > longestLabel
		if found && !odd {
			kept = append(kept, key+"="+value)
		}
	}
	slices.Sort(kept)
	return Labels(strings.Join(slices.Compact(kept), ","))
}

// Set is the labels by their names.
func (l Labels) Set() map[string]string {
	set := map[string]string{}
	if l == "" {
		return set
	}
	for one := range strings.SplitSeq(string(l), ",") {
		key, value, _ := strings.Cut(one, "=")
		set[key] = value
	}
	return set
}

// Only leaves out labels that nobody asks for now.
func (l Labels) Only(keys []string) Labels {
	if l == "" {
		return ""
	}
	set := l.Set()
	maps.DeleteFunc(set, func(key, _ string) bool { return !slices.Contains(keys, key) })
	return Of(set, keys)
}
