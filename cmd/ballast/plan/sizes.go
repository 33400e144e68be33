package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// writeSizes says how large each replica is and would be, and what keeps changes from happening.
func writeSizes(w io.Writer, s *cycle.Sizing) error {
	if s == nil {
		return nil
	}
	how := "in place, without a restart"
	if s.Apply == config.Template {
		how = "by the pod template, which restarts every replica"
	}
	say.To(w, "\nSizes, %s\n", how)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say.To(t, "  replica\twanted by the policies\theld\n")
	for _, r := range s.Replicas {
		say.To(t, "  %s\t%s\t%s\n", replicaName(r.Replica), sizeWords(r.Wanted), sizeWords(r.InForce))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, b := range s.Blocked {
		say.To(w, "  %s\n", b)
	}
	return nil
}

func replicaName(replica int) string {
	if replica == size.All {
		return "all"
	}
	return fmt.Sprint(replica)
}

// sizeWords is a size in a cell.
func sizeWords(r plan.Resources) string {
	var words []string
	for _, list := range []struct {
		name string
		of   map[string]string
	}{{"requests", r.Requests}, {"limits", r.Limits}} {
		for _, resource := range slices.Sorted(maps.Keys(list.of)) {
			words = append(words, fmt.Sprintf("%s.%s %s", list.name, resource, list.of[resource]))
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}
