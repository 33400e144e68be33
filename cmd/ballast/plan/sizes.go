package plan

import (
	"fmt"
	"io"
	"text/tabwriter"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/cycle/resize"
	"ballast/planner/size"
)

// writeSizes says how large each replica is and would be, and what keeps changes from happening.
func writeSizes(w io.Writer, s *resize.Sizing) error {
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
		say.To(t, "  %s\t%s\t%s\n", replicaName(r.Replica), say.Size(r.Wanted), say.Size(r.InForce))
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
