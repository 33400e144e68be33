package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/resize"
	"ballast/planner/decisions"
	"ballast/planner/page/chart"
	"ballast/planner/page/view"
	"ballast/planner/page/wording"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// notes are what people have to know before they read on.
func notes(f Fleet) []view.Note {
	var list []view.Note
	add := func(l view.Level, title, text string) {
		list = append(list, view.Note{Level: l, Title: title, Text: wording.Line(text)})
	}
	d := f.Document
	switch {
	case d.Plan == nil && d.PlanErr != nil:
		add(view.Bad, "The plan is not in force", d.PlanErr.Error())
	case d.Plan == nil:
		add(view.Neutral, "There is no plan yet", "The first one takes the fleet as it is.")
	}
	if d.BreakGlass {
		add(view.Bad, "Enforcement is off", "A person broke the glass: every write passes but one to the plan and what policies refuse; "+
			"ballast writes nothing of Argo CD's but what brings replicas back from a stop.")
	}
	if d.Tripped != "" {
		add(view.Bad, "ballast stopped itself", d.Tripped+". Look into it, then: ballast resume")
	}
	if d.Paused {
		add(view.Warn, "Paused", f.Pause.says()+"Nothing new is decided, and enforcement goes on. It ends by: ballast resume")
	}
	switch said := f.Status; {
	case said == nil:
		add(view.Neutral, "No leader has said how things are",
			"Conditions, faults and what waits are the leader's word, and there is none yet.")
	case said.Ahead(f.Now):
		add(view.Bad, "The leader's clock is ahead", fmt.Sprintf("It looked at %s, which is in %s by the clock here: "+
			"nobody can tell how old what it says is. Set the clocks right.", wording.Moment(said.LookedAt),
			wording.Span(said.LookedAt.Sub(f.Now))))
	case said.Old(f.Now):
		add(view.Bad, "No leader looks", fmt.Sprintf("The last look was %s, at %s: see the pods of the planner.",
			wording.Since(said.LookedAt, f.Now), wording.Moment(said.LookedAt)))
	}
	for _, u := range f.Unseen {
		add(view.Warn, "Not everything is seen", u)
	}
	return list
}

// says is a sentence, and empty where nothing is written.
func (p Pause) says() string {
	switch {
	case p.By != "" && p.Why != "":
		return p.By + " froze it: " + p.Why + ". "
	case p.By != "":
		return p.By + " froze it. "
	case p.Why != "":
		return "It was frozen: " + p.Why + ". "
	}
	return ""
}

func conditions(f Fleet) []view.Condition {
	if f.Status == nil {
		return nil
	}
	var list []view.Condition
	for _, c := range f.Status.Conditions {
		list = append(list, view.Condition{Level: levelOf(c), Name: wording.Line(string(c.Type)),
			State: wording.Line(string(c.Status)), Reason: wording.Line(string(c.Reason)),
			Message: wording.Line(c.Message), Lasted: wording.Lasted(c.LastTransitionTime, f.Now)})
	}
	return list
}

// levelOf says how much a condition asks for people.
func levelOf(c status.Condition) view.Level {
	switch {
	case c.Type == status.Progressing && c.Status == status.True:
		return view.Info
	case c.Type == status.Progressing, c.Status == status.Unknown, c.Reason == status.Observing, c.Reason == status.NoPlan:
		return view.Neutral
	case c.Type == status.Planning && c.Status != status.True:
		return view.Warn
	case (c.Type == status.Degraded) == (c.Status == status.True):
		return view.Bad
	}
	return view.Good
}

// facts are the figures of the head.
func facts(s scene) []view.Fact {
	p := s.Document.Plan
	list := []view.Fact{{Label: "Clusters", Value: wording.Count(len(s.clusters)), Says: ""}}
	if p == nil {
		return list
	}
	sums, all, pinned, moving := make([]plan.Replica, s.replicas), plan.Load(0), 0, 0
	for _, c := range s.clusters {
		if c.at >= 0 && c.at < s.replicas {
			sums[c.at].TotalLoad, all = sums[c.at].TotalLoad.Plus(c.load), all.Plus(c.load)
		}
		if c.pinned {
			pinned++
		}
		if c.move != nil {
			moving++
		}
	}
	replicas := wording.Count(p.Replicas)
	if p.Rollout != nil && p.Rollout.Replicas != p.Replicas {
		replicas += " → " + wording.Count(p.Rollout.Replicas)
	}
	list = append(list, view.Fact{Label: "Replicas", Value: replicas, Says: ""},
		view.Fact{Label: "Load", Value: all.Display(), Says: "as of the last decision"},
		view.Fact{Label: "Fullest over mean", Value: strconv.FormatFloat(outcome.Imbalance(sums), 'f', 2, 64),
			Says: "1 is level"})
	if s.capacity > 0 {
		list = append(list, view.Fact{Label: "Capacity", Value: s.capacity.Display(), Says: s.line})
	}
	list = append(list, view.Fact{Label: "Pinned", Value: wording.Count(pinned), Says: "by people"},
		view.Fact{Label: "Moving", Value: wording.Count(moving), Says: "in this wave"})
	return list
}

// standing says which plan is in force, and who leads.
func standing(f Fleet) []string {
	var list []string
	if p := f.Document.Plan; p != nil {
		text := "revision " + strconv.FormatInt(p.Revision, 10)
		if !f.Decided.At.IsZero() {
			text += ", decided " + wording.Since(f.Decided.At, f.Now)
		}
		list = append(list, text)
	}
	if f.Status != nil && f.Status.Leader != "" {
		looked := "looked " + wording.Since(f.Status.LookedAt, f.Now)
		if f.Status.Ahead(f.Now) {
			looked = "has a clock that is ahead"
		}
		list = append(list, wording.Line(f.Status.Leader+" leads, and "+looked))
	}
	return list
}

// waits are what is wanted and does not happen, and what is wrong, the worst first.
func waits(s scene) []view.Wait {
	var list []view.Wait
	add := func(l view.Level, what, why, times string) {
		list = append(list, view.Wait{Level: l, What: wording.Line(what), Why: wording.Line(why), Times: times})
	}
	for _, p := range s.Document.PinProblems {
		add(view.Warn, "A pin is not read", p.Error(), "")
	}
	if said := s.Status; said != nil {
		faults(*said, s.Now, add)
		blocked(*said, s.Document.Plan, s.Now, add)
		wanted(*said, s.Now, add)
	}
	bySeverity(list)
	return list
}

// bySeverity puts the worst first.
func bySeverity(list []view.Wait) {
	order := []view.Level{view.Bad, view.Warn, view.Info, view.Neutral, view.Good}
	slices.SortStableFunc(list, func(a, b view.Wait) int { return slices.Index(order, a.Level) - slices.Index(order, b.Level) })
}

// faults are replicas and clusters that are not as they should be, and what phases refuse.
func faults(said status.Status, now time.Time, add func(l view.Level, what, why, times string)) {
	for _, u := range said.Unwell {
		add(view.Bad, fmt.Sprintf("Replica %d is unwell", u.Replica), u.Message, wording.LastedFor(u.Since, now))
	}
	if said.FailoverHeld != "" {
		add(view.Bad, "Nothing fails over", said.FailoverHeld, "")
	}
	for _, f := range said.Orphaned {
		why := ""
		if f.Last != nil {
			why = fmt.Sprintf("replica %d had it last", *f.Last)
		}
		add(view.Bad, "Cluster "+wording.Name(f.Cluster)+" has no replica", why, wording.LastedFor(f.Since, now))
	}
	for _, f := range said.Doubled {
		add(view.Bad, "Cluster "+wording.Name(f.Cluster)+" has several replicas",
			"replicas "+joined(f.Owners)+" have it", wording.LastedFor(f.Since, now))
	}
	for _, p := range said.Problems {
		level, what := view.Info, string(p.Phase)+": "+p.Kind
		if p.Keeps {
			level, what = view.Warn, what+" keeps the plan as it is"
		}
		add(level, what, p.Message, "")
	}
	if said.Omitted > 0 {
		add(view.Info, wording.Plural(said.Omitted, "more entry"), "They had no room in what the leader says.", "")
	}
}

// blocked are sizes that wait, and the rollout under way.
func blocked(said status.Status, p *plan.Plan, now time.Time, add func(l view.Level, what, why, times string)) {
	if r := said.Rollout; r != nil && p != nil && said.Revision == p.Revision {
		level, why := view.Info, r.Waits
		if why == "" {
			why = "the stage has just begun"
		}
		if r.Late {
			level, why = view.Warn, why+"; it is past its deadline"
		}
		if r.After > 0 {
			why += "; then " + wording.Plural(r.After, "cluster") + " more"
		}
		times := wording.LastedFor(r.Since, now)
		if r.Deadline.After(now) {
			times += ", deadline in " + wording.Span(r.Deadline.Sub(now))
		}
		add(level, "Rollout: "+string(r.Stage), why, times)
	}
	for _, b := range said.Blocked {
		what := fmt.Sprintf("Replica %d: %s", b.Replica, b.Resource)
		if b.Replica < 0 {
			what = "Every replica: " + b.Resource
		}
		if b.To != "" {
			what += " " + b.To
		}
		if b.From != "" && b.From != b.To {
			what += " instead of " + b.From
		}
		if b.Resource == resize.ResourceClusters {
			what = "Levelling: " + wording.Plural(int(b.By()), "move")
		}
		times := wording.LastedFor(b.Since, now)
		if b.Until.After(now) {
			times += ", until " + wording.Moment(b.Until)
		}
		add(view.Warn, what, strings.TrimSuffix(string(b.Reason)+": "+b.Why, ": "), times)
	}
}

// wanted is what levelling would do, and what keeps it.
func wanted(said status.Status, now time.Time, add func(l view.Level, what, why, times string)) {
	if said.HeldUntil.After(now) {
		add(view.Warn, "Nothing begins", "A rollout failed or went back to an earlier plan.",
			"until "+wording.Moment(said.HeldUntil))
	}
	if c := said.Candidate; c != nil && c.Moves > 0 {
		add(view.Neutral, fmt.Sprintf("Levelling would move %s on %s", wording.Plural(c.Moves, "cluster"),
			wording.Plural(c.Replicas, "replica")), c.Verdict, "")
	}
	if b := said.Budget; b != nil {
		level, times := view.Neutral, ""
		if b.Left != nil && *b.Left == 0 {
			level = view.Info
			if b.Next.After(now) {
				times = "more at " + wording.Moment(b.Next)
			}
		}
		add(level, "Move budget", b.Message, times)
	}
}

// decided are the plans that are kept, newest first, with what changed from each to the next.
func decided(f Fleet) []view.Decision {
	var list []view.Decision
	for i, k := range f.Kept {
		d := view.Decision{Revision: strconv.FormatInt(k.Plan.Revision, 10), At: wording.Moment(k.At),
			Ago: wording.Since(k.At, f.Now), By: wording.Line(k.By), Reason: wording.Line(k.Reason)}
		c := chart.CarriedBy(k)
		if i+1 < len(f.Kept) {
			d.Figures = changes(f.Kept[i+1].Plan, k.Plan)
		}
		if c.Mean > 0 {
			d.Figures = append(d.Figures, fmt.Sprintf("fullest over mean %.2f", float64(c.Fullest)/float64(c.Mean)))
		}
		list = append(list, d)
	}
	return list
}

// changes says in figures what differs between two plans.
func changes(before, after plan.Plan) []string {
	words := decisions.Between(before, after).Words()
	for i, w := range words {
		words[i] = wording.Line(w)
	}
	return words
}

// foot says what the page cannot.
func foot(Fleet) []string {
	return []string{
		"Loads are as of the last decision; the values of this minute are in the metrics.",
		"Decisions are as far as the history keeps plans: ten, and none from the middle of a rollout but the newest.",
		"Load over time goes back a week: of each quarter of an hour it shows the moment when the fullest replica carried most. " +
			"It begins anew when metrics, weights or references change, and before that it is as of each decision that is kept.",
		"Enforcement by user is what the webhook's pods remember since they began, as of the leader's last probes. " +
			"ballast audit -o totals FILE reads the whole of it from the API server's audit log, a row a user; " +
			"without one the webhook's own log names the user of each write that it changed or refused (write answered).",
		"Of a cluster Secret this page has its name, the cluster's name and its server, and nothing else.",
	}
}
