package validation

import (
	"fmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/config"
)

// Bounds of partition.groups: the plan carries every selector, and each webhook replica asks all of them about a new
// cluster.
const (
	maxGroups        = 32
	maxGroupSelector = 1 << 10 // bytes, as a selector is written
)

func validateGroups(r config.Partition, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Groups) > maxGroups {
		errs = append(errs, field.Invalid(p, field.OmitValueType{},
			fmt.Sprintf("has %d groups: leave %d at most", len(r.Groups), maxGroups)))
	}
	if len(r.Groups) > 0 && r.LPT != nil {
		errs = append(errs, field.Invalid(p, field.OmitValueType{},
			"are not kept by lpt, which goes by loads alone: set partition.sticky, or leave the groups out"))
	}
	named := map[string]int{}
	for i, g := range r.Groups {
		at := p.Index(i)
		if before, twice := named[g.Name]; twice && g.Name != "" {
			errs = append(errs, field.Invalid(at.Child("name"), g.Name,
				fmt.Sprintf("is the name of groups[%d], too: give each its own", before)))
		}
		named[g.Name] = i
		errs = append(errs, validateGroupName(g.Name, at.Child("name"))...)
		errs = append(errs, oneImplementation(&g, at)...)
		errs = append(errs, validateGroupSelector(g.Together, at.Child("together"))...)
		errs = append(errs, validateGroupSelector(g.Apart, at.Child("apart"))...)
	}
	return errs
}

func validateGroupName(name string, p *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(p, "give the group a name, like payments: messages and the plan call it by that")}
	}
	for _, message := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(p, name, message))
	}
	return errs
}

// validateGroupSelector refuses one that takes Secrets without any label: that would be nearly all.
func validateGroupSelector(s *metav1.LabelSelector, p *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, p)
	selector, err := metav1.LabelSelectorAsSelector(s)
	switch {
	case err != nil || len(errs) > 0:
	case selector.Empty() || selector.Matches(labels.Set{}):
		errs = append(errs, field.Invalid(p, field.OmitValueType{},
			"selects Secrets without any label too: require a label that only the group's Secrets have, like matchLabels: {team: payments}"))
	case len(selector.String()) > maxGroupSelector:
		errs = append(errs, field.Invalid(p, field.OmitValueType{},
			fmt.Sprintf("has %d bytes, and the plan has room for %d: give the group's Secrets a label of their own",
				len(selector.String()), maxGroupSelector)))
	}
	return errs
}
