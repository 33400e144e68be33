package doctor

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

// right is one thing that the planner does, as a rule of one verb, resource and name.
type right struct {
	attributes authorizationv1.ResourceAttributes
	rule       rbacv1.PolicyRule
}

// shippedRights is what the shipped manifests let the planner do, by names of an installation.
func shippedRights(namespace, workload string) (all []right, err error) {
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

func rightsOf(rule rbacv1.PolicyRule, namespace string, names *strings.Replacer) (all []right) {
	objects := rule.ResourceNames
	if len(objects) == 0 {
		objects = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, of := range rule.Resources {
			for _, object := range objects {
				for _, verb := range rule.Verbs {
					all = append(all, rightOf(verb, group, of, names.Replace(object), namespace))
				}
			}
		}
	}
	return all
}

func rightOf(verb, group, of, object, namespace string) right {
	resource, sub, _ := strings.Cut(of, "/")
	r := right{rule: rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{of}},
		attributes: authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub,
			Name: object}}
	if object != "" {
		r.rule.ResourceNames = []string{object}
	}
	return r
}
