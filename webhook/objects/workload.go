package objects

import (
	"cmp"
	"errors"
	"slices"

	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
	"ballast/planner/printable"
	"ballast/webhook/rawjson"
)

// Workload is what a decision needs of the StatefulSet or Deployment that Argo CD's application-controller runs as.
type Workload struct {
	Notes       map[string]string // the annotations of ballast's group
	Unmanaged   bool
	HasReplicas bool
	Replicas    int
	Overfull    bool // its pod template has more of something than is read, and Containers is empty
	Containers  []Container

	template rawjson.Node
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

// Section is what the container has of "requests" or "limits"; nil where that is absent.
func (c Container) Section(name string) map[string]string {
	if name == "limits" {
		return c.Limits
	}
	return c.Requests
}

// PrintedEnv is ARGOCD_CONTROLLER_REPLICAS for people; "reference" stands for valueFrom.
func (c Container) PrintedEnv() string {
	if len(c.Env) == 0 {
		return ""
	}
	last := c.Env[len(c.Env)-1] // the one that the container sees
	switch {
	case last.Reference:
		return "reference"
	case last.Value == "":
		return ""
	}
	return printable.Count(last.Value)
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
	MaxContainers = 256
	maxWords      = 4096 // of all commands and arguments
	maxEnvEntries = 64   // that have the one name
	maxQuantities = 64
	MaxWord       = 1 << 10   // bytes of a value that is a number
	maxScript     = 64 << 10  // bytes of one word; a launcher's may be a script
	maxScripts    = 256 << 10 // bytes of all words
)

// errTooMany says that a pod template has more of something than any that runs.
var errTooMany = errors.New("the pod template has more of something than any that runs")

// DecodeWorkload reads a workload of an admission request. Where a patch would have no place, it fails.
func DecodeWorkload(object rawjson.Node) (Workload, error) {
	var w Workload
	err := object.ObjectOrAbsent("object")
	if err != nil {
		return w, err
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
	w.Notes = Notes(metadata.Field("annotations"))
	w.Unmanaged = w.Notes[plan.AnnotationUnmanaged] == "true"
	if spec.Kind() != '{' {
		return w, rawjson.ErrMalformed
	}
	if err := w.readSpec(spec); err != nil {
		return Workload{}, err
	}
	return w, nil
}

func (w *Workload) readSpec(spec rawjson.Node) error {
	var replicas, template rawjson.Node
	for key, value := range spec.Members {
		switch {
		case key.Is("replicas"):
			replicas = value
		case key.Is("template"):
			template = value
		}
	}
	if w.HasReplicas = !replicas.Absent(); w.HasReplicas {
		var err error
		if w.Replicas, err = wholeNumber("spec.replicas", replicas); err != nil {
			return err
		}
	}
	return w.readTemplate(template)
}

// readTemplate reads the containers. Of a template that has too much its spec.replicas are held all the same.
func (w *Workload) readTemplate(template rawjson.Node) error {
	var err error
	w.template = template
	w.Containers, w.Overfull, err = readContainers(template.Field("spec").Field("containers"))
	return err
}

// readContainers reads a pod's containers; none where there is more of something than is read.
func readContainers(list rawjson.Node) (containers []Container, overfull bool, err error) {
	containers, err = decodeContainers(list)
	if errors.Is(err, errTooMany) {
		return nil, true, nil
	}
	return containers, false, err
}

func decodeContainers(list rawjson.Node) (containers []Container, err error) {
	if err := list.ArrayOrAbsent("containers"); err != nil {
		return nil, err
	}
	count, bytes := 0, 0
	for _, item := range list.Members {
		if len(containers) == MaxContainers {
			return nil, errTooMany
		}
		c, err := decodeContainer(item)
		if err != nil {
			return nil, err
		}
		count += len(c.Command) + len(c.Args)
		for _, word := range slices.Concat(c.Command, c.Args) {
			bytes += len(word)
		}
		if count > maxWords || bytes > maxScripts {
			return nil, errTooMany
		}
		containers = append(containers, c)
	}
	return containers, nil
}

func decodeContainer(container rawjson.Node) (Container, error) {
	err := container.ObjectOrAbsent("container")
	if err != nil {
		return Container{}, err
	}
	var name, command, args, env, resources rawjson.Node
	for key, value := range container.Members {
		switch {
		case key.Is("name"):
			name = value
		case key.Is("command"):
			command = value
		case key.Is("args"):
			args = value
		case key.Is("env"):
			env = value
		case key.Is("resources"):
			resources = value
		}
	}
	c := Container{Name: name.Text(MaxName)}
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

func (c *Container) readEnv(env rawjson.Node) error {
	err := env.ArrayOrAbsent("env")
	if err != nil {
		return err
	}
	c.HasEnv = !env.Absent()
	index := 0
	for _, entry := range env.Members {
		if len(c.Env) > maxEnvEntries {
			return errTooMany
		}
		if entry.Field("name").Is(plan.EnvReplicas) {
			value := entry.Field("value")
			c.Env = append(c.Env, EnvEntry{index, !value.Absent(), value.Legible(MaxWord),
				!entry.Field("valueFrom").Absent()})
		}
		index++
	}
	return nil
}

func (c *Container) readResources(resources rawjson.Node) error {
	err := resources.ObjectOrAbsent("resources")
	if err != nil {
		return err
	}
	c.HasResources = !resources.Absent()
	var requests, limits rawjson.Node
	for key, value := range resources.Members {
		switch {
		case key.Is("requests"):
			requests = value
		case key.Is("limits"):
			limits = value
		}
	}
	if c.Requests, err = decodeQuantities(requests); err != nil {
		return err
	}
	c.Limits, err = decodeQuantities(limits)
	return err
}

func words(list rawjson.Node) ([]string, error) {
	var all []string
	for _, word := range list.Members {
		if len(all) == maxWords {
			return nil, errTooMany
		}
		all = append(all, word.Text(maxScript))
	}
	return all, nil
}

func decodeQuantities(section rawjson.Node) (map[string]string, error) {
	err := section.ObjectOrAbsent("quantities")
	if err != nil || section.Absent() {
		return nil, err
	}
	values := map[string]string{}
	count := 0 // repeated ones too, which the map has once
	for name, value := range section.Members {
		if count++; count > maxQuantities {
			return nil, errTooMany
		}
		text := value.Text(MaxWord)
		if value.Kind() != '"' && len(value) <= MaxWord {
			text = string(value) // a quantity may be written as a number
		}
		values[name.Text(maxNote)] = text
	}
	return values, nil
}

// FindController is the place of the application-controller's container by podspec.FindController, as the planner finds
// it; -1 where none is.
func FindController(containers []Container, name string) int {
	signs := make([]podspec.ContainerSigns, len(containers))
	for i, c := range containers {
		signs[i] = podspec.ContainerSigns{Name: c.Name, Words: slices.Concat(c.Command, c.Args), HasEnv: len(c.Env) > 0}
	}
	return podspec.FindController(signs, name)
}
