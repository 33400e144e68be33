package plan

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"ballast/cmd/ballast/say"
	"ballast/planner/calibrate"
	"ballast/planner/config"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/preview"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/page"
	"ballast/planner/page/view"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/sharding"
	"ballast/planner/size"
)

// someMoves is how many moves the table lists unless asked for all.
const someMoves = 20

func writePlanTable(w io.Writer, in input.Inputs, out cycle.Outcome, all bool) error {
	wl := in.Workload
	env := "none"
	if wl.EnvReplicas != nil {
		env = *wl.EnvReplicas
	}
	say.To(w, "%s %s/%s: %s, %s=%s; %s\n\n", wl.Kind, wl.Namespace, wl.Name, say.Plural(wl.Replicas, "replica"),
		plan.EnvReplicas, env,
		say.Plural(len(out.Fleet.Clusters), "cluster"))
	writeMetrics(w, out.Table)
	say.To(w, "Now: makespan over mean %.2f\n", outcome.Imbalance(out.Now))
	if err := say.Bars(w, out.Now); err != nil {
		return err
	}
	writeLine(w, out.Line)
	writeInUse(w, out.InUse)
	writeFull(w, out.Next.Full)
	if err := writeCandidate(w, in, out, all); err != nil {
		return err
	}
	if out.Decided && out.Reason != "" {
		say.To(w, "\nThe leader's next cycle begins this: %s.\n", out.Reason)
	}
	writeCounts(w, out.Counts)
	writeMoves(w, out.Blocked)
	if err := writeSizes(w, out.Sizing); err != nil {
		return err
	}
	if len(out.Problems) > 0 {
		say.To(w, "\nProblems (! keeps the plan from changing)\n")
		say.Problems(w, out.Problems)
	}
	say.To(w, "\nNothing was changed.\n")
	return nil
}

// writeLine says what a replica may carry, or is known to.
func writeLine(w io.Writer, l *cycle.Line) {
	switch {
	case l == nil:
	case l.Configured:
		say.To(w, "A replica may carry %s (partition.capacity); replica %d carries %.2f of that.\n", l.Load.Display(),
			l.Fullest, l.Share)
	default:
		say.To(w, "No partition.capacity: known is that a replica bears %s, as of %s; replica %d carries %.2f of that, and the number of replicas stays.\n",
			l.Load.Display(), l.Since.UTC().Format(time.DateOnly), l.Fullest, l.Share)
	}
}

// writeInUse says what a replica's clusters may take of its memory, and what they take.
func writeInUse(w io.Writer, u *cycle.InUse) {
	if u == nil {
		return
	}
	each := make([]string, len(u.Now))
	for r, bytes := range u.Now {
		each[r] = bytes.String()
	}
	say.To(w, "Memory: a replica has %s for its clusters (%s); they take %s.\n", u.Room, u.From,
		strings.Join(each, ", "))
	if u.Learned != nil {
		say.To(w, "  %s\n", learned(*u.Learned))
	}
}

// writeFull says which replicas take no new cluster.
func writeFull(w io.Writer, full []int) {
	if len(full) == 0 {
		return
	}
	say.To(w, "Full: replica %s; a new cluster goes to another one while there is one.\n",
		strings.Trim(strings.ReplaceAll(fmt.Sprint(full), " ", ", "), "[]"))
}

// learned says what clusters take of memory by what the pods have in use, and how well that tells it.
func learned(f calibrate.Fit) string {
	heldOut := ""
	if f.HeldOut != nil {
		heldOut = fmt.Sprintf(", %.2f of each pod by the others", *f.HeldOut)
	}
	var each []string
	for _, id := range slices.Sorted(maps.Keys(f.Per)) {
		each = append(each, fmt.Sprintf("%s of %s", bytesOf(f.Per[id]), id))
	}
	return fmt.Sprintf("Learned of %s of %s (R2 %.2f%s): one more takes %s; a replica without any cluster takes %s, and up to %s are left free for what that is off by.",
		say.Plural(f.Samples, "sample"), say.Plural(f.Pods, "pod"), f.R2, heldOut, strings.Join(each, ", "),
		bytesOf(f.Base), bytesOf(f.Margin))
}

// bytesOf is a fitted number of bytes for people.
func bytesOf(b float64) plan.Bytes {
	bytes, err := plan.NewBytes(b)
	if err != nil {
		return 0
	}
	return bytes
}

// writeFits is the table of moves with whether each new owner has the memory.
func writeFits(w io.Writer, c *cycle.Candidate, loads map[string]string, room plan.Bytes, most int) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	say.To(t, "  CLUSTER\tLOAD\tFROM\tTO\tREASON\tTAKES\tMEMORY OF THE NEW OWNER\n")
	for i, m := range c.Moves {
		if most > 0 && i == most {
			say.To(t, "  ... and %d more (--all shows them)\n", len(c.Moves)-most)
			break
		}
		fit, says := c.Memory[i], "fits"
		if !fit.Fits {
			says = "does not fit"
		}
		say.To(t, "  %s\t%s\t%d\t%d\t%s\t", m.Cluster, loads[m.Cluster], m.From, m.To, say.OrDash(string(m.Reason)))
		say.To(t, "%s\t%s -> %s of %s: %s\n", fit.Takes, fit.Before, fit.After, room, says)
	}
	return t.Flush()
}

func writeMetrics(w io.Writer, table measure.Table) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, c := range table.Columns {
		var total float64
		for _, v := range c.Values {
			total += v
		}
		say.To(t, "  %s\t%s\tfleet total %.4g\n", c.ID, gather.Coverage(c), total)
	}
	t.Flush()
	say.To(w, "\n")
}

// writeRelisted says how many live objects the new owners of what moves list, where they are measured.
func writeRelisted(w io.Writer, c config.PlannerConfig, out cycle.Outcome) {
	each := loads.Objects(c, out.Table)
	if each == nil || len(out.Candidate.Moves) == 0 {
		return
	}
	moves, objects := map[string]bool{}, 0.0
	for _, m := range out.Candidate.Moves {
		moves[m.Cluster] = true
	}
	for i, cl := range out.Fleet.Clusters {
		if moves[cl.Shard.ID] {
			objects += each[i]
		}
	}
	say.To(w, "  The new owners of what moves list %.0f objects anew.\n", objects)
}

// writeWrites says what the writes of cluster Secrets cost Argo CD.
func writeWrites(w io.Writer, stamps, moves int) {
	var writes []string
	if stamps > 0 {
		writes = append(writes, say.Plural(stamps, "write")+" in one burst for owners that no Secret names yet")
	}
	if moves > 0 {
		writes = append(writes, say.Plural(moves, "write")+" for these moves")
	}
	if len(writes) > 0 {
		say.To(w, "  Each cluster Secret that is written has Argo CD look again at every ApplicationSet with a cluster generator: %s.\n",
			strings.Join(writes, ", "))
	}
}

// unstamped is how many Secrets that ballast may write name no replica.
func unstamped(out cycle.Outcome) int {
	n := 0
	for _, c := range out.Fleet.Clusters {
		if standing.Managed(c) && c.Explicit.State != discover.ShardValid {
			n++
		}
	}
	return n
}

func writeCandidate(w io.Writer, in input.Inputs, out cycle.Outcome, all bool) error {
	c := out.Candidate
	if c == nil {
		say.To(w, "\nNo evidence, no move: without believable metrics ballast would keep everything as it is.\n")
		return nil
	}
	say.To(w, "\nWould be: makespan over mean %.2f on %s, %s\n",
		outcome.Imbalance(c.Replicas), say.Plural(len(c.Replicas), "replica"), say.Plural(len(c.Moves), "move"))
	if err := say.Bars(w, c.Replicas); err != nil {
		return err
	}
	if room := out.Line.Headroom(out.Now, c.Replicas); room != "" && len(c.Moves) > 0 {
		say.To(w, "  Headroom: %s.\n", room)
	}
	for _, lost := range c.Lost {
		say.To(w, "  - %s\n", lost)
	}
	if c.Verdict != "" {
		say.To(w, "  Evaluation: %s.\n", c.Verdict)
	}
	if gains := c.Gains(); gains != "" {
		say.To(w, "  Gains and costs: %s.\n", gains)
	}
	writeAlternatives(w, cycle.Alternatives(in, out))
	if in.InForce != nil && in.InForce.Rollout != nil {
		say.To(w, "\nA rollout is under way: %s. Nothing else begins before its end; ballast status says how far it is.\n",
			say.Rollout(in.InForce.Rollout))
	} else if ahead := preview.Foresee(in, out); ahead != nil {
		writeAhead(w, *ahead, in.Now)
		writeRelisted(w, in.Config, out)
		writeWrites(w, unstamped(out), ahead.Moves)
	}
	if len(c.Moves) == 0 {
		return nil
	}
	loads := map[string]string{}
	for i, cl := range out.Fleet.Clusters {
		loads[cl.Shard.ID] = out.Loads[i].Display()
	}
	say.To(w, "\n")
	most := someMoves
	if all {
		most = 0
	}
	if out.InUse != nil && len(c.Memory) == len(c.Moves) {
		return writeFits(w, c, loads, out.InUse.Room, most)
	}
	return say.Moves(w, c.Moves, loads, most)
}

// writeAlternatives puts what else could be beside the candidate, by the same loads.
func writeAlternatives(w io.Writer, all []cycle.Alternative) {
	say.To(w, "\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	say.To(t, "  By the same loads\treplicas\tmakespan over mean\tmoves\n")
	for _, a := range all {
		say.To(t, "  %s\t%d\t%.2f\t%d\n", cmp.Or(alternativeNames[a.Name], a.Name), a.Replicas, a.Imbalance, a.Moves)
	}
	t.Flush()
}

// alternativeNames are what people call them.
var alternativeNames = map[string]string{
	"candidate":             "as ballast would have it",
	string(sharding.Legacy): "Argo CD's legacy", string(sharding.RoundRobin): "Argo CD's round-robin",
	string(sharding.ConsistentHashing): "Argo CD's consistent-hashing",
}

// writeAhead says in a line or two how it would come about, and what comes before.
func writeAhead(w io.Writer, a preview.Forecast, now time.Time) {
	say.To(w, "\nRollout %s: %s%s\n", a.Mode, strings.Join(aheadSteps(a, now), ", "), aheadPace(a, now))
	switch {
	case a.WithNext:
		say.To(w, "  Before that, once and for all: %s becomes %d with the next change of the pod template that anybody makes "+
			"(rollout.live.adopt); the rest waits for it.\n",
			plan.EnvReplicas, a.To.ControllerReplicas)
	case a.Once:
		say.To(w, "  Before that, once and for all: %s becomes %d, which restarts the application-controller.\n",
			plan.EnvReplicas, a.To.ControllerReplicas)
	}
	if n := len(a.Missing); n > 0 {
		more := ""
		if n > 1 {
			more = fmt.Sprintf("; and %d more like that", n-1)
		}
		say.To(w, "  It waits: %s%s.\n", a.Missing[0], more)
	}
}

// aheadSteps are what a mode does for it, in order. Where the budget is smaller than a wave, there are more waves.
func aheadSteps(a preview.Forecast, now time.Time) []string {
	moves := moving(a.Moves)
	switch a.Mode {
	case plan.ModeX0Y:
		return []string{"every replica stops", moves, say.Plural(a.To.Replicas, "replica") + " come back"}
	case plan.ModeLive:
		moves = fmt.Sprintf("%s of at most %s", say.Plural(a.Waves, "wave"), say.Plural(a.PerWave, "cluster"))
		if a.Done.After(now) {
			moves = "at least " + moves
		}
	}
	var steps []string
	if a.Moves > 0 {
		steps = append(steps, moves)
	}
	counts := fmt.Sprintf("%d -> %s", a.From.Replicas, say.Plural(a.To.Replicas, "replica"))
	switch {
	case a.To.Replicas > a.From.Replicas:
		steps = append([]string{counts}, steps...)
	case a.To.Replicas < a.From.Replicas:
		steps = append(steps, counts)
	}
	switch {
	case len(steps) == 0:
		return []string{"nothing moves"}
	case a.Restarts:
		return append(steps, "and every pod restarts")
	}
	return append(steps, "and nothing restarts for it")
}

func moving(clusters int) string {
	switch clusters {
	case 0:
		return "no cluster moves"
	case 1:
		return "1 cluster moves"
	}
	return say.Plural(clusters, "cluster") + " move at once"
}

// aheadPace is how long the move budget makes it take.
func aheadPace(a preview.Forecast, now time.Time) string {
	switch took := a.Done.Sub(now); {
	case !a.Limited || a.Moves == 0:
		return "."
	case a.Done.IsZero():
		return "; the move budget never has room for it."
	case took > 0:
		return fmt.Sprintf("; by the move budget it takes %s at least.", say.Span(took))
	}
	return "; the move budget has room for all of it now."
}

// planResult is what -o json prints.
type planResult struct {
	Plan      plan.Plan          `json:"plan"`
	Reason    string             `json:"reason,omitempty"`
	Shards    []plan.Shard       `json:"shards"`
	Values    []plan.MetricValue `json:"values"`
	Loads     []plan.LoadIndex   `json:"loads"`
	Now       []plan.Replica     `json:"now"`
	Line      *cycle.Line        `json:"line,omitempty"`
	InUse     *cycle.InUse       `json:"inUse,omitempty"`
	Candidate *cycle.Candidate   `json:"candidate,omitempty"`
	Sizing    *resize.Sizing     `json:"sizing,omitempty"`
	Counts    *cycle.Counts      `json:"counts,omitempty"`
	Blocked   []resize.Blocked   `json:"blocked,omitempty"` // moves that wait

	Alternatives []cycle.Alternative `json:"alternatives,omitempty"`

	Ahead    *preview.Forecast `json:"ahead,omitempty"`
	Problems []problem.Problem `json:"problems,omitempty"`
}

func writePlanJSON(w io.Writer, in input.Inputs, out cycle.Outcome) error {
	r := planResult{Plan: out.Next, Reason: out.Reason, Values: measure.MetricValues(out.Table), Now: out.Now,
		Line: out.Line, InUse: out.InUse, Candidate: out.Candidate, Sizing: out.Sizing, Counts: out.Counts,
		Blocked:      out.Blocked,
		Alternatives: cycle.Alternatives(in, out),
		Ahead:        preview.Foresee(in, out), Problems: out.Problems}
	for i, c := range out.Fleet.Clusters {
		r.Shards = append(r.Shards, c.Shard)
		if out.Loads != nil {
			r.Loads = append(r.Loads, plan.LoadIndex{Shard: c.Shard, Value: out.Loads[i],
				DisplayValue: out.Loads[i].Display()})
		}
	}
	return say.JSON(w, r)
}

// writePlanHTML prints a page that stands alone.
func writePlanHTML(w io.Writer, in input.Inputs, out cycle.Outcome) error {
	text, err := view.Alone(page.OfCycle(in, out, alternativeNames))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// writePlanYAML prints the document that would be written now.
func writePlanYAML(w io.Writer, out cycle.Outcome) error {
	next := out.Next.Clone()
	next.Revision = max(next.Revision, 1)
	text, err := codec.Encode(next)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// Ahead says in a line or two how a forecast would come about.
func Ahead(w io.Writer, a preview.Forecast, in input.Inputs) { writeAhead(w, a, in.Now) }

// MayCarry says what a replica may carry, or is known to.
func MayCarry(w io.Writer, l *cycle.Line) { writeLine(w, l) }

// writeCounts says how many replicas the weights ask for, and what keeps their number from changing.
func writeCounts(w io.Writer, c *cycle.Counts) {
	if c == nil || c.Weights == nil && len(c.Blocked) == 0 {
		return
	}
	say.To(w, "\nThe number of replicas\n")
	if of := c.Weights; of != nil {
		say.To(w, "  size.weights ask for %d: %s; from this load on, %d %% of the growth makes replicas larger\n",
			of.Replicas, of.Why, of.Weight)
		if of.OverNode {
			say.To(w, "  even so one of them asks for more than size.nodeCap\n")
		}
	}
	for _, b := range c.Blocked {
		say.To(w, "  %s\n", b)
	}
}

// writeMoves says which moves that level wait for a rule of change.
func writeMoves(w io.Writer, blocked []resize.Blocked) {
	if len(blocked) == 0 {
		return
	}
	say.To(w, "\nMoves that wait\n")
	for _, b := range blocked {
		say.To(w, "  %s\n", b)
	}
}

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
