package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/cmd/ballast/say"
	"ballast/planner/plan"
)

// ignores is what a tool is told so that it shows no difference, by the field that ballast writes.
type ignores struct{ argoCD, flux, terraform string }

// ofWorkload and ofSecrets are those of the workload, and of the cluster Secrets.
func ofWorkload(kind string) ignores {
	return ignores{
		argoCD: "spec: {ignoreDifferences: [{group: apps, kind: " + kind + ", jsonPointers: [/spec/replicas]}], " +
			"syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}}",
		flux:      "no spec.replicas and no env " + plan.EnvReplicas + " in what it applies",
		terraform: "lifecycle { ignore_changes = [spec[0].replicas] }",
	}
}

func ofSecrets() ignores {
	return ignores{
		argoCD: `spec: {ignoreDifferences: [{kind: Secret, jsonPointers: [/data/shard]}], ` +
			"syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}}",
		flux:      "no data.shard in what it applies",
		terraform: "lifecycle { ignore_changes = [shard] } (argocd_cluster), [data[\"shard\"]] (kubernetes_secret)",
	}
}

// of is what to tell a tool; docs/gitops.md has it of the others.
func (i ignores) of(tool string) string {
	lower, said := strings.ToLower(tool), ""
	switch {
	case strings.Contains(lower, "argo"):
		said = i.argoCD
	case strings.Contains(lower, "flux"), strings.Contains(lower, "kustomize"), strings.Contains(lower, "helm"):
		said = i.flux
	case strings.Contains(lower, "terraform"), strings.Contains(lower, "opentofu"):
		said = i.terraform
	default:
		return "docs/gitops.md has what to set for it, so that it shows no difference"
	}
	return said + "; docs/gitops.md"
}

// mark is a label or an annotation by which a GitOps tool knows what it applies.
type mark struct {
	key, tool string
	label     bool
	value     bool // the value's beginning is the owner's name
}

func marks() []mark {
	return []mark{
		{key: "argocd.argoproj.io/tracking-id", tool: "an Argo CD Application", value: true},
		{key: "argocd.argoproj.io/instance", tool: "an Argo CD Application", label: true, value: true},
		{key: "kustomize.toolkit.fluxcd.io/name", tool: "a Flux Kustomization", label: true, value: true},
		{key: "helm.toolkit.fluxcd.io/name", tool: "a Flux HelmRelease", label: true, value: true},
		{key: "meta.helm.sh/release-name", tool: "a Helm release", value: true},
		{key: "app.kubernetes.io/instance", tool: "an Argo CD Application or a Helm release,", label: true, value: true},
	}
}

// trackedBy is the tool whose mark an object has; empty: none has.
func trackedBy(m metav1.ObjectMeta) string {
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
		return mark.tool + " " + say.OneLine(name)
	}
	if m.Labels["app.kubernetes.io/managed-by"] == "Helm" {
		return "Helm"
	}
	return ""
}

// checkOwners tells which tool writes the same objects: by its mark, else by the managed fields.
func (s *seen) checkOwners() (all []Finding) {
	workload := ofWorkload(s.in.Workload.Kind)
	for _, o := range s.template.OwnerReferences {
		all = append(all, Finding{Result: Warning, Message: fmt.Sprintf("the workload belongs to %s %s, which writes it, too", o.Kind, o.Name),
			Mend: workload.of(o.Kind)})
	}
	by := trackedBy(s.template)
	if by != "" {
		all = append(all, Finding{Result: Warning, Message: "the workload is written by " + by, Mend: workload.of(by)})
	}
	for _, manager := range writersOf(s.template.ManagedFields, "f:spec") {
		if by == "" && !usual(manager) {
			all = append(all, Finding{Result: Warning, Message: fmt.Sprintf("%q writes the spec of the workload", manager),
				Mend: workload.of(manager)})
		}
	}
	return s.secretOwners(all)
}

// secretOwners adds who writes the cluster Secrets.
func (s *seen) secretOwners(all []Finding) []Finding {
	secrets, told := ofSecrets(), map[string]bool{}
	for _, tool := range slices.Sorted(maps.Keys(s.trackers)) {
		all = append(all, Finding{Result: Warning, Message: say.Plural(len(s.trackers[tool]), "cluster Secret") + " written by " + tool,
			Mend: secrets.of(tool), Subjects: s.trackers[tool]})
		for _, name := range s.trackers[tool] {
			told[name] = true
		}
	}
	for _, manager := range slices.Sorted(maps.Keys(s.writers)) {
		of := slices.DeleteFunc(slices.Clone(s.writers[manager]), func(name string) bool { return told[name] })
		if usual(manager) || len(of) == 0 {
			continue
		}
		all = append(all, Finding{Result: Warning, Subjects: of, Mend: secrets.of(manager),
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
