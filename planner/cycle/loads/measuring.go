package loads

import (
	"slices"
	"time"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/measure"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// Make makes loads of what was polled: it joins that to the fleet, indexes it, and sets what a replica may carry where
// nobody wrote it.
func Make(d *outcome.Draft, g *ground.Ground) {
	m := measuring{d}
	m.poll(g)
	m.indexLoads(g)
	Limit(d, g)
}

// measuring makes loads of what was polled.
type measuring struct{ *outcome.Draft }

// poll joins what Prometheus answered to the fleet.
func (m measuring) poll(g *ground.Ground) {
	p := m.In.Config.Poll
	metrics := MetricsOf(m.In.Config)
	table, err := measure.Join(metrics, m.Out.Fleet, ofClusters(metrics, m.In.Fetched), m.In.Memory.LastGood,
		measure.Options{MinCoverage: p.MinCoverage.Float(), MaxDrop: p.MaxDrop.Share(),
			MaxAge: p.MaxAge(), Standings: m.standings(g)}, m.In.Now)
	if err != nil {
		m.Tell(problem.Problem{Phase: problem.PhasePoll, Kind: "Refused", Message: err.Error(), Keeps: true})
		m.Out.Table = measure.Table{Frozen: true}
		return
	}
	m.Out.Table = table
	m.Out.Memory.LastGood = measure.NewLastGood(table, m.In.Memory.LastGood)
	for _, p := range table.Problems {
		m.Tell(problem.Problem{Phase: problem.PhasePoll, Subject: p.Metric, Kind: string(p.Kind), Message: p.Message,
			Keeps: table.Frozen})
	}
}

// indexLoads makes loads of the table and takes over references for metrics that had none.
func (m measuring) indexLoads(g *ground.Ground) {
	if m.Out.Table.Columns == nil {
		return
	}
	before, r := g.Next.References, referencing(m)
	r.undoRebase(g)
	anew, why := r.outdated(g)
	loads, references, problem := Of(m.In.Config, m.Out.Table, without(g.Next.References, anew))
	if problem != nil {
		m.Tell(*problem)
		return
	}
	m.Out.Loads = loads
	if !m.Out.Table.Frozen {
		r.takeReferences(g, references, anew, why)
	}
	unit, ratio := unitOf(m.In.Config, g.Next.References), r.ratioTo(before)
	m.In.Memory, m.Out.Memory = m.In.Memory.In(unit, ratio), m.Out.Memory.In(unit, ratio)
}

// standings is what is known of the clusters beside their metrics. Without Applications, by their number and by all
// pods, a cluster needs no series.
func (m measuring) standings(g *ground.Ground) measure.Standings {
	reported := m.In.Observed.Reported
	answered := map[int]bool{}
	for _, p := range reported.Pods {
		answered[p.Replica] = answered[p.Replica] || p.Ready && p.Answered
	}
	hides := reported.Hides(m.In.Memory.Changes.ByName)
	unserved, known := m.unserved(), m.Out.Memory.Known.HasInOrder()
	all := make(measure.Standings, len(m.Out.Fleet.Clusters))
	for i := range m.Out.Fleet.Clusters {
		cl := &m.Out.Fleet.Clusters[i]
		name := cl.Shard.ID
		fresh := !known(name)
		s := measure.Standing{Uncounted: fresh, New: fresh, Moved: !m.In.Had(name, cl.Shard.Server),
			Replica: plan.NoReplica}
		if row, planned := g.Next.Clusters[name]; planned {
			s.Replica = row.Replica
		}
		s.Unshown = hides && reported.Clusters[name].ByName
		s.Unserved = unserved(name, s.Replica)
		shown, looked := reported.Clusters[name]
		looked = looked && answered[s.Replica]
		unread := looked && len(shown.Live) == 0 && !s.Unshown
		s.Ended = unread && !s.Unserved
		if looked && reported.Asked {
			s.Gone = unread
			s.Idle = reported.Idle(name)
			s.Uncounted = s.Uncounted || s.Idle
		}
		all[i] = s
	}
	return all
}

// unserved tells whether nobody works on a cluster, or somebody else since just now, as far as is known before this
// cycle's look: of those that no replica has, that are on one which is not ready, or that moved within a wave's time.
func (m measuring) unserved() func(name string, replica int) bool {
	before, moved := m.In.Memory.Changes, map[string]bool{}
	for name, at := range before.Moved {
		moved[name] = m.In.Now.Sub(at) < ledger.JustMoved
	}
	if p := m.In.InForce; p != nil && p.Rollout != nil {
		for name := range ledger.MovedBy(*p.Rollout) {
			moved[name] = true
		}
	}
	works := standing.Working(m.In.Observed.Pods)
	return func(name string, replica int) bool {
		_, lost := before.Ownership.Lost[name]
		down := m.In.Observed.Known && replica >= 0 && !works[replica]
		return lost || down || moved[name]
	}
}

// Limit sets what a replica may carry, where the configuration says nothing of it, and remembers it of values that are
// believed.
func Limit(m *outcome.Draft, g *ground.Ground) {
	if g.In.Config.Partition.Capacity != nil && len(g.In.Config.Size.Weights) == 0 || m.Out.Loads == nil {
		return
	}
	loads := OfUnits(&m.Out, g)
	if !m.Out.Table.Frozen {
		m.Out.Memory.Heaviest = m.In.Memory.Heaviest.Next(loads, m.In.Now)
	}
	g.Capacity = m.Out.Memory.Heaviest.Capacity(loads)
}

// OfUnits are the loads of what stays together, but for clusters that nothing was measured of for as long as a value
// is held.
func OfUnits(out *outcome.Outcome, g *ground.Ground) []plan.Load {
	units := g.Units().All()
	loads := make([]plan.Load, 0, len(units))
	for _, u := range units {
		var sum plan.Load
		var err error
		for _, i := range u.Clusters {
			if forgotten(out.Table, i) {
				continue
			}
			if sum, err = plan.SumLoads(sum, out.Loads[i]); err != nil {
				return nil // the partition says so
			}
		}
		loads = append(loads, sum)
	}
	return loads
}

// forgotten reports whether a cluster's value of a metric that is believed is older than one is held.
func forgotten(t measure.Table, i int) bool {
	for c := range t.Columns {
		col := &t.Columns[c]
		if col.Flags[i] == measure.Held && t.At.Sub(time.UnixMilli(col.SampledAt[i])) > measure.HoldFor {
			return !t.Frozen
		}
	}
	return false
}

// ofClusters are the answers of metrics that say something of clusters.
func ofClusters(metrics []poll.Metric, all []poll.Fetched) []poll.Fetched {
	named := map[string]bool{}
	for _, m := range metrics {
		named[m.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(f poll.Fetched) bool { return !named[f.Metric] })
}
