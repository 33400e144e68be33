package webhook

import (
	"fmt"
	"slices"
	"strings"

	"ballast/planner/plan"
	"ballast/webhook/inforce"
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

// decodePod reads a pod of an admission request. Where a patch would have no place, it fails.
func decodePod(object rawjson.Node) (Pod, error) {
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
	p.Name = metadata.Field("name").Text(maxName)
	p.Unmanaged = readNotes(metadata.Field("annotations"))[plan.AnnotationUnmanaged] == "true"
	p.TemplateHash = metadata.Field("labels").Field(templateHashLabel).Text(maxName)
	seen := 0
	for _, owner := range metadata.Field("ownerReferences").Members {
		if seen++; seen > maxOwners {
			return
		}
		group := owner.Field("apiVersion").Text(maxName)
		if owner.Field("controller").True() && strings.HasPrefix(group, "apps/") {
			p.OwnerKind, p.OwnerName = owner.Field("kind").Text(maxName), owner.Field("name").Text(maxName)
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

// belongs reports whether the workload's controllers make the pod. A Deployment's pods are owned by a ReplicaSet that is
// called like it and the hash of its pod template.
func (p *Pod) belongs(t plan.Target, r Request) bool {
	switch {
	case r.Namespace != t.Namespace:
		return false
	case t.Kind == plan.Deployment:
		return p.OwnerKind == replicaSet && p.TemplateHash != "" && p.OwnerName == t.Name+"-"+p.TemplateHash
	}
	_, is := p.ordinal(t)
	return is && p.OwnerKind == plan.StatefulSet && p.OwnerName == t.Name
}

// ordinal is the number of a StatefulSet's pod, by its name: by that the application-controller in it knows its own.
func (p *Pod) ordinal(t plan.Target) (int, bool) {
	digits, found := strings.CutPrefix(p.Name, t.Name+"-")
	n, ok := plan.ParsePin(digits)
	return n, found && ok && n >= 0
}

// size is what the pod asks for, the controller's container at that place.
func (p *Pod) size(at int) plan.PodSize {
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
	return plan.NewPodSize(controller, others, p.Whole)
}

// DecidePod answers the creation of a pod of the application-controller's workload: its controller's container gets the
// size that the plan has for its replica. What stands in the pod template is the size of whatever the plan does not name.
func DecidePod(s *inforce.State, r Request, object Pod) Verdict {
	v := Verdict{Revision: s.Revision()}
	why, enforcing := s.Enforcing()
	if !enforcing {
		v.Reason = why
		return v
	}
	p := s.View.Plan
	if !r.Create || object.Unmanaged || p.Unmanaged || !object.belongs(p.Target, r) {
		v.Reason = plan.Unmanaged
		return v
	}
	ordinal, _ := object.ordinal(p.Target)
	size, held := p.SizeOf(ordinal)
	if !held {
		v.Reason = s.Enforced(plan.InPlan)
		return v
	}
	at := findController(object.Containers, p.Target.Container)
	if object.Overfull || at < 0 {
		v.Reason = plan.Unmanaged
		v.warn(fmt.Sprintf("ballast: no container is found that runs %s, so the pod keeps its template's size", plan.ControllerCommand))
		return v
	}
	v.holdSize(s, object, at, size)
	return v
}

// holdSize gives the container the plan's size, unless Kubernetes would refuse the pod then, or any later size of it.
func (v *Verdict) holdSize(s *inforce.State, object Pod, at int, size plan.Resources) {
	c, want := object.Containers[at], inforce.Held(&size)
	for _, h := range want {
		v.Requested = append(v.Requested, Field{h.Section + "." + h.Name, printableQuantity(c.quantity(h))})
	}
	if why := object.size(at).Misfit(size); why != "" {
		v.Reason = plan.Immutable
		v.warn(fmt.Sprintf("ballast: the pod keeps its template's size (plan %d): %s", v.Revision, why))
		return
	}
	v.holdResources(c, fmt.Sprintf("/spec/containers/%d/resources", at), want)
	v.Reason = s.Enforced(plan.InPlan)
	if len(v.Patches) > 0 {
		v.Reason = s.Enforced(plan.Restored)
	}
}
