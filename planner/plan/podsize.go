package plan

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The classes of a pod's quality of service, by Kubernetes' names. A pod's class is decided when it is made.
const (
	guaranteed = "Guaranteed"
	burstable  = "Burstable"
	bestEffort = "BestEffort"
)

// PodSize is what a pod asks for: its controller's container, and the others.
type PodSize struct {
	Controller Resources   `json:"controller,omitzero"`
	Others     []Resources `json:"others,omitempty"` // as NewPodSize sums them up
	Whole      bool        `json:"whole,omitempty"`  // the pod asks for something as a whole (spec.resources)
}

// NewPodSize sums up a pod's other containers, those that initialise it among them, however many somebody gave it: what
// they ask for together, and nothing for those that have no limit of cpu or memory.
func NewPodSize(controller Resources, others []Resources, whole bool) PodSize {
	p := PodSize{Controller: controller, Whole: whole}
	requests, limits := map[string]resource.Quantity{}, map[string]resource.Quantity{}
	unlimited := false
	for _, c := range others {
		r, l := asked(c)
		add(requests, r)
		add(limits, l)
		unlimited = unlimited || len(l) < len(mostSize)
	}
	if len(requests)+len(limits) > 0 {
		p.Others = append(p.Others, Resources{Requests: texts(requests), Limits: texts(limits)})
	}
	if unlimited {
		p.Others = append(p.Others, Resources{})
	}
	return p
}

func texts(quantities map[string]resource.Quantity) map[string]string {
	m := make(map[string]string, len(quantities))
	for name, q := range quantities {
		m[name] = q.String()
	}
	return m
}

// containers are all of them, the controller's of that size.
func (p PodSize) containers(controller Resources) []Resources {
	return append([]Resources{controller}, p.Others...)
}

// With is a container's resources with those of a size in their places. Others stay.
func (r Resources) With(size Resources) Resources {
	return Resources{Requests: overlaid(r.Requests, size.Requests), Limits: overlaid(r.Limits, size.Limits)}
}

func overlaid(values, over map[string]string) map[string]string {
	all := make(map[string]string, len(values)+len(over))
	maps.Copy(all, values)
	maps.Copy(all, over)
	return all
}

// Misfit says why the controller's container cannot be given a size, and what to do; empty: it can. Kubernetes would
// refuse the pod, or the change of it: a pod keeps its quality of service for as long as it lives, and no request is
// above its limit. Webhook and planner both ask here.
func (p PodSize) Misfit(size Resources) string {
	if p.Whole {
		return "the pod has resources as a whole (spec.resources): take them out of the pod template"
	}
	sized := p.Controller.With(size)
	requests, limits := asked(sized)
	for _, name := range []string{"cpu", "memory"} {
		limit, limited := limits[name]
		if request := requests[name]; limited && request.Cmp(limit) > 0 {
			return fmt.Sprintf("its request of %s would be above its limit: let the size name limits.%s, too", name, name)
		}
	}
	was, is := class(p.containers(p.Controller)), class(p.containers(sized))
	if was == is {
		return ""
	}
	mend := "let the pod template ask for something of what the size names"
	switch {
	case was == guaranteed:
		mend = "let the size name requests and limits of what it changes, and the same of both"
	case is == guaranteed:
		mend = "let the size leave a limit above its request"
	}
	return fmt.Sprintf("its quality of service would be %s and no longer %s: %s", is, was, mend)
}

// Fitting is what of a size a container that asks for this can be given, and the resources whose request would be above their limit:
// Kubernetes refuses the whole write for one of them. Webhook and planner both ask here what of the plan a pod template can hold.
func (r Resources) Fitting(size Resources) (fits Resources, above []string) {
	sized, fits := r.With(size), size.clone()
	for _, name := range slices.Sorted(maps.Keys(overlaid(size.Requests, size.Limits))) {
		request, err := ReadQuantity(sized.Requests[name])
		if err != nil {
			continue
		}
		limit, err := ReadQuantity(sized.Limits[name])
		if err != nil || request.Cmp(limit) <= 0 {
			continue
		}
		delete(fits.Requests, name)
		delete(fits.Limits, name)
		above = append(above, name)
	}
	return fits, above
}

// asked are a container's requests and limits of what decides about a pod's class. A limit without a request is one.
func asked(r Resources) (requests, limits map[string]resource.Quantity) {
	requests, limits = map[string]resource.Quantity{}, map[string]resource.Quantity{}
	for _, name := range []string{"cpu", "memory"} {
		limit, limited := quantity(r.Limits[name])
		if limited {
			limits[name] = limit
		}
		request, ok := quantity(r.Requests[name])
		if _, said := r.Requests[name]; !said {
			request, ok = limit, limited
		}
		if ok {
			requests[name] = request
		}
	}
	return requests, limits
}

func quantity(text string) (resource.Quantity, bool) {
	if text == "" {
		return resource.Quantity{}, false
	}
	q, err := ReadQuantity(text)
	return q, err == nil && q.Sign() > 0
}

// class is a pod's quality of service as the API server works it out.
func class(containers []Resources) string {
	requests, limits := map[string]resource.Quantity{}, map[string]resource.Quantity{}
	all := true
	for _, c := range containers {
		r, l := asked(c)
		all = all && len(l) == len(mostSize)
		add(requests, r)
		add(limits, l)
	}
	if len(requests) == 0 && len(limits) == 0 {
		return bestEffort
	}
	for name, request := range requests {
		if limit, limited := limits[name]; !limited || limit.Cmp(request) != 0 {
			all = false
		}
	}
	if all && len(requests) == len(limits) {
		return guaranteed
	}
	return burstable
}

func add(to, values map[string]resource.Quantity) {
	for name, q := range values {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

// longQuantity is more than anybody writes: what the API server stores is shorter.
const longQuantity = 40

var errLongQuantity = errors.New("is longer than a quantity is, or has an exponent beyond 99")

// ReadQuantity reads what anybody may have written. The library takes any exponent, by which twelve letters are a number of two
// billion digits: comparing it takes minutes, and a gigabyte.
func ReadQuantity(text string) (resource.Quantity, error) {
	if len(text) > longQuantity {
		return resource.Quantity{}, errLongQuantity
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 2 {
		return resource.Quantity{}, errLongQuantity
	}
	return resource.ParseQuantity(text)
}

// ControllerCommand is the application-controller's binary; images that wrap it still name it.
const ControllerCommand = "argocd-application-controller"

// ContainerSigns is what tells the application-controller's container among those of a pod.
type ContainerSigns struct {
	Name   string
	Words  []string // its command, then its arguments
	HasEnv bool     // ARGOCD_CONTROLLER_REPLICAS, whatever its value
}

// FindController is the place of the application-controller among a pod's containers, whatever it is called: the one of
// that name, else the one that runs its binary, else the one with its env, else the one that names the binary
// somewhere, else the one with the name that the upstream manifests or the Helm chart give it, else the only one. Where
// a rule fits several, the next ones decide between them. It is -1 where none stands out. Planner and webhook both ask
// here.
func FindController(containers []ContainerSigns, named string) int {
	candidates := make([]int, len(containers))
	for i := range containers {
		candidates[i] = i
	}
	for _, fits := range []func(ContainerSigns) bool{
		func(c ContainerSigns) bool { return named != "" && c.Name == named },
		ContainerSigns.runsController, ContainerSigns.hasEnv, ContainerSigns.namesController, ContainerSigns.calledController,
	} {
		left := slices.DeleteFunc(slices.Clone(candidates), func(i int) bool { return !fits(containers[i]) })
		if len(left) > 0 {
			candidates = left
		}
		if len(left) == 1 {
			break
		}
	}
	if len(candidates) != 1 {
		return -1
	}
	return candidates[0]
}

// runsController reports whether the container's process is the binary: its first word is, or that of a launcher's
// line. A sidecar may name the binary too, as what it watches.
func (c ContainerSigns) runsController() bool {
	if len(c.Words) == 0 {
		return false
	}
	return isController(c.Words[0]) || isLauncher(c.Words[0]) && c.namesController()
}

// IsController reports whether the container runs the binary, or has the env that only it reads.
func (c ContainerSigns) IsController() bool { return c.HasEnv || c.runsController() }

func (c ContainerSigns) hasEnv() bool { return c.HasEnv }

// namesController looks into words, too: a shell's line is one.
func (c ContainerSigns) namesController() bool {
	return slices.ContainsFunc(c.Words, func(word string) bool {
		return slices.ContainsFunc(strings.FieldsFunc(word, endsWord), isController)
	})
}

func (c ContainerSigns) calledController() bool {
	return c.Name == ControllerCommand || c.Name == "application-controller"
}

func endsWord(r rune) bool { return strings.ContainsRune(" \t\r\n;&|()\"'`", r) }

func isController(word string) bool { return path.Base(word) == ControllerCommand }

// isLauncher knows what images and people put before a binary: a shell, a script, an init for containers.
func isLauncher(word string) bool {
	base := path.Base(word)
	return strings.HasSuffix(base, ".sh") || slices.Contains([]string{"sh", "bash", "ash", "dash", "busybox", "env", "exec", "nice",
		"timeout", "tini", "tini-static", "dumb-init", "catatonit", "su-exec", "gosu"}, base)
}
