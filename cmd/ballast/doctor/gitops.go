package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/cmd/ballast/say"
	"ballast/planner/plan"
)

// ignores is what a tool is told so that it shows no difference, by the field that ballast writes. To Helm and the operator of Argo CD
// nothing is told: they write, and look for no difference.
type ignores struct{ argoCD, flux, terraform, nothing string }

// ofWorkload and ofSecrets are those of the workload, and of the cluster Secrets.
func ofWorkload(kind string) ignores {
	env, envs := "", ""
	if kind == plan.StatefulSet {
		env = `, jqPathExpressions: ['.spec.template.spec.containers[].env[]? | select(.name == "` + plan.EnvReplicas + `")']`
		envs = ", spec[0].template[0].spec[0].container[0].env"
	}
	return ignores{
		argoCD: "spec: {ignoreDifferences: [{group: apps, kind: " + kind + ", jsonPointers: [/spec/replicas]" + env + "}], " +
			"syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}}",
		flux:      "no spec.replicas and no env " + plan.EnvReplicas + " in what it applies",
		terraform: "lifecycle { ignore_changes = [spec[0].replicas" + envs + "] }",
		nothing:   "nothing: replicas and env stay the plan's in its own write",
	}
}

func ofSecrets() ignores {
	return ignores{
		argoCD: `spec: {ignoreDifferences: [{kind: Secret, jsonPointers: [/data/shard]}], ` +
			"syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}}",
		flux:      "no data.shard in what it applies",
		terraform: "lifecycle { ignore_changes = [shard] } (argocd_cluster), [data[\"shard\"]] (kubernetes_secret)",
		nothing:   "nothing: data.shard stays the plan's in its own write",
	}
}

// of is what to tell a tool; docs/gitops.md has it of the others.
func (i ignores) of(t tool) string {
	var said string
	switch t {
	case argoCD:
		said = i.argoCD
	case argoCDOrHelm:
		said = "for an Application: " + i.argoCD
	case flux:
		said = i.flux
	case terraform:
		said = i.terraform
	case helm, operator:
		said = i.nothing
	default:
		return "docs/gitops.md has what to set for it, so that it shows no difference"
	}
	return said + "; docs/gitops.md"
}

// tool is what writes the same objects.
type tool int

const (
	unknownTool tool = iota
	argoCD
	argoCDOrHelm
	flux
	helm
	operator
	terraform
)

// toolOf guesses a tool by a field manager, or by the kind of an owner: the words that programs call themselves by. Never by the name that
// people gave an object: most are called after Argo CD.
func toolOf(word string) tool {
	lower := strings.ToLower(word)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) })
	}
	switch {
	case has("flux", "kustomize", "kustomization", "helm-controller", "helmrelease"):
		return flux
	case has("helm"):
		return helm
	case has("terraform", "opentofu"):
		return terraform
	case word == "ArgoCD", has("argocd-operator"):
		return operator
	case has("argo"):
		return argoCD
	}
	return unknownTool
}

// mark is a label or an annotation by which a GitOps tool knows what it applies. The value's beginning is the owner's name.
type mark struct {
	key, said string
	tool      tool
	label     bool
}

func marks() []mark {
	return []mark{
		{key: "argocd.argoproj.io/tracking-id", said: "an Argo CD Application", tool: argoCD},
		{key: "argocd.argoproj.io/instance", said: "an Argo CD Application", tool: argoCD, label: true},
		{key: "kustomize.toolkit.fluxcd.io/name", said: "a Flux Kustomization", tool: flux, label: true},
		{key: "helm.toolkit.fluxcd.io/name", said: "a Flux HelmRelease", tool: flux, label: true},
		{key: "meta.helm.sh/release-name", said: "a Helm release", tool: helm},
		{key: "app.kubernetes.io/instance", said: "an Argo CD Application or a Helm release,", tool: argoCDOrHelm, label: true},
	}
}

// tracker is who applies an object, by its mark: the tool, and how people are told of it. Empty: no mark says it.
type tracker struct {
	said string
	tool tool
}

func trackedBy(m metav1.ObjectMeta) tracker {
	for _, mark := range marks() {
		of := m.Annotations
		if mark.label {
			of = m.Labels
		}
		value, marked := of[mark.key]
		if !marked {
			continue
		}
		name, _, _ := strings.Cut(value, ":") // of a tracking ID
		return tracker{mark.said + " " + say.OneLine(name), mark.tool}
	}
	if m.Labels["app.kubernetes.io/managed-by"] == "Helm" {
		return tracker{"Helm", helm}
	}
	return tracker{}
}

// checkOwners tells which tool writes the same objects: by its mark, else by the managed fields.
func (s *seen) checkOwners() (all []Finding) {
	workload := ofWorkload(s.in.Workload.Kind)
	for _, o := range s.template.OwnerReferences {
		all = append(all, Finding{Result: Warning, Message: fmt.Sprintf("the workload belongs to %s %s, which writes it, too", o.Kind, o.Name),
			Mend: workload.of(toolOf(o.Kind))})
	}
	by := trackedBy(s.template)
	if by.said != "" {
		all = append(all, Finding{Result: Warning, Message: "the workload is written by " + by.said, Mend: workload.of(by.tool)})
	}
	for _, manager := range writersOf(s.template.ManagedFields, "f:spec") {
		if by.said == "" && !usual(manager) {
			all = append(all, Finding{Result: Warning, Message: fmt.Sprintf("%q writes the spec of the workload", manager),
				Mend: workload.of(toolOf(manager))})
		}
	}
	return s.secretOwners(all)
}

// secretOwners adds who writes the cluster Secrets.
func (s *seen) secretOwners(all []Finding) []Finding {
	secrets, told := ofSecrets(), map[string]bool{}
	for _, by := range slices.SortedFunc(maps.Keys(s.trackers), func(a, b tracker) int { return cmp.Compare(a.said, b.said) }) {
		all = append(all, Finding{Result: Warning, Message: say.Plural(len(s.trackers[by]), "cluster Secret") + " written by " + by.said,
			Mend: secrets.of(by.tool), Subjects: s.trackers[by]})
		for _, name := range s.trackers[by] {
			told[name] = true
		}
	}
	for _, manager := range slices.Sorted(maps.Keys(s.writers)) {
		of := slices.DeleteFunc(slices.Clone(s.writers[manager]), func(name string) bool { return told[name] })
		if usual(manager) || len(of) == 0 {
			continue
		}
		all = append(all, Finding{Result: Warning, Subjects: of, Mend: secrets.of(toolOf(manager)),
			Message: fmt.Sprintf("%q writes the data of %s", manager, say.Plural(len(of), "cluster Secret"))})
	}
	if len(all) == 0 {
		return ok("no tool but Argo CD and people writes the workload or the cluster Secrets")
	}
	return all
}

// usual reports whether a manager is a person's command, Argo CD's own or ballast.
func usual(manager string) bool {
	for _, prefix := range []string{"kubectl", "argocd", "ballast"} {
		if strings.HasPrefix(manager, prefix) && manager != "argocd-controller" {
			return true
		}
	}
	return false
}

// writersOf are the managers that own something below a field of an object, by the field set and without any value.
func writersOf(fields []metav1.ManagedFieldsEntry, below string) (names []string) {
	for _, e := range fields {
		var set map[string]json.RawMessage
		if e.FieldsV1 == nil || e.Subresource != "" || json.Unmarshal(e.FieldsV1.GetRawBytes(), &set) != nil {
			continue
		}
		if _, owns := set[below]; owns && !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	return names
}
