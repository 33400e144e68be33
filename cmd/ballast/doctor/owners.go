package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ballast/cmd/ballast/doctor/finding"
	"ballast/cmd/ballast/doctor/gitops"
	"ballast/cmd/ballast/doctor/look"
	"ballast/cmd/ballast/say"
)

// checkOwners tells which tool writes the same objects: by its mark, else by the managed fields.
func checkOwners(s *look.Seen) (all []finding.Finding) {
	workload := gitops.OfWorkload(s.In.Workload.Kind)
	for _, o := range s.Template.OwnerReferences {
		all = append(all, finding.Warning.With(fmt.Sprintf("the workload belongs to %s %s, which writes it, too",
			o.Kind, o.Name),
			workload.For(gitops.ToolOf(o.Kind)))...)
	}
	by := gitops.TrackedBy(s.Template)
	if by.Said != "" {
		all = append(all, finding.Warning.With("the workload is written by "+by.Said, workload.For(by.Tool))...)
	}
	for _, manager := range gitops.WritersOf(s.Template.ManagedFields, "f:spec") {
		if by.Said == "" && !usual(manager) {
			all = append(all, finding.Warning.With(fmt.Sprintf("%q writes the spec of the workload", manager),
				workload.For(gitops.ToolOf(manager)))...)
		}
	}
	return secretOwners(s, all)
}

// secretOwners adds who writes the cluster Secrets.
func secretOwners(s *look.Seen, all []finding.Finding) []finding.Finding {
	secrets, told := gitops.OfSecrets(), map[string]bool{}
	for _, by := range slices.SortedFunc(maps.Keys(s.Trackers), func(a, b gitops.Tracker) int { return cmp.Compare(a.Said, b.Said) }) {
		all = append(all, finding.Finding{Result: finding.Warning, Mend: secrets.For(by.Tool), Subjects: s.Trackers[by],
			Message: say.Plural(len(s.Trackers[by]), "cluster Secret") + " written by " + by.Said})
		for _, name := range s.Trackers[by] {
			told[name] = true
		}
	}
	for _, manager := range slices.Sorted(maps.Keys(s.Writers)) {
		of := slices.DeleteFunc(slices.Clone(s.Writers[manager]), func(name string) bool { return told[name] })
		if usual(manager) || len(of) == 0 {
			continue
		}
		all = append(all, finding.Finding{Result: finding.Warning, Subjects: of,
			Mend:    secrets.For(gitops.ToolOf(manager)),
			Message: fmt.Sprintf("%q writes the data of %s", manager, say.Plural(len(of), "cluster Secret"))})
	}
	if len(all) == 0 {
		return finding.Well("no tool but Argo CD and people writes the workload or the cluster Secrets")
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
