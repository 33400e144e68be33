// Package gitops knows which GitOps tool writes an object, and what to tell it so that it leaves be what ballast
// writes.
package gitops

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/cmd/ballast/say"
	"ballast/planner/plan"
)

// Ignores is what a tool is told so that it shows no difference, by the field that ballast writes. To Helm and the
// operator of Argo CD nothing is told: they write, and look for no difference.
type Ignores struct{ argoCD, flux, terraform, nothing string }

// OfWorkload are those of the workload.
func OfWorkload(kind string) Ignores {
	env, envs := "", ""
	if kind == plan.StatefulSet {
		env = `, jqPathExpressions: ['.spec.template.spec.containers[].env[]? | select(.name == "` + plan.EnvReplicas +
			`")']`
		envs = ", spec[0].template[0].spec[0].container[0].env"
	}
	return Ignores{
		argoCD: "spec: {ignoreDifferences: [{group: apps, kind: " + kind + ", jsonPointers: [/spec/replicas]" + env +
			"}], " +
			"syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}}",
		flux:      "no spec.replicas and no env " + plan.EnvReplicas + " in what it applies",
		terraform: "lifecycle { ignore_changes = [spec[0].replicas" + envs + "] }",
		nothing:   "nothing: replicas and env stay the plan's in its own write",
	}
}

// OfSecrets are those of the cluster Secrets.
func OfSecrets() Ignores {
	return Ignores{
		argoCD: `spec: {ignoreDifferences: [{kind: Secret, jsonPointers: [/data/shard]}], ` +
			"syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}}",
		flux:      "no data.shard in what it applies",
		terraform: "lifecycle { ignore_changes = [shard] } (argocd_cluster), [data[\"shard\"]] (kubernetes_secret)",
		nothing:   "nothing: data.shard stays the plan's in its own write",
	}
}

// For is what to tell a tool; docs/gitops.md has it of the others.
func (i Ignores) For(t Tool) string {
	var said string
	switch t {
	case ArgoCD:
		said = i.argoCD
	case ArgoCDOrHelm:
		said = "for an Application: " + i.argoCD
	case Flux:
		said = i.flux
	case Terraform:
		said = i.terraform
	case Helm, Operator:
		said = i.nothing
	default:
		return "docs/gitops.md has what to set for it, so that it shows no difference"
	}
	return said + "; docs/gitops.md"
}

// Tool is what writes the same objects.
type Tool int

// The tools of which anything is known.
const (
	unknownTool Tool = iota
	ArgoCD
	ArgoCDOrHelm
	Flux
	Helm
	Operator
	Terraform
)

// ToolOf guesses a tool by a field manager, or by the kind of an owner: the words that programs call themselves by.
// Never by the name that people gave an object: most are called after Argo CD.
func ToolOf(word string) Tool {
	lower := strings.ToLower(word)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) })
	}
	switch {
	case has("flux", "kustomize", "kustomization", "helm-controller", "helmrelease"):
		return Flux
	case has("helm"):
		return Helm
	case has("terraform", "opentofu"):
		return Terraform
	case word == "ArgoCD", has("argocd-operator"):
		return Operator
	case has("argo"):
		return ArgoCD
	}
	return unknownTool
}

// mark is a label or an annotation by which a GitOps tool knows what it applies. The value's beginning is the owner's
// name.
type mark struct {
	key, said string
	tool      Tool
	label     bool
}

func marks() []mark {
	return []mark{
		{key: "argocd.argoproj.io/tracking-id", said: "an Argo CD Application", tool: ArgoCD},
		{key: "argocd.argoproj.io/instance", said: "an Argo CD Application", tool: ArgoCD, label: true},
		{key: "kustomize.toolkit.fluxcd.io/name", said: "a Flux Kustomization", tool: Flux, label: true},
		{key: "helm.toolkit.fluxcd.io/name", said: "a Flux HelmRelease", tool: Flux, label: true},
		{key: "meta.helm.sh/release-name", said: "a Helm release", tool: Helm},
		{key: "app.kubernetes.io/instance", said: "an Argo CD Application or a Helm release,", tool: ArgoCDOrHelm,
			label: true},
	}
}

// Tracker is who applies an object, by its mark: the tool, and how people are told of it. Empty: no mark says it.
type Tracker struct {
	Said string
	Tool Tool
}

// TrackedBy is who applies an object, by its marks.
func TrackedBy(m metav1.ObjectMeta) Tracker {
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
		return Tracker{mark.said + " " + say.OneLine(name), mark.tool}
	}
	if m.Labels["app.kubernetes.io/managed-by"] == "Helm" {
		return Tracker{"Helm", Helm}
	}
	return Tracker{}
}

// WritersOf are the managers that own something below a field of an object, by the field set and without any value.
func WritersOf(fields []metav1.ManagedFieldsEntry, below string) (names []string) {
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
