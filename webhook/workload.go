package webhook

import (
	"cmp"
	"errors"
	"slices"

	"ballast/planner/plan"
)

// Workload is what a decision needs of the StatefulSet or Deployment that Argo CD's application-controller runs as.
type Workload struct {
	Notes       map[string]string // the annotations of ballast's group
	Unmanaged   bool
	HasReplicas bool
	Replicas    int
	Overfull    bool // its pod template has more of something than is read, and Containers is empty
	Containers  []Container
}

// Container is one of the pod template's containers.
type Container struct {
	Name         string
	Command      []string
	Args         []string
	HasEnv       bool
	Env          []EnvEntry // the entries of ARGOCD_CONTROLLER_REPLICAS only; people paste duplicates
	HasResources bool
	Requests     map[string]string // nil where the section is absent
	Limits       map[string]string
}

// EnvEntry is one entry of a container's env with its place there.
type EnvEntry struct {
	Index     int
	HasValue  bool
	Value     string
	Reference bool // valueFrom
}

// What is kept of a pod template, far above any that runs: a body of 27 MiB may have nine million containers in it, of
// which each would take a hundred times its bytes.
const (
	maxContainers = 256
	maxWords      = 4096 // of all commands and arguments
	maxEnvEntries = 64   // that have the one name
	maxQuantities = 64
	maxWord       = 1 << 10   // bytes of a value that is a number
	maxScript     = 64 << 10  // bytes of one word; a launcher's may be a script
	maxScripts    = 256 << 10 // bytes of all words
)

// errTooMany says that a pod template has more of something than any that runs.
var errTooMany = errors.New("the pod template has more of something than any that runs")

// decodeWorkload reads a workload of an admission request. Where a patch would have no place, it fails.
func decodeWorkload(object node) (Workload, error) {
	var w Workload
	err := object.object("object")
	if err != nil {
		return w, err
	}
	var metadata, spec node
	for key, value := range object.members {
		switch {
		case key.is("metadata"):
			metadata = value
		case key.is("spec"):
			spec = value
		}
	}
	w.Notes = readNotes(metadata.field("annotations"))
	w.Unmanaged = w.Notes[plan.AnnotationUnmanaged] == "true"
	if spec.kind() != '{' {
		return w, errMalformed
	}
	if err := w.readSpec(spec); err != nil {
		return Workload{}, err
	}
	return w, nil
}

func (w *Workload) readSpec(spec node) error {
	var replicas, template node
	for key, value := range spec.members {
		switch {
		case key.is("replicas"):
			replicas = value
		case key.is("template"):
			template = value
		}
	}
	if w.HasReplicas = !replicas.absent(); w.HasReplicas {
		var err error
		if w.Replicas, err = wholeNumber("spec.replicas", replicas); err != nil {
			return err
		}
	}
	return w.readTemplate(template)
}

// readTemplate reads the containers. Of a template that has too much its spec.replicas are held all the same.
func (w *Workload) readTemplate(template node) error {
	err := w.readContainers(template.field("spec").field("containers"))
	if errors.Is(err, errTooMany) {
		w.Overfull, w.Containers = true, nil
		return nil
	}
	return err
}

func (w *Workload) readContainers(containers node) error {
	err := containers.array("containers")
	if err != nil {
		return err
	}
	count, bytes := 0, 0
	for _, item := range containers.members {
		if len(w.Containers) == maxContainers {
			return errTooMany
		}
		c, err := decodeContainer(item)
		if err != nil {
			return err
		}
		count += len(c.Command) + len(c.Args)
		for _, word := range slices.Concat(c.Command, c.Args) {
			bytes += len(word)
		}
		if count > maxWords || bytes > maxScripts {
			return errTooMany
		}
		w.Containers = append(w.Containers, c)
	}
	return nil
}

func decodeContainer(container node) (Container, error) {
	err := container.object("container")
	if err != nil {
		return Container{}, err
	}
	var name, command, args, env, resources node
	for key, value := range container.members {
		switch {
		case key.is("name"):
			name = value
		case key.is("command"):
			command = value
		case key.is("args"):
			args = value
		case key.is("env"):
			env = value
		case key.is("resources"):
			resources = value
		}
	}
	c := Container{Name: name.text(maxName)}
	if c.Command, err = words(command); err != nil {
		return Container{}, err
	}
	if c.Args, err = words(args); err != nil {
		return Container{}, err
	}
	if err = cmp.Or(c.readEnv(env), c.readResources(resources)); err != nil {
		return Container{}, err
	}
	return c, nil
}

func (c *Container) readEnv(env node) error {
	err := env.array("env")
	if err != nil {
		return err
	}
	c.HasEnv = !env.absent()
	index := 0
	for _, entry := range env.members {
		if len(c.Env) > maxEnvEntries {
			return errTooMany
		}
		if entry.field("name").is(plan.EnvReplicas) {
			value := entry.field("value")
			c.Env = append(c.Env, EnvEntry{index, !value.absent(), value.legible(maxWord), !entry.field("valueFrom").absent()})
		}
		index++
	}
	return nil
}

func (c *Container) readResources(resources node) error {
	err := resources.object("resources")
	if err != nil {
		return err
	}
	c.HasResources = !resources.absent()
	var requests, limits node
	for key, value := range resources.members {
		switch {
		case key.is("requests"):
			requests = value
		case key.is("limits"):
			limits = value
		}
	}
	if c.Requests, err = decodeQuantities(requests); err != nil {
		return err
	}
	c.Limits, err = decodeQuantities(limits)
	return err
}

func words(list node) ([]string, error) {
	var all []string
	for _, word := range list.members {
		if len(all) == maxWords {
			return nil, errTooMany
		}
		all = append(all, word.text(maxScript))
	}
	return all, nil
}

func decodeQuantities(section node) (map[string]string, error) {
	err := section.object("quantities")
	if err != nil || section.absent() {
		return nil, err
	}
	values := map[string]string{}
	count := 0 // repeated ones too, which the map has once
	for name, value := range section.members {
		if count++; count > maxQuantities {
			return nil, errTooMany
		}
		text := value.text(maxWord)
		if value.kind() != '"' && len(value) <= maxWord {
			text = string(value) // a quantity may be written as a number
		}
		values[name.text(maxNote)] = text
	}
	return values, nil
}

// controller is the place of the application-controller's container by plan.FindController, as the planner finds it; -1
// where none is.
func (w *Workload) controller(name string) int {
	signs := make([]plan.ContainerSigns, len(w.Containers))
	for i, c := range w.Containers {
		signs[i] = plan.ContainerSigns{Name: c.Name, Words: slices.Concat(c.Command, c.Args), HasEnv: len(c.Env) > 0}
	}
	return plan.FindController(signs, name)
}
