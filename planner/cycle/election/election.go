// Package election finds the candidate, and elects it: by what pays, or by votes.
package election

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ballast/planner/cycle/division"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/cycle/track"
	"ballast/planner/evaluate"
	"ballast/planner/plan"
	"ballast/planner/plural"
)

// Election is the vote on candidates.
type Election struct {
	*outcome.Draft
	Ballots evaluate.Vote // the vote as it goes on where what it elects does not begin
}

// elect lets the evaluation vote on the candidate, and answers what it elects. Where nothing may begin the vote goes
// on without an election, so that it need not start anew on the day it may.
func (e *Election) elect(s *snapshot.Snapshot, d division.Division) *evaluate.Candidate {
	vote := evaluate.Candidate{Replicas: d.Answer.Replicas, Of: d.Of}
	if e.In.Config.Evaluate.MostWanted == nil {
		e.end()
		election := evaluate.None(vote)
		e.Out.Candidate.Verdict = election.String()
		return &election.Candidate
	}
	if s.Next.Rollout != nil {
		e.Out.Candidate.Verdict = "not voted on while a rollout is under way"
		return nil
	}
	configured := e.In.Config.Evaluate.MostWanted
	o := evaluate.MostWantedOptions{Window: time.Duration(configured.Window), MinSamples: configured.MinSamples,
		Counts: e.Out.Memory.Known.Has}
	tooFull := overloaded(s, d) || d.Starved > 0
	if worded(s, d) || tooFull || beyondEvidence(s, d, e.Out.Line) {
		o.Window = min(o.Window, time.Duration(o.MinSamples)*time.Duration(e.In.Config.Interval))
	}
	barred := e.barred(s, d, vote, o)
	if b := e.In.Memory.Votes.Ballots; len(b) > 0 && e.In.Memory.Votes.Basis == d.Basis() {
		// Changes of Secrets and pods run cycles, too; a vote counts time, not changes.
		if since := e.In.Now.Sub(b[len(b)-1].At); since >= 0 && since < time.Duration(e.In.Config.Interval)/2 {
			e.Out.Candidate.Verdict = fmt.Sprintf("%s so far, the last less than half an interval ago",
				plural.Of(len(b), "vote"))
			return barred
		}
	}
	if !s.May(gate.Balance) {
		o.MinSamples = math.MaxInt
	}
	election := e.vote(s, d, vote, o)
	switch {
	case election.Elected:
		e.Out.Candidate.Verdict = election.String()
		return &election.Candidate
	case s.May(gate.Balance):
		e.Out.Candidate.Verdict = election.String()
	default:
		e.Out.Candidate.Verdict = fmt.Sprintf("%s so far; nothing begins while %s", plural.Of(election.Samples, "vote"),
			s.Verdicts[gate.Balance])
	}
	return barred
}

// barred is what this vote would elect where nothing may begin: it waits, and people see it.
func (e *Election) barred(s *snapshot.Snapshot, d division.Division, vote evaluate.Candidate, o evaluate.MostWantedOptions) *evaluate.Candidate {
	if s.May(gate.Balance) {
		return nil
	}
	election, _ := evaluate.MostWanted(e.In.Memory.Votes, vote, d.Basis(), e.In.Now, o)
	if !election.Elected || election.Key != evaluate.Key(vote) && !d.Allows(s.Ground, election.Candidate) {
		return nil
	}
	return &election.Candidate
}

// worded reports whether a person's word, an autoscaler's, or size.weights are what is voted on: another number of
// replicas than the plan's, or clusters for a replica of theirs that has none. Nobody waits for a whole window for what
// he wrote; the votes of a few cycles see to it that one measurement does not decide who moves.
func worded(s *snapshot.Snapshot, d division.Division) bool {
	now, p := s.Next.Replicas, s.In.Config.Partition
	if s.Next.FreeReplicas {
		return fills(s, d)
	}
	number := p.Replicas != nil && p.Replicas.Fixed == d.Answer.Replicas || s.Weighed > 0
	outside := now < d.Bounds.MinReplicas || now > d.Bounds.MaxReplicas
	return d.Answer.Replicas != now && (number || outside)
}

// overloaded reports whether a replica carries more than a person said that it may, and the answer mends it.
func overloaded(s *snapshot.Snapshot, d division.Division) bool {
	if d.Bounds.Capacity == 0 {
		return false
	}
	return slices.ContainsFunc(s.Now, func(r plan.Replica) bool { return r.TotalLoad > d.Bounds.Capacity && d.Offers[r.ID].Saves > 0 })
}

// beyondEvidence reports whether a replica carries far more than is known to be borne, where nobody said what one may,
// and the answer takes it to where that is so no more: what grows everywhere is no reason for haste.
func beyondEvidence(s *snapshot.Snapshot, d division.Division, line *outcome.Line) bool {
	if line == nil || line.Configured {
		return false
	}
	bearable := func(replica int) bool {
		return replica >= len(d.Answer.Loads) || !track.Beyond(d.Answer.Loads[replica], line.Load)
	}
	return slices.ContainsFunc(s.Now, func(r plan.Replica) bool { return track.Beyond(r.TotalLoad, line.Load) && bearable(r.ID) })
}

// fills reports whether the answer gives clusters to a replica that has none.
func fills(s *snapshot.Snapshot, d division.Division) bool {
	has := make(map[int]bool, s.Next.Replicas)
	for _, row := range s.Next.Clusters {
		has[row.Replica] = true
	}
	return slices.ContainsFunc(d.Answer.Of, func(replica int) bool { return replica < s.Next.Replicas && !has[replica] })
}

// vote elects the most wanted candidate of those that may still be: what was pinned or came meanwhile counts as it
// stands now.
func (e *Election) vote(s *snapshot.Snapshot, d division.Division, vote evaluate.Candidate, o evaluate.MostWantedOptions) evaluate.Election {
	votes := e.In.Memory.Votes
	for {
		election, history := evaluate.MostWanted(votes, vote, d.Basis(), e.In.Now, o)
		if !election.Elected || election.Key == evaluate.Key(vote) || d.Allows(s.Ground, election.Candidate) {
			e.Out.Memory.Votes, e.Ballots = history, evaluate.Cast(votes, vote, d.Basis(), e.In.Now, o)
			return election
		}
		votes = votes.Without(election.Key)
	}
}

// end forgets the vote.
func (e *Election) end() { e.Out.Memory.Votes, e.Ballots = evaluate.Vote{}, evaluate.Vote{} }

// Stands keeps the vote of an election that begins nothing, with the ballot of this cycle: else the vote would have a
// gap for as long as what it elected waits, and be short of samples once it may begin.
func (e *Election) Stands() { e.Out.Memory.Votes = e.Ballots }
