package overview

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
	"ballast/cmd/ballast/steer"
	"ballast/planner/decisions"
	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/status"
	"ballast/planner/store/history"
)

// WriteTable prints it for people.
func (s *Overview) WriteTable(w io.Writer) error {
	if s.Plan == nil {
		say.To(w, "There is no plan in force. %s\n", s.PlanError)
		return nil
	}
	say.To(w, "Plan revision %d, %s, decided %s by %s\n  %s\n", s.Plan.Revision, s.Plan.Mode, s.DecidedAt, s.DecidedBy,
		s.Reason)
	s.writeLeader(w)
	if err := s.writeConditions(w); err != nil {
		return err
	}
	s.writeWorkload(w)
	if s.Rollout != nil {
		rolling{s}.write(w)
	}
	s.writeAsked(w)
	rows := replicas{s}
	if err := rows.writeLoads(w); err != nil {
		return err
	}
	if s.Slots != nil {
		if err := rows.writeSlots(w); err != nil {
			return err
		}
	}
	rows.writeSizes(w)
	s.writeElsewhere(w)
	s.writeTrouble(w)
	s.writeBudget(w)
	s.writePutBack(w)
	for _, b := range s.Blocked {
		say.To(w, "Blocked  %s\n", say.OneLine(b.String()))
	}
	s.writeLists(w)
	s.writeBeside(w)
	say.Problems(w, s.Problems)
	s.writeDecisions(w)
	return nil
}

func (s *Overview) writeLeader(w io.Writer) {
	if o := s.Owner; o != nil {
		say.To(w, "Owner    another installation (%s), which plans in ConfigMap %q as %q: this plan's planners stand by\n",
			cmp.Or(o.Identity, "away at present"), o.Plan, o.PlannerUser)
		s.writeClaimsEnd(w)
		return
	}
	switch {
	case s.Leader == "":
	case s.Renewed.Sub(s.Now) > clocksDiffer:
		say.To(w, "Leader   %s, whose Lease was renewed at %s: that lies in the future, and no planner writes it\n",
			s.Leader, s.Renewed.UTC().Format(time.RFC3339))
		s.writeClaimsEnd(w)
	default:
		say.To(w, "Leader   %s, renewed %s ago\n", s.Leader, say.Span(s.Now.Sub(s.Renewed)))
	}
}

// writeConditions says how the leader has things, and how long ago it looked.
func (s *Overview) writeConditions(w io.Writer) error {
	if s.LookedAt.IsZero() {
		return nil
	}
	switch ago := s.Now.Sub(s.LookedAt); {
	case ago > status.Outdated:
		say.To(w, "Status   as the leader had it %s ago: no leader has looked since; see the pods of Deployment ballast-planner\n", say.Span(ago))
	case ago < -status.Outdated:
		say.To(w, "Status   as the leader has it, by a clock that is %s ahead of this machine's: "+
			"nobody can tell how old it is; set the clocks right\n", say.Span(-ago))
	default:
		say.To(w, "Status   as the leader had it %s ago\n", say.Span(ago))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range s.Conditions {
		say.To(t, "  %s\t%s\t%s\t%s", c.Type, c.Status, say.Span(s.Now.Sub(c.LastTransitionTime)), c.Reason)
		if c.Message != "" {
			say.To(t, ": %s", c.Message)
		}
		say.To(t, "\n")
	}
	return t.Flush()
}

// clocksDiffer is by how much the clock here may be behind a planner's.
const clocksDiffer = time.Minute

// writeClaimsEnd says what ends the claim of a Lease that somebody forged.
func (s *Overview) writeClaimsEnd(w io.Writer) {
	say.To(w, "         if no such planner runs, end its claim by deleting the Lease, which a planner makes anew: kubectl -n %s delete lease ballast-%s\n", s.Workload.Namespace, s.Workload.Name)
}

func (s *Overview) writeWorkload(w io.Writer) {
	say.To(w, "Workload %s %s/%s: %d of %d replicas ready", s.Workload.Kind, s.Workload.Namespace, s.Workload.Name,
		s.Workload.ReadyReplicas, s.Workload.Replicas)
	if s.Workload.Kind == plan.Deployment { // it has no env
		say.To(w, "; the plan holds %d\n", s.Plan.Replicas)
		return
	}
	env := "none"
	if s.Workload.EnvReplicas != nil {
		env = *s.Workload.EnvReplicas
	}
	say.To(w, ", %s=%s; the plan holds %d and %d\n", plan.EnvReplicas, env, s.Plan.Replicas, s.Plan.ControllerReplicas)
}

// writeAsked says what people asked for, what keeps ballast from deciding, and which replicas take no new cluster.
func (s *Overview) writeAsked(w io.Writer) {
	if s.Tripped != "" {
		say.To(w, "Tripped  ballast stopped itself: %s\n         look into it, then: ballast resume\n", s.Tripped)
	}
	if s.Paused {
		say.To(w, "Paused   nothing new is decided; enforcement goes on%s\n", s.pausedBy())
	}
	if s.BreakGlass {
		say.To(w, "Off      break-glass: every write passes but one to data.plan, and what the API server's policies refuse, ballast writes nothing of Argo CD's\n")
	}
	if !s.HeldUntil.IsZero() {
		say.To(w, "Waits    a rollout failed or went back to an earlier plan; nothing new begins before %s (%s)\n",
			s.HeldUntil.Format(time.RFC3339), say.Span(s.HeldUntil.Sub(s.Now)))
	}
	if s.RollbackTo != "" {
		say.To(w, "Rollback to revision %s, as a person asked\n", s.RollbackTo)
	}
	for _, c := range s.Cordons {
		say.To(w, "Cordon   replica %d until %s (%s): %s still there\n",
			c.Replica, c.Until.Format(time.RFC3339), say.Span(c.Until.Sub(s.Now)), say.Plural(c.Clusters, "cluster"))
	}
	if s.Plan != nil && len(s.Plan.Full) > 0 {
		say.To(w, "Full     replica %s: a new cluster goes to another one while there is one\n", numbers(s.Plan.Full))
	}
}

func (s *Overview) pausedBy() string {
	switch {
	case s.PausedBy != "" && s.PausedWhy != "":
		return fmt.Sprintf(" (%s: %s)", s.PausedBy, s.PausedWhy)
	case s.PausedBy+s.PausedWhy != "":
		return fmt.Sprintf(" (%s)", s.PausedBy+s.PausedWhy)
	}
	return ""
}

// writeTrouble says what is wrong with replicas and owners, as the leader remembers it.
func (s *Overview) writeTrouble(w io.Writer) {
	for _, u := range s.Unwell {
		say.To(w, "Unwell   %s\n", u.Message)
	}
	if s.FailoverOff != "" {
		say.To(w, "         %s\n", s.FailoverOff)
	}
	for _, f := range s.Orphaned {
		last := ""
		if f.Last != nil {
			last = fmt.Sprintf("; replica %d had it last", *f.Last)
		}
		say.To(w, "Orphaned %s: no replica has it since %s (%s)%s\n", f.Cluster, f.Since.UTC().Format(time.RFC3339),
			say.Span(s.Now.Sub(f.Since)), last)
	}
	for _, f := range s.Doubled {
		say.To(w, "Doubled  %s: several replicas have it since %s (%s): %v\n", f.Cluster,
			f.Since.UTC().Format(time.RFC3339), say.Span(s.Now.Sub(f.Since)), f.Owners)
	}
	if s.Omitted > 0 {
		say.To(w, "         the leader found %d more faults than it could say\n", s.Omitted)
	}
}

func (s *Overview) writeBudget(w io.Writer) {
	if s.Budget == nil {
		return
	}
	say.To(w, "Budget   %s\n", s.Budget.Message)
	if c := s.Candidate; c != nil {
		say.To(w, "Wanted   %s on %s: %s\n", say.Plural(c.Moves, "move"), say.Plural(c.Replicas, "replica"), c.Verdict)
	}
}

// writePutBack names those whose writes were put back or refused most.
func (s *Overview) writePutBack(w io.Writer) {
	if s.PutBack == nil || len(s.PutBack.Users) == 0 {
		return
	}
	const most = 3
	var who []string
	for _, u := range s.PutBack.Users[:min(len(s.PutBack.Users), most)] {
		who = append(who, fmt.Sprintf("%s of %s", say.Plural(u.PutBack+u.Refused, "write"), u.User))
	}
	if more := len(s.PutBack.Users) - most; more > 0 {
		who = append(who, fmt.Sprintf("and of %d more", more))
	}
	unsure := ""
	if s.PutBack.Unverified {
		unsure = ", as callers say"
	}
	say.To(w, "Put back %s, or refused, since %s%s\n", strings.Join(who, ", "),
		s.PutBack.Since.UTC().Format(time.RFC3339), unsure)
}

func (s *Overview) writeLists(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(s.Pins)) {
		say.To(w, "Pin      %s: %d\n", name, s.Pins[name])
	}
	for _, p := range s.PinProblems {
		say.To(w, "Pin      %s\n", p.Error())
	}
	for _, d := range s.Drift {
		say.To(w, "Differs  %s\n", d)
	}
	for _, h := range s.Held {
		say.To(w, "Held     %s\n", h)
	}
	if len(s.Drift)+len(s.Held) == 0 && s.Plan.Mode.Enforced() {
		say.To(w, "Nothing differs from the plan.\n")
	}
}

// writeBeside says who else has a say over the workload, and what does not show.
func (s *Overview) writeBeside(w io.Writer) {
	for _, n := range s.Conflicts {
		say.To(w, "Beside   %s\n", n.Message)
	}
	if len(s.Unseen) > 0 {
		say.To(w, "Unseen   not visible to you: %s\n", strings.Join(s.Unseen, ", "))
	}
	for _, u := range s.Unread {
		say.To(w, "Unseen   %s\n", u)
	}
}

// numbers lists replicas: "0, 3".
func numbers(of []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(of), " ", ", "), "[]")
}

// shownElsewhere is how many clusters the table names that are not where the plan has them.
const shownElsewhere = 5

func (s *Overview) writeElsewhere(w io.Writer) {
	for i, e := range s.Elsewhere {
		if i == shownElsewhere {
			say.To(w, "         ... and %d more (-o json shows them)\n", len(s.Elsewhere)-i)
			return
		}
		has := "no replica has it"
		switch len(e.Owners) {
		case 0:
		case 1:
			has = fmt.Sprintf("replica %d has it", e.Owners[0])
		default:
			has = fmt.Sprintf("replicas %s have it", numbers(e.Owners))
		}
		say.To(w, "Owner    %s: %s, the plan gives it to %d\n", e.Cluster, has, e.Planned)
	}
}

const (
	mostDecisions = 10
	shownNames    = 3 // moves of a decision that the table names
)

// decision is a plan that was decided, as the history keeps it. Changed is nil where the plan before it is not kept.
type decision struct {
	Revision int64             `json:"revision"`
	At       time.Time         `json:"at,omitzero"`
	By       string            `json:"by,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Changed  *decisions.Change `json:"changed,omitempty"`
}

// DecidedOf are the last decisions, newest first. The history has the plan in force a little later than its ConfigMap.
func DecidedOf(state steer.State, records []history.Record) []decision {
	var list []decision
	var plans []plan.Plan
	add := func(p plan.Plan, d decision) {
		d.Revision, d.At, d.By, d.Reason = p.Revision, patchable.WithinJSON(d.At), say.OneLine(d.By),
			say.OneLine(d.Reason)
		list, plans = append(list, d), append(plans, p)
	}
	if p := state.Plan; p != nil && (len(records) == 0 || records[0].Revision < p.Revision) {
		at, _ := time.Parse(time.RFC3339, state.Annotations[plan.AnnotationDecidedAt]) // anybody may have written it; none is shown then
		add(*p, decision{At: at, By: state.Annotations[plan.AnnotationDecidedBy],
			Reason: state.Annotations[plan.AnnotationReason]})
	}
	for _, r := range records {
		p, err := codec.Decode(r.Text)
		if err != nil {
			continue // the history's reader has said so
		}
		add(p, decision{At: r.Meta.DecidedAt, By: r.Meta.DecidedBy, Reason: r.Meta.Reason})
	}
	for i := range len(list) - 1 {
		c := decisions.Between(plans[i+1], plans[i])
		list[i].Changed = &c
	}
	return list[:min(len(list), mostDecisions)]
}

func (s *Overview) writeDecisions(w io.Writer) {
	if len(s.Decisions) < 2 { // the head says it of the plan in force
		return
	}
	say.To(w, "Decided  as far as the history keeps it, newest first\n")
	for _, d := range s.Decisions {
		at := "when nobody knows"
		if !d.At.IsZero() {
			at = fmt.Sprintf("%s (%s ago)", d.At.UTC().Format(time.RFC3339), say.Span(s.Now.Sub(d.At)))
		}
		say.To(w, "  %d  %s  %s\n      %s\n", d.Revision, at, d.changes(), say.OrDash(d.Reason))
	}
}

// changes says what a decision changed, and names the first of what it moved.
func (d decision) changes() string {
	if d.Changed == nil {
		return "the plan before is not kept"
	}
	words := d.Changed.Words()
	if len(words) == 0 {
		return "nothing that is enforced"
	}
	said := strings.Join(words, ", ")
	var names []string
	for i, m := range d.Changed.Moves {
		if i == shownNames {
			names = append(names, fmt.Sprintf("%d more", len(d.Changed.Moves)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s %d -> %d", m.Cluster, m.From, m.To))
	}
	if len(names) > 0 {
		said += fmt.Sprintf(" (%s)", strings.Join(names, ", "))
	}
	return said
}
