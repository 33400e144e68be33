package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"ballast/planner"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// someMoves is how many moves the table lists unless asked for all.
const someMoves = 20

func writePlanTable(w io.Writer, in planner.Inputs, out planner.Outcome, all bool) error {
	wl := in.Workload
	env := "none"
	if wl.EnvReplicas != nil {
		env = *wl.EnvReplicas
	}
	fmt.Fprintf(w, "%s %s/%s: %s, %s=%s; %s\n\n", wl.Kind, wl.Namespace, wl.Name, plural(wl.Replicas, "replica"), plan.EnvReplicas, env,
		plural(len(out.Fleet.Clusters), "cluster"))
	writeMetrics(w, out.Table)
	fmt.Fprintf(w, "Now: makespan over mean %.2f\n", planner.Imbalance(out.Now))
	if err := writeBars(w, out.Now); err != nil {
		return err
	}
	if err := writeCandidate(w, out, all); err != nil {
		return err
	}
	if len(out.Problems) > 0 {
		fmt.Fprintln(w, "\nProblems (! keeps the plan from changing)")
		writeProblems(w, out.Problems)
	}
	fmt.Fprintln(w, "\nNothing was changed.")
	return nil
}

func writeMetrics(w io.Writer, table poll.Table) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, c := range table.Columns {
		var total float64
		for _, v := range c.Values {
			total += v
		}
		fmt.Fprintf(t, "  %s\t%s\tfleet total %.4g\n", c.ID, planner.Coverage(c), total)
	}
	t.Flush()
	fmt.Fprintln(w)
}

func writeCandidate(w io.Writer, out planner.Outcome, all bool) error {
	c := out.Candidate
	if c == nil {
		fmt.Fprintln(w, "\nNo evidence, no move: without believable metrics ballast would keep everything as it is.")
		return nil
	}
	fmt.Fprintf(w, "\nWould be: makespan over mean %.2f on %s, %s\n", planner.Imbalance(c.Replicas), plural(len(c.Replicas), "replica"), plural(len(c.Moves), "move"))
	if err := writeBars(w, c.Replicas); err != nil {
		return err
	}
	for _, lost := range c.Lost {
		fmt.Fprintf(w, "  - %s\n", lost)
	}
	if len(c.Moves) == 0 {
		return nil
	}
	loads := map[string]string{}
	for i, cl := range out.Fleet.Clusters {
		loads[cl.Shard.ID] = out.Loads[i].Display()
	}
	fmt.Fprintln(w)
	most := someMoves
	if all {
		most = 0
	}
	return writeMoves(w, c.Moves, loads, most)
}

// planResult is what -o json prints.
type planResult struct {
	Plan      plan.Plan          `json:"plan"`
	Reason    string             `json:"reason,omitempty"`
	Shards    []plan.Shard       `json:"shards"`
	Values    []plan.MetricValue `json:"values"`
	Loads     []plan.LoadIndex   `json:"loads"`
	Now       []plan.Replica     `json:"now"`
	Candidate *planner.Candidate `json:"candidate,omitempty"`
	Problems  []planner.Problem  `json:"problems,omitempty"`
}

func writePlanJSON(w io.Writer, out planner.Outcome) error {
	r := planResult{Plan: out.Next, Reason: out.Reason, Values: poll.MetricValues(out.Table), Now: out.Now, Candidate: out.Candidate, Problems: out.Problems}
	for i, c := range out.Fleet.Clusters {
		r.Shards = append(r.Shards, c.Shard)
		if out.Loads != nil {
			r.Loads = append(r.Loads, plan.LoadIndex{Shard: c.Shard, Value: out.Loads[i], DisplayValue: out.Loads[i].Display()})
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// writePlanYAML prints the document that would be written now.
func writePlanYAML(w io.Writer, out planner.Outcome) error {
	next := out.Next.Clone()
	next.Revision = max(next.Revision, 1)
	text, err := plan.Encode(next)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}
