package measure

import (
	"cmp"

	"ballast/planner/discover"
	"ballast/planner/measure/match"
	"ballast/planner/poll"
)

func (j *joiner) index(m poll.Metric) match.Index {
	to := m.Match.To
	if m.PerCluster() {
		to = poll.ToID
	}
	return j.indexBy(to)
}

func (j *joiner) indexBy(to poll.MatchTo) match.Index {
	x, found := j.indexes[to]
	if !found {
		x = j.newIndex(to)
		j.indexes[to] = x
	}
	return x
}

// newIndex indexes the fleet by what a label names.
func (j *joiner) newIndex(to poll.MatchTo) match.Index {
	switch to {
	case poll.ToID:
		return match.ByID(j.fleet)
	case poll.ToName:
		return match.ByName(j.fleet, j.namedFirst)
	}
	return match.ByServer(j.fleet, j.carriers, j.first)
}

// first orders clusters that have one key: those first that carry load, were there for an hour with the server that
// they have, and are the oldest.
func (j *joiner) first(a, b int) int {
	x, y, s, t := j.fleet.Clusters[a], j.fleet.Clusters[b], j.options.Standings.of(a), j.options.Standings.of(b)
	return cmp.Or(discover.FalseFirst(x.Skip, y.Skip), discover.FalseFirst(s.New, t.New),
		discover.FalseFirst(s.Moved, t.Moved),
		x.Created.Compare(y.Created))
}

// namedFirst orders by who had the name last time before by age: the oldest may have had another.
func (j *joiner) namedFirst(a, b int) int {
	return cmp.Or(discover.FalseFirst(j.options.Standings.of(a).New, j.options.Standings.of(b).New),
		discover.FalseFirst(!j.hadName(a), !j.hadName(b)), j.first(a, b))
}

func (j *joiner) hadName(i int) bool {
	row := j.rows[i]
	return row >= 0 && row < len(j.names) && j.names[row] == match.NameKey(j.fleet.Clusters[i].Shard.Name)
}

// namesOf are for each cluster the key of the name that is its; empty where another has it.
func (j *joiner) namesOf() []string {
	x, names := j.indexBy(poll.ToName), make([]string, len(j.fleet.Clusters))
	for i, c := range j.fleet.Clusters {
		if x.Find(c.Shard.Name, nil) == i {
			names[i] = match.NameKey(c.Shard.Name)
		}
	}
	return names
}
