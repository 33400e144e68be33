package overview

import (
	"fmt"
	"io"
	"strings"
	"time"

	"ballast/cmd/ballast/say"
	"ballast/planner/cycle"
	"ballast/planner/cycle/compare"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// UnderWay is the rollout. Moves are those of its present wave, in the other modes than live all of them; Waits is what
// it waits for; empty where its stage has just begun, or the leader has not looked at it yet.
type UnderWay struct {
	Mode     string       `json:"mode"`
	Stage    plan.Stage   `json:"stage"`
	Since    time.Time    `json:"since"`
	Deadline time.Time    `json:"deadline,omitzero"`
	Late     bool         `json:"late,omitempty"`
	From     plan.Count   `json:"from"`
	To       plan.Count   `json:"to"`
	Wave     int          `json:"wave,omitempty"`
	Waves    int          `json:"waves,omitempty"`
	Moves    []cycle.Move `json:"moves,omitempty"`
	After    int          `json:"after,omitempty"` // clusters that move after this wave
	Waits    string       `json:"waits,omitempty"`
}

// UnderWayOf is the rollout of the plan in force. What it waits for the leader says, if it has looked at this revision.
func UnderWayOf(v *plan.View, said *status.Status, now time.Time) *UnderWay {
	r := v.Plan.Rollout
	if r == nil {
		return nil
	}
	u := &UnderWay{Mode: r.Mode, Stage: r.Stage, Since: r.Since, From: r.From, To: r.To(),
		Wave: r.Wave, Waves: r.Waves, Moves: compare.MovesUnderWay(v)}
	if said != nil && said.Revision == v.Plan.Revision && said.Rollout != nil {
		u.Waits, u.Deadline, u.After = said.Rollout.Waits, said.Rollout.Deadline, said.Rollout.After
		u.Late = said.Rollout.Late || !u.Deadline.IsZero() && now.After(u.Deadline)
	}
	return u
}

// rolling is how it is printed.
type rolling struct{ *Overview }

// shownMoves is how many moves of a wave the table lists.
const shownMoves = 5

func (s rolling) write(w io.Writer) {
	r := s.Rollout
	say.To(w, "Rollout  %s, %s", r.Mode, r.Stage)
	if r.Wave > 0 {
		say.To(w, ", wave %d of about %d", r.Wave, max(r.Waves, r.Wave))
	}
	say.To(w, " since %s (%s): %s", r.Since.Format(time.RFC3339), say.Span(s.Now.Sub(r.Since)), s.describeCounts())
	if len(r.Moves) > 0 {
		say.To(w, ", %s", say.Plural(len(r.Moves), "move"))
	}
	switch {
	case r.Late:
		say.To(w, "; past its deadline")
	case !r.Deadline.IsZero():
		say.To(w, "; %s until its deadline", say.Span(r.Deadline.Sub(s.Now)))
	}
	say.To(w, "\n")
	for i, m := range r.Moves {
		if i == shownMoves {
			say.To(w, "           ... and %d more (-o json shows them)\n", len(r.Moves)-i)
			break
		}
		say.To(w, "           %s\n", describe(m))
	}
	if r.After > 0 {
		say.To(w, "         then %s more\n", say.Plural(r.After, "cluster"))
	}
	if r.Waits != "" {
		say.To(w, "         it waits: %s\n", r.Waits)
	}
	if s.Plan.Replicas == 0 && !s.Plan.FreeReplicas && plan.StopLapsed(r.Since, s.Now) {
		say.To(w, "         it holds no replicas any more, since no planner ended its stop within %s; this brings them back: "+
			"kubectl -n %s scale %s %s --replicas=%d\n",
			say.Span(plan.StopHeld), s.Workload.Namespace, strings.ToLower(s.Workload.Kind), s.Workload.Name,
			r.From.Replicas)
	}
}

// describeCounts is what becomes of the replicas and of the env.
func (s rolling) describeCounts() string {
	from, to := s.Rollout.From, s.Rollout.To
	said := say.Plural(to.Replicas, "replica")
	if from.Replicas != to.Replicas {
		said = fmt.Sprintf("%d -> %s", from.Replicas, said)
	}
	if from.ControllerReplicas != to.ControllerReplicas && s.Workload.Kind != plan.Deployment {
		said += fmt.Sprintf(", %s %d -> %d", plan.EnvReplicas, from.ControllerReplicas, to.ControllerReplicas)
	}
	return said
}

// describe words a move; where a cluster came from nobody may know any more.
func describe(m cycle.Move) string {
	if m.From == plan.NoReplica {
		return fmt.Sprintf("%s: to %d", m.Cluster, m.To)
	}
	return fmt.Sprintf("%s: %d -> %d", m.Cluster, m.From, m.To)
}
