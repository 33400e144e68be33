package proposal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/sizing"
	"ballast/planner/cycle/snapshot"
)

// leaveOut takes the moves to some replicas out of a division, and with them those to the replicas that clusters then
// do not leave. So every other replica has what was decided for it, and each of these no cluster that it has not
// already: no cap, room or group of the division is broken by what stays.
func leaveOut(of map[string]int, moves []outcome.Move, to map[int]string) (kept map[string]int, left []outcome.Move) {
	kept, without := maps.Clone(of), map[int]bool{}
	for replica := range to {
		without[replica] = true
	}
	for again := true; again; {
		again = false
		moves = slices.DeleteFunc(slices.Clone(moves), func(m outcome.Move) bool {
			if !without[m.To] {
				return false
			}
			kept[m.Cluster], without[m.From], again = m.From, true, true
			left = append(left, m)
			return true
		})
	}
	return kept, left
}

// withRoom is a division without the moves to replicas that cannot receive, and why those wait; empty: none does. A
// number of replicas that a person wrote waits for no growth that the rules of change hold back.
func withRoom(s *snapshot.Snapshot, of map[string]int, asked bool) (kept map[string]int, waits string) {
	full := map[int]string{}
	if !asked {
		maps.Copy(full, s.Ungrown)
	}
	for replica, is := range sizing.Cramped(s.In) {
		if is {
			full[replica] = fmt.Sprintf("the node of replica %d had no room for its size within the last hour", replica)
		}
	}
	kept, left := leaveOut(of, s.Moves(of), full)
	if len(left) == 0 {
		return kept, ""
	}
	return kept, full[left[0].To] + ", and nothing is levelled out onto it"
}

// KeepWithin takes out of back what would take a replica beyond its memory that is not so now, those that take the most
// first, and names that. What stays may be too much where it stands, so that all are looked at once more.
func KeepWithin(s *snapshot.Snapshot, back map[string]int, replicas int) (stay []string) {
	for again := s.InUse != nil; again; {
		rows := s.WantOf(replicas, back).Rows
		after := s.InUse.On(replicas, func(i int) int {
			if row, planned := rows[s.Fleet.Clusters[i].Shard.ID]; planned {
				return row.Replica
			}
			return s.Standing(i)
		})
		come := comers(s, back, replicas)
		again = false
		for r, bytes := range after {
			most := s.InUse.Room
			if now := s.InUse.Now; r < len(now) {
				most = max(most, now[r])
			}
			for _, i := range come[r] {
				if bytes <= most {
					break
				}
				name := s.Fleet.Clusters[i].Shard.ID
				delete(back, name)
				bytes -= s.InUse.Of[i]
				stay, again = append(stay, name), true
			}
		}
	}
	slices.Sort(stay)
	return stay
}

// comers are the clusters that take memory and go to each replica from another one, those that take the most first.
func comers(s *snapshot.Snapshot, back map[string]int, replicas int) [][]int {
	come := make([][]int, max(replicas, 0))
	for i, cl := range s.Fleet.Clusters {
		to, goes := back[cl.Shard.ID]
		comes := goes && to >= 0 && to < replicas && s.Standing(i) != to
		if comes && s.InUse.Of[i] > 0 {
			come[to] = append(come[to], i)
		}
	}
	for _, clusters := range come {
		slices.SortStableFunc(clusters, func(i, k int) int { return cmp.Compare(s.InUse.Of[k], s.InUse.Of[i]) })
	}
	return come
}
