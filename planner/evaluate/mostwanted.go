package evaluate

import (
	"cmp"
	"slices"
	"time"
)

// DefaultMaxAssignments keeps 28 candidates of 5,000 clusters: with a day's 1,440 votes they take less than 200 KiB of
// the history's ConfigMap even where no two are alike (see MarshalBinary).
const DefaultMaxAssignments = 140_000

// maxCandidates bounds those of a small fleet as well: a day of a vote a minute has 1,440 ballots, and those for what
// was wanted once can only win where all were, by the newest of them.
const maxCandidates = 60

// maxBallots bounds the ballots whatever window and interval are: an hour of one a second is 3,600.
const maxBallots = 10_000

// MostWantedOptions are a vote's rules.
type MostWantedOptions struct {
	Window         time.Duration // a vote lasts that long at least, and a ballot counts that long
	MinSamples     int           // ballots that an election takes; less than 1 = 1
	MaxAssignments int           // clusters in all kept candidates together; 0 = DefaultMaxAssignments

	// Counts are the clusters by which candidates are compared; nil: all. Others, such as new ones, make no vote
	// another.
	Counts func(cluster string) bool
}

// MostWanted casts a ballot for c, and once the vote has lasted for the window elects the candidate with the most
// votes, ties to the newest ballot. It returns the history to go on with; h is not changed.
//
// Basis is a hash of what candidates must agree on to be comparable (bounds): another basis starts a new vote. Ballots
// do not count either for candidates of other clusters than c's, of those that Counts names and but for a tenth: a
// cluster that comes, goes or is pinned every few minutes must not keep all others where they are. Ballots older than
// the window are dropped, and those from the future too, which a clock that was set back leaves. An election ends the
// vote: its history has no ballots. The candidate elected may be the plan in force, which is for the caller to see.
//
// Candidates beyond MaxAssignments, or beyond 60, are dropped, the least wanted and then the oldest first, never c.
// Their ballots stay, but they cannot win.
func MostWanted(h Vote, c Candidate, basis string, now time.Time, o MostWantedOptions) (Election, Vote) {
	next, running := cast(h, c, basis, now, o)
	ranking := rank(next.Ballots)
	e := Election{Samples: len(next.Ballots), Needed: max(o.MinSamples, 1), Until: next.Since.Add(o.Window),
		Reason: TooFewSamples}
	switch {
	case e.Samples < e.Needed && !running:
		e.Reason = NewVote
		return e, next
	case e.Samples < e.Needed:
		return e, next
	case now.Before(e.Until):
		e.Reason = WindowOpen
		return e, next
	}
	for _, t := range ranking {
		if winner, kept := next.Candidates[t.key]; kept {
			e.Elected, e.Key, e.Candidate, e.Votes, e.Reason = true, t.key, winner, t.votes, MostVotes
			break
		}
	}
	return e, Vote{Basis: basis}
}

// Cast is the vote with a ballot for c, whatever it elects: for whoever cannot begin that.
func Cast(h Vote, c Candidate, basis string, now time.Time, o MostWantedOptions) Vote {
	next, _ := cast(h, c, basis, now, o)
	return next
}

// cast adds a ballot; running says that the vote went on.
func cast(h Vote, c Candidate, basis string, now time.Time, o MostWantedOptions) (next Vote, running bool) {
	key := Key(c)
	next, running = Vote{Basis: basis, Since: now}, h.Basis == basis
	if running {
		counted := counting(h.Ballots, now, o.Window)
		dropped := len(counted)
		next.Ballots = o.comparable(counted, h.Candidates, key, c)
		dropped -= len(next.Ballots)
		running = dropped == 0 || len(next.Ballots) > 0
	}
	if len(next.Ballots) > 0 {
		next.Since = h.began(next.Ballots[0].At)
	}
	next.Ballots = append(next.Ballots, Ballot{At: now, Key: key})
	next.Candidates = keep(h.Candidates, rank(next.Ballots), key, c, o)
	return next, running
}

// began is when the vote began whose oldest ballot that counts is of that time. A vote of an older version says nothing
// of it, and a time in the future is no time that passed.
func (h Vote) began(oldest time.Time) time.Time {
	if h.Since.IsZero() || h.Since.After(oldest) {
		return oldest
	}
	return h.Since
}

// counting returns the ballots within the window, in their order, with room for one more.
func counting(ballots []Ballot, now time.Time, window time.Duration) []Ballot {
	kept := make([]Ballot, 0, len(ballots)+1)
	for _, b := range ballots {
		if age := now.Sub(b.At); age >= 0 && age <= window {
			kept = append(kept, b)
		}
	}
	slices.SortStableFunc(kept, func(a, b Ballot) int { return a.At.Compare(b.At) })
	return kept[max(len(kept)-(maxBallots-1), 0):]
}

// mostOthers is the share of the clusters, in percent, by which candidates of one vote may differ.
const mostOthers = 10

// comparable leaves out the ballots for candidates of other clusters. Those for one that was dropped stay. Ballots for
// a candidate that has every cluster of both where c has it are c's: what came or went meanwhile is no other wish for
// the others.
func (o MostWantedOptions) comparable(ballots []Ballot, candidates map[string]Candidate, key string, c Candidate) []Ballot {
	others, same := make(map[string]bool, len(candidates)), make(map[string]bool, len(candidates))
	for of, known := range candidates {
		others[of], same[of] = o.compare(known, c)
	}
	ballots = slices.DeleteFunc(ballots, func(b Ballot) bool { return others[b.Key] })
	for i, b := range ballots {
		if same[b.Key] {
			ballots[i].Key = key
		}
	}
	return ballots
}

// compare reports whether candidates differ: more than a tenth of the clusters that count, or than one, are not in
// both; and whether they agree on all that are. Most candidates are of the very same clusters, of which nobody needs to
// know what counts.
func (o MostWantedOptions) compare(a, b Candidate) (differ, agree bool) {
	counts := func(name string) bool { return o.Counts == nil || o.Counts(name) }
	agree = a.Replicas == b.Replicas
	absent, alone := 0, 0
	for name, at := range b.Of {
		to, also := a.Of[name]
		if agree = agree && (!also || to == at); also {
			continue
		}
		if absent++; counts(name) {
			alone++
		}
	}
	if absent == 0 && len(a.Of) == len(b.Of) {
		return false, agree
	}
	for name := range a.Of {
		if _, also := b.Of[name]; !also && counts(name) {
			alone++
		}
	}
	if alone <= 1 {
		return false, agree
	}
	all := 0
	for name := range b.Of {
		if counts(name) {
			all++
		}
	}
	return alone > max(1, mostOthers*all/100), agree
}

// tally is what a key has of the ballots.
type tally struct {
	key    string
	votes  int
	newest time.Time
}

// rank counts ballots: the most votes first, then the newest ballot, then the key.
func rank(ballots []Ballot) []tally {
	var ranking []tally
	at := make(map[string]int)
	for _, b := range ballots {
		i, known := at[b.Key]
		if !known {
			i = len(ranking)
			at[b.Key], ranking = i, append(ranking, tally{key: b.Key})
		}
		ranking[i].votes++
		if b.At.After(ranking[i].newest) {
			ranking[i].newest = b.At
		}
	}
	slices.SortFunc(ranking, func(a, b tally) int {
		return cmp.Or(cmp.Compare(b.votes, a.votes), b.newest.Compare(a.newest), cmp.Compare(a.key, b.key))
	})
	return ranking
}

// keep returns the present candidate and, in the order of the ranking, the known ones that fit beside it.
func keep(known map[string]Candidate, ranking []tally, present string, c Candidate, o MostWantedOptions) map[string]Candidate {
	room := o.MaxAssignments
	if room <= 0 {
		room = DefaultMaxAssignments
	}
	kept := map[string]Candidate{present: c}
	room -= len(c.Of)
	for _, t := range ranking {
		other, has := known[t.key]
		if !has || t.key == present {
			continue
		}
		if room -= len(other.Of); room < 0 || len(kept) == maxCandidates {
			break
		}
		kept[t.key] = other
	}
	return kept
}
