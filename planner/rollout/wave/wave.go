// Package wave chooses which clusters a live rollout moves next.
package wave

import (
	"cmp"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// Unit is the clusters of one server that are still to move: Argo CD cannot tell them apart, so they move together.
type Unit struct {
	placement.Unit // its home is where it goes
	from           int
	Leaves         bool   // from a replica that is to go
	connected      bool   // its owner has it connected now
	idle           bool   // no replica is to report it
	unserved       bool   // nobody works for the replica that it leaves
	unknown        string // a cluster of which nobody says who owns it
}

// LoadOf is a row's load, and a little more, so that clusters count where loads are unknown or alike.
func LoadOf(row plan.Row) plan.Load { return plan.LoadOf(row.Load) + 1 }

// Remaining lists the units that are not where they go, by name.
func (c Chooser) Remaining() []Unit {
	secrets, to := c.Seen.Sorted(), c.Rows.Destinations()
	var units []Unit
	server := func(i int) string { return secrets[i].Together() }
	for _, members := range placement.Group(len(secrets), server) {
		u := Unit{Unit: placement.Unit{Home: plan.NoReplica}, connected: true, idle: true}
		for _, i := range members {
			if s := secrets[i]; s.Managed() {
				c.joins(&u, s, to)
			}
		}
		if len(u.Names) > 0 {
			u.unserved = c.Unserved(u.from)
			units = append(units, u)
		}
	}
	return units
}

// joins adds a cluster to its unit, if it is to move and goes with the others.
func (c Chooser) joins(u *Unit, s observed.Secret, destinations map[string]int) {
	row, known := c.Plan.Clusters[s.Name]
	from, _, _ := c.View.Effective(s.Name)
	to := destinations[s.Name]
	if !known || from == to || len(u.Names) > 0 && to != u.Home {
		return // pinned apart: the next waves move it
	}
	if len(u.Names) == 0 {
		u.from, u.Home = from, to
	}
	owned, told := c.Seen.Owned[s.Name]
	u.Unit = u.With(s.Name, LoadOf(row)).Taking(c.Options.Bytes[s.Name])
	u.Apart = placement.Joined(u.Apart, s.Apart)
	u.Leaves = u.Leaves || from >= c.Plan.Rollout.Replicas
	u.idle = u.idle && !s.Awaited(owned)
	u.connected = u.connected && (!s.Awaited(owned) || len(owned.Live) > 0)
	if !told && !s.Skip {
		u.unknown = cmp.Or(u.unknown, s.Name)
	}
}

// carried is the load of each replica by the rows, once those units are where they go.
func (c Chooser) carried(moved []Unit) []plan.Load {
	size := c.Plan.Widest()
	for _, row := range c.Plan.Clusters {
		size = max(size, row.Replica+1)
	}
	loads := make([]plan.Load, size)
	for _, row := range c.Plan.Clusters {
		loads[row.Replica] += LoadOf(row)
	}
	for _, u := range moved {
		for _, name := range u.Names {
			loads[c.Plan.Clusters[name].Replica] -= LoadOf(c.Plan.Clusters[name])
		}
		loads[u.Home] += u.Load
	}
	return loads
}

// inUse is the memory that each replica's clusters take by the rows; nil: nobody knows.
func (c Chooser) inUse(replicas int) []plan.Bytes {
	if c.Options.Memory <= 0 {
		return nil
	}
	all := make([]plan.Bytes, replicas)
	for name, row := range c.Plan.Clusters {
		all[row.Replica] = all[row.Replica].Plus(c.Options.Bytes[name])
	}
	return all
}
