// Package rights knows what the shipped manifests let the planner do.
package rights

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"ballast/manifests/base"
)

// Right is one thing that the planner does, as a rule of one verb, resource and name.
type Right struct {
	Attributes authorizationv1.ResourceAttributes
	Rule       rbacv1.PolicyRule
}

// Shipped is what the shipped manifests let the planner do, by names of an installation.
func Shipped(namespace, workload string) (all []Right, err error) {
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(base.PlannerRoles())))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the rights that ballast ships: %w", err)
		}
		var role rbacv1.Role
		if err := yaml.Unmarshal(doc, &role); err != nil {
			return nil, fmt.Errorf("decoding the rights that ballast ships: %w", err)
		}
		in := namespace
		switch role.Kind {
		case "Role":
		case "ClusterRole":
			in = ""
		default:
			continue
		}
		for _, rule := range role.Rules {
			all = append(all, rightsOf(rule, in, named(namespace, workload))...)
		}
	}
}

// named puts an installation's names in place of the shipped ones.
func named(namespace, workload string) *strings.Replacer {
	return strings.NewReplacer("ballast.argocd", "ballast."+namespace, "argocd-application-controller", workload)
}

func rightsOf(rule rbacv1.PolicyRule, namespace string, names *strings.Replacer) (all []Right) {
	objects := rule.ResourceNames
	if len(objects) == 0 {
		objects = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, of := range rule.Resources {
			for _, object := range objects {
				for _, verb := range rule.Verbs {
					all = append(all, Of(verb, group, of, names.Replace(object), namespace))
				}
			}
		}
	}
	return all
}

// Of is one right.
func Of(verb, group, of, object, namespace string) Right {
	resource, sub, _ := strings.Cut(of, "/")
	r := Right{Rule: rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{of}},
		Attributes: authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group,
			Resource: resource, Subresource: sub,
			Name: object}}
	if object != "" {
		r.Rule.ResourceNames = []string{object}
	}
	return r
}

// Words is a rule of one right as people read it.
func Words(r rbacv1.PolicyRule) string {
	of := r.Resources[0]
	if r.APIGroups[0] != "" {
		of += "." + r.APIGroups[0]
	}
	if len(r.ResourceNames) > 0 {
		of += " " + r.ResourceNames[0]
	}
	return r.Verbs[0] + " " + of
}
