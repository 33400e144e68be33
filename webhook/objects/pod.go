package objects

import (
	"slices"
	"strings"

	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
	"ballast/webhook/rawjson"
)

// Pod is what a decision needs of a pod that is made.
type Pod struct {
	Name         string // empty under generateName
	Unmanaged    bool
	OwnerKind    string // of the controller that makes it, of group apps
	OwnerName    string
	TemplateHash string // of a Deployment's pod
	Whole        bool   // it has resources as a whole
	Overfull     bool   // it has more of something than is read, and Containers is empty
	Containers   []Container
	Initialising []Container
}

// The labels and the kind by which a pod names who makes it.
const (
	templateHashLabel = "pod-template-hash"
	replicaSet        = "ReplicaSet"
)

// maxOwners is how many owners of a pod are read, of which one is its controller.
const maxOwners = 16

// DecodePod reads a pod of an admission request. Where a patch would have no place, it fails.
func DecodePod(object rawjson.Node) (Pod, error) {
	var p Pod
	if err := object.ObjectOrAbsent("object"); err != nil {
		return p, err
	}
	var metadata, spec rawjson.Node
	for key, value := range object.Members {
		switch {
		case key.Is("metadata"):
			metadata = value
		case key.Is("spec"):
			spec = value
		}
	}
	if spec.Kind() != '{' {
		return p, rawjson.ErrMalformed
	}
	p.readMetadata(metadata)
	if err := p.readSpec(spec); err != nil {
		return Pod{}, err
	}
	return p, nil
}

func (p *Pod) readMetadata(metadata rawjson.Node) {
	p.Name = metadata.Field("name").Text(MaxName)
	p.Unmanaged = Notes(metadata.Field("annotations"))[plan.AnnotationUnmanaged] == "true"
	p.TemplateHash = metadata.Field("labels").Field(templateHashLabel).Text(MaxName)
	seen := 0
	for _, owner := range metadata.Field("ownerReferences").Members {
		if seen++; seen > maxOwners {
			return
		}
		group := owner.Field("apiVersion").Text(MaxName)
		if owner.Field("controller").True() && group == "apps/v1" {
			p.OwnerKind, p.OwnerName = owner.Field("kind").Text(MaxName), owner.Field("name").Text(MaxName)
			return
		}
	}
}

func (p *Pod) readSpec(spec rawjson.Node) error {
	var containers, initialising, whole rawjson.Node
	for key, value := range spec.Members {
		switch {
		case key.Is("containers"):
			containers = value
		case key.Is("initContainers"):
			initialising = value
		case key.Is("resources"):
			whole = value
		}
	}
	for _, section := range []string{"requests", "limits"} {
		for range whole.Field(section).Members {
			p.Whole = true
		}
	}
	var err error
	if p.Containers, p.Overfull, err = readContainers(containers); err != nil || p.Overfull {
		return err
	}
	var overfull bool
	if p.Initialising, overfull, err = readContainers(initialising); overfull {
		p.Overfull, p.Containers = true, nil
	}
	return err
}

// Belongs reports whether the workload's controllers make the pod. A Deployment's pods are owned by a ReplicaSet that
// is called like it and the hash of its pod template.
func (p *Pod) Belongs(t plan.Target, namespace string) bool {
	switch {
	case namespace != t.Namespace:
		return false
	case t.Kind == plan.Deployment:
		return p.OwnerKind == replicaSet && p.TemplateHash != "" && p.OwnerName == t.Name+"-"+p.TemplateHash
	}
	_, is := p.Ordinal(t)
	return is && p.OwnerKind == plan.StatefulSet && p.OwnerName == t.Name
}

// Ordinal is the number of a StatefulSet's pod, by its name: by that the application-controller in it knows its own.
func (p *Pod) Ordinal(t plan.Target) (int, bool) {
	digits, found := strings.CutPrefix(p.Name, t.Name+"-")
	n, ok := plan.ParsePin(digits)
	return n, found && ok && n >= 0
}

// Size is what the pod asks for, the controller's container at that place.
func (p *Pod) Size(at int) podspec.Size {
	var controller plan.Resources
	var others []plan.Resources
	for i, c := range slices.Concat(p.Containers, p.Initialising) {
		asks := plan.Resources{Requests: c.Requests, Limits: c.Limits}
		if i == at {
			controller = asks
			continue
		}
		others = append(others, asks)
	}
	return podspec.NewSize(controller, others, p.Whole)
}
