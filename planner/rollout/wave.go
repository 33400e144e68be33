package rollout

import (
	"cmp"
	"fmt"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// unit is the clusters of one server that are still to move: Argo CD cannot tell them apart, so they move together.
type unit struct {
	placement.Unit // its home is where it goes
	from           int
	leaves         bool   // from a replica that is to go
	connected      bool   // its owner has it connected now
	idle           bool   // no replica is to report it
	unserved       bool   // nobody works for the replica that it leaves
	unknown        string // a cluster of which nobody says who owns it
}

// loadOf is a row's load, and a little more, so that clusters count where loads are unknown or alike.
func loadOf(row plan.Row) plan.Load { return plan.LoadOf(row.Load) + 1 }

// remaining lists the units that are not where they go, by name.
func (c chooser) remaining() []unit {
	secrets, to := c.seen.Sorted(), c.rows.destinations()
	var units []unit
	server := func(i int) string { return secrets[i].Together() }
	for _, members := range placement.Group(len(secrets), server) {
		u := unit{Unit: placement.Unit{Home: plan.NoReplica}, connected: true, idle: true}
		for _, i := range members {
			if s := secrets[i]; s.Managed() {
				c.joins(&u, s, to)
			}
		}
		if len(u.Names) > 0 {
			u.unserved = c.unserved(u.from)
			units = append(units, u)
		}
	}
	return units
}

// joins adds a cluster to its unit, if it is to move and goes with the others.
func (c chooser) joins(u *unit, s observed.Secret, destinations map[string]int) {
	row, known := c.p.Clusters[s.Name]
	from, _, _ := c.v.Effective(s.Name)
	to := destinations[s.Name]
	if !known || from == to || len(u.Names) > 0 && to != u.Home {
		return // pinned apart: the next waves move it
	}
	if len(u.Names) == 0 {
		u.from, u.Home = from, to
	}
	owned, told := c.seen.Owned[s.Name]
	u.Unit = u.With(s.Name, loadOf(row)).Taking(c.o.Bytes[s.Name])
	u.Apart = placement.Joined(u.Apart, s.Apart)
	u.leaves = u.leaves || from >= c.p.Rollout.Replicas
	u.idle = u.idle && !s.Awaited(owned)
	u.connected = u.connected && (!s.Awaited(owned) || len(owned.Live) > 0)
	if !told && !s.Skip {
		u.unknown = cmp.Or(u.unknown, s.Name)
	}
}

// carried is the load of each replica by the rows, once those units are where they go.
func (c chooser) carried(moved []unit) []plan.Load {
	size := c.p.Widest()
	for _, row := range c.p.Clusters {
		size = max(size, row.Replica+1)
	}
	loads := make([]plan.Load, size)
	for _, row := range c.p.Clusters {
		loads[row.Replica] += loadOf(row)
	}
	for _, u := range moved {
		for _, name := range u.Names {
			loads[c.p.Clusters[name].Replica] -= loadOf(c.p.Clusters[name])
		}
		loads[u.Home] += u.Load
	}
	return loads
}

// inUse is the memory that each replica's clusters take by the rows; nil: nobody knows.
func (c chooser) inUse(replicas int) []plan.Bytes {
	if c.o.Memory <= 0 {
		return nil
	}
	all := make([]plan.Bytes, replicas)
	for name, row := range c.p.Clusters {
		all[row.Replica] = all[row.Replica].Plus(c.o.Bytes[name])
	}
	return all
}

// enterWave gives a wave's clusters their new rows.
func (t live) enterWave(wave, left []unit, done string) {
	r := t.p.Rollout
	moving, most := 0, max(t.o.MaxMovesPerWave, 1)
	waits := -len(wave)
	for _, u := range left {
		waits += t.waves.moves(u)
	}
	for _, u := range wave {
		moving += t.waves.moves(u)
		waits += 1 - t.waves.moves(u)
	}
	r.Wave++
	r.Waves = r.Wave + (waits+most-1)/most
	r.Moves, r.Was = map[string]int{}, map[string]int{}
	for _, u := range wave {
		for _, name := range u.Names {
			r.Was[name], _, _ = t.v.Effective(name)
			r.Moves[name] = u.Home
			t.rows.setRow(name, u.Home)
		}
	}
	t.enter(plan.Moving, Advanced, fmt.Sprintf("%swave %d of %d moves %d of %d clusters", done, r.Wave, r.Waves, moving, t.servers()))
}
