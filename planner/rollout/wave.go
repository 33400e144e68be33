package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ballast/planner/plan"
)

// unit is the clusters of one server that are still to move: Argo CD cannot tell them apart, so they move together.
type unit struct {
	names     []string // ascending
	from, to  int
	load      plan.Load
	leaves    bool   // from a replica that is to go
	connected bool   // its owner has it connected now
	unknown   string // a cluster of which nobody says who owns it
}

// anywhere is the destination of a cluster that must leave its replica, and nobody said whereto.
const anywhere = -1

// loadOf is a row's load, and a little more, so that clusters count where loads are unknown or alike.
func loadOf(row plan.Row) plan.Load {
	var load plan.Load
	if row.Load != "" && load.UnmarshalText([]byte(row.Load)) != nil {
		load = 0
	}
	return load + 1
}

// remaining lists the units that are not where they go, by name. A unit with a Secret that must not be written stays: its
// clusters would part.
func (t *turn) remaining() []unit {
	byServer, stuck := map[string][]Stamp{}, map[string]bool{}
	var order []string
	for _, s := range sorted(t.seen.Secrets) {
		server := cmp.Or(serverHash(s), s.Name)
		if _, known := t.p.Clusters[s.Name]; !known || !s.managed() {
			stuck[server] = stuck[server] || !s.managed()
			continue
		}
		if byServer[server] == nil {
			order = append(order, server)
		}
		byServer[server] = append(byServer[server], s)
	}
	var units []unit
	for _, server := range order {
		if u := t.unitOf(byServer[server]); len(u.names) > 0 && !stuck[server] {
			units = append(units, u)
		}
	}
	t.spread(units)
	return units
}

// unitOf are those of a server's clusters that are not where they go.
func (t *turn) unitOf(stamps []Stamp) unit {
	u := unit{to: anywhere, connected: true}
	for _, s := range stamps {
		if to := t.destination(s.Name); u.to == anywhere {
			u.to = to
		}
	}
	for _, s := range stamps {
		from, _, _ := t.v.Effective(s.Name)
		to := t.destination(s.Name)
		if to == anywhere {
			to = u.to
		}
		if from == to {
			continue
		}
		if len(u.names) == 0 {
			u.from, u.to = from, to
		}
		if to != u.to {
			continue // pinned apart: the next waves move it
		}
		owned, known := t.seen.Owned[s.Name]
		u.names = append(u.names, s.Name)
		u.load += loadOf(t.p.Clusters[s.Name])
		u.leaves = u.leaves || from >= t.p.Rollout.Replicas
		u.connected = u.connected && (s.Skip || owned.Idle || len(owned.Live) > 0)
		if !known && !s.Skip {
			u.unknown = cmp.Or(u.unknown, s.Name)
		}
	}
	return u
}

// destination is where a cluster goes: its pin, the decision, or where it is, if that replica stays. What must leave its
// replica does not wait for one that may receive nothing.
func (t *turn) destination(name string) int {
	end := t.p.Rollout.Replicas
	now, _, _ := t.v.Effective(name)
	if pin, pinned := t.v.Pin(name); pinned && pin < end {
		return pin
	}
	if to, decided := t.target[name]; decided && to >= 0 && to < end && (now < end || !t.o.Closed[to]) {
		return to
	}
	if now < end {
		return now
	}
	return anywhere
}

// spread gives the units that may go anywhere the lightest replica that stays, the heaviest unit first: by what rows will
// carry in the end, then by number. Replicas that may not receive now come last.
func (t *turn) spread(units []unit) {
	var homeless []*unit
	for i := range units {
		if units[i].to == anywhere {
			homeless = append(homeless, &units[i])
		}
	}
	if len(homeless) == 0 {
		return
	}
	carried := t.carried(units)[:t.p.Rollout.Replicas]
	slices.SortStableFunc(homeless, func(a, b *unit) int { return cmp.Compare(b.load, a.load) })
	shut := make([]bool, len(carried))
	for r := range carried {
		shut[r] = t.o.Closed[r] || t.cannotReceive(r) != ""
	}
	for _, u := range homeless {
		for r := range carried {
			if u.to == anywhere || lighter(carried, shut, r, u.to) {
				u.to = r
			}
		}
		carried[u.to] += u.load
	}
}

func lighter(carried []plan.Load, shut []bool, a, b int) bool {
	if shut[a] != shut[b] {
		return shut[b]
	}
	return carried[a] < carried[b]
}

// carried is the load of each replica by the rows, once those units are where they go.
func (t *turn) carried(moved []unit) []plan.Load {
	size := max(t.p.Replicas, t.p.Rollout.Replicas, t.p.Rollout.From.Replicas)
	for _, row := range t.p.Clusters {
		size = max(size, row.Replica+1)
	}
	loads := make([]plan.Load, size)
	for _, row := range t.p.Clusters {
		loads[row.Replica] += loadOf(row)
	}
	for _, u := range moved {
		for _, name := range u.names {
			loads[t.p.Clusters[name].Replica] -= loadOf(t.p.Clusters[name])
		}
		if u.to != anywhere {
			loads[u.to] += u.load
		}
	}
	return loads
}

// enterWave gives a wave's clusters their new rows.
func (t *turn) enterWave(wave, left []unit, done string) {
	r := t.p.Rollout
	clusters := func(units []unit) (n int) {
		for _, u := range units {
			n += len(u.names)
		}
		return n
	}
	moving, most := clusters(wave), max(t.o.MaxMovesPerWave, 1)
	r.Wave++
	r.Waves = r.Wave + (clusters(left)-moving+most-1)/most
	r.Moves, r.Was = map[string]int{}, map[string]int{}
	for _, u := range wave {
		for _, name := range u.names {
			r.Was[name], _, _ = t.v.Effective(name)
			r.Moves[name] = u.to
			t.setRow(name, u.to)
		}
	}
	t.enter(plan.Moving, Advanced, fmt.Sprintf("%swave %d of %d moves %d of %d clusters", done, r.Wave, r.Waves, moving, len(t.p.Clusters)))
}

// settleGone gives rows whose Secret is gone their destination, or the replica of a Secret with the same server: nobody
// runs them, and should the Secret come back, its replica must be there.
func (t *turn) settleGone() {
	present, twins := map[string]bool{}, map[string]int{}
	for _, s := range sorted(t.seen.Secrets) {
		present[s.Name] = true
		if row, known := t.p.Clusters[s.Name]; known && row.Server != "" {
			twins[row.Server] = row.Replica
		}
	}
	var gone []unit
	for _, name := range slices.Sorted(maps.Keys(t.p.Clusters)) {
		row := t.p.Clusters[name]
		to := t.destination(name)
		if twin, ok := twins[row.Server]; ok {
			to = twin
		}
		if !present[name] && to != row.Replica {
			gone = append(gone, unit{names: []string{name}, from: row.Replica, to: to, load: loadOf(row)})
		}
	}
	t.spread(gone)
	for _, u := range gone {
		t.setRow(u.names[0], u.to)
	}
}
