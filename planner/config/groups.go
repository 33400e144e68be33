package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Selector is the one that the group names; nil: it names none.
func (g Group) Selector() *metav1.LabelSelector {
	if g.Apart != nil {
		return g.Apart
	}
	return g.Together
}

// LabelKeys are the labels that the groups ask for, in order.
func (r Partition) LabelKeys() []string {
	var keys []string
	for _, g := range r.Groups {
		selector, err := metav1.LabelSelectorAsSelector(g.Selector())
		if err != nil {
			continue // validation refuses it
		}
		requirements, _ := selector.Requirements()
		for _, one := range requirements {
			keys = append(keys, one.Key())
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
