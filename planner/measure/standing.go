package measure

// Standing is what else is known of a cluster, for judging whether a missing value is a fault of the measurement.
type Standing struct {
	Uncounted bool // neither measured nor lost: its Secret is not known for an hour, or not ballast's, or it has no Applications
	New       bool // its Secret is not known for an hour, or not ballast's
	Moved     bool // its Secret has another server than before: what was measured was another cluster
	Gone      bool // its replica's pod answered, and no pod is both responsible for it and connected to it: its series may end
	Ended     bool // its replica's pod answered, and no pod that did is both, while others keep silent: its series may end, too
	Idle      bool // it has no Applications, by their number and by all pods: its series ended
	Unserved  bool // nobody works on it, or somebody else since just now: what is measured is less than it makes
	Unshown   bool // all its Applications give its name, which Argo CD 3.0.0 to 3.0.5 shows with no destination
	Replica   int  // that it is on; negative: none is known
}

// Standings are those of a fleet's clusters; nil: nothing else is known of them.
type Standings []Standing

func (s Standings) of(i int) Standing {
	if i >= len(s) {
		return Standing{}
	}
	return s[i]
}

// measurable reports whether a cluster without a value would have one if there were any.
func (s Standing) measurable(seen map[int]bool) bool {
	return s.Gone || s.Ended || s.Idle || seen[s.Replica]
}
