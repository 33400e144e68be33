package proposal

import (
	"cmp"
	"slices"

	"ballast/planner/cycle/snapshot"
)

// KeepWithin takes out of back what would take a replica beyond its memory that is not so now, those that take the most first, and
// names that. What stays may be too much where it stands, so that all are looked at once more.
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
