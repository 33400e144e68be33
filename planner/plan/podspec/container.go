package podspec

import (
	"path"
	"slices"
	"strings"
)

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
		ContainerSigns.runsController, ContainerSigns.hasEnv, ContainerSigns.namesController,
		ContainerSigns.calledController,
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
	return strings.HasSuffix(base, ".sh") || slices.Contains([]string{"sh", "bash", "ash", "dash", "busybox", "env",
		"exec", "nice",
		"timeout", "tini", "tini-static", "dumb-init", "catatonit", "su-exec", "gosu"}, base)
}
