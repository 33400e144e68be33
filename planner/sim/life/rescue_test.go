package life

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/input"
)

// TestADeadReplicaIsEmptiedBesideAnEnvThatIsNotLives: a failover set the env, too, which restarts pods one by one behind the
// one that is dead: it was turned back and begun again for ever, and the dead replica kept its clusters.
func TestADeadReplicaIsEmptiedBesideAnEnvThatIsNotLives(t *testing.T) {
	twenty := 20
	for name, before := range map[string]func(*Life){
		"one Secret that nobody may write": func(l *Life) { l.Refused[l.Clusters[4]] = true; l.Pass(3 * time.Hour) },
		"maxReplicas raised":               func(l *Life) { l.Pass(3 * time.Hour); l.Config.Partition.MaxReplicas = &twenty },
		"broken at installation":           func(*Life) {},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(1, configuration(), 3, "3", loadsOf(1, 30))
			before(l)
			envs := l.Counts["envs"]
			l.Broken[1] = true
			l.Crash(1, false, l.Now)
			l.Pass(2 * time.Hour)
			var left []string
			for name, row := range l.Plan.Clusters {
				if row.Replica == 1 && !l.Refused[name] {
					left = append(left, name)
				}
			}
			if made := l.Counts["envs"] - envs; left != nil || made > 2 {
				t.Errorf("after two hours %v are on the dead replica, and the env was written %d times", left, made)
			}
		})
	}
}

// TestHoursOfARescue: under the shipped rates, after a day in which levelling had its budget, one replica dies for good. How long it
// takes until each of its clusters has an owner that works, and how many cluster-hours nobody had one: another replica takes on a
// quarter of what it carried in each hour, and beside that what the rates let go.
func TestHoursOfARescue(t *testing.T) {
	equal := map[string]float64{}
	for name := range loadsOf(1, 60) {
		equal[name] = 10
	}
	for name, test := range map[string]struct {
		replicas    int
		loads       map[string]float64
		first, last time.Duration // when the first and the last cluster had an owner again
		clusters    int
		hours       float64 // without an owner, of all of them
	}{
		"1 of 2, equal":     {2, equal, 7 * time.Minute, 2*time.Hour + 7*time.Minute, 30, 26.7},
		"1 of 3, equal":     {3, equal, 6 * time.Minute, time.Hour + 6*time.Minute, 19, 6.2},
		"1 of 2, lognormal": {2, loadsOf(1, 60), 7 * time.Minute, time.Hour + 7*time.Minute, 30, 10},
		"1 of 3, lognormal": {3, loadsOf(1, 60), 6 * time.Minute, 9 * time.Minute, 17, 2.1},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(1, configuration(), test.replicas, strconv.Itoa(test.replicas), test.loads)
			l.Pass(24 * time.Hour)
			if err := l.Quiet(); err != nil {
				t.Fatal(err)
			}
			began, orphans := l.Now, 0
			for _, row := range l.Plan.Clusters {
				if row.Replica == 1 {
					orphans++
				}
			}
			l.Broken[1] = true
			l.Crash(1, false, l.Now)
			var first, last time.Duration
			hours, all := 0.0, orphans
			for orphans > 0 && l.Now.Sub(began) < 48*time.Hour {
				l.Pass(time.Minute)
				hours += float64(orphans) / 60
				if orphans = l.orphans(); orphans < all && first == 0 {
					first = l.Now.Sub(began)
				}
				last = l.Now.Sub(began)
			}
			t.Logf("%d clusters, the first has an owner after %s, the last after %s, %.1f cluster-hours without one", all, first, last, hours)
			late := first > test.first || last > test.last
			if late || all != test.clusters || hours > test.hours {
				t.Errorf("want %d, %s, %s and %.1f at most", test.clusters, test.first, test.last, test.hours)
			}
		})
	}
}

// TestLevellingKeepsNoRescueWaiting: a replica of four dies after a day on which levelling spent the whole budget, and its clusters have an
// owner as soon as after a day at rest.
func TestLevellingKeepsNoRescueWaiting(t *testing.T) {
	const most = 10 * time.Minute
	for name, restless := range map[string]bool{"at rest": false, "levelled all day": true} {
		t.Run(name, func(t *testing.T) {
			l := equals(t, restless)
			began := l.Now
			l.Broken[1] = true
			l.Crash(1, false, l.Now)
			all := l.orphans()
			for l.orphans() > 0 && l.Now.Sub(began) < 48*time.Hour {
				l.Pass(time.Minute)
			}
			took := l.Now.Sub(began)
			t.Logf("%d clusters, the last has an owner after %s", all, took)
			if all < 10 || took > most {
				t.Errorf("%d clusters, the last after %s; want 10 or more, within %s", all, took, most)
			}
		})
	}
}

// TestADaysBudgetKeepsNoClusterWithoutAnOwner: of 60 equal clusters 51 are on one of ten replicas, which dies, and are far more than
// the others take on freely. What is beyond that waits for each hour's share, six servers, and not for the day's, which is spent after two.
func TestADaysBudgetKeepsNoClusterWithoutAnOwner(t *testing.T) {
	const most, owners = 7*time.Hour + 10*time.Minute, 186.0
	loads := map[string]float64{}
	for name := range loadsOf(1, 60) {
		loads[name] = 10
	}
	l := New(1, configuration(), 10, "10", loads)
	for i, name := range l.Clusters {
		if l.Shards[name] = 0; i > 50 {
			l.Shards[name] = i - 50
		}
	}
	l.Pass(10 * time.Minute)
	began, hours := l.Now, 0.0
	l.Broken[0] = true
	l.Crash(0, false, l.Now)
	all := l.orphans()
	for l.orphans() > 0 && l.Now.Sub(began) < 48*time.Hour {
		hours += float64(l.orphans()) / 60
		l.Pass(time.Minute)
	}
	took := l.Now.Sub(began)
	t.Logf("%d clusters, the last has an owner after %s, %.1f cluster-hours without one; moves %v", all, took, hours, l.Moves)
	if all != 51 || took > most || hours > owners {
		t.Errorf("%d clusters, the last after %s, %.1f cluster-hours; want 51, %s and %.1f at most", all, took, hours, most, owners)
	}
}

// orphans is how many clusters have no owner that works.
func (l *Life) orphans() (n int) {
	for _, name := range l.Clusters {
		served := slices.ContainsFunc(l.Owners(name), func(ordinal int) bool { return l.serves(ordinal) })
		if !served || !l.Working(name) {
			n++
		}
	}
	return n
}

// equals is a fleet of 60 equal clusters on four replicas. Where it is restless levelling has spent the whole day's budget.
func equals(t *testing.T, restless bool) *Life {
	loads := map[string]float64{}
	for name := range loadsOf(1, 60) {
		loads[name] = 10
	}
	c := configuration()
	c.Partition, c.Evaluate = voted(time.Hour)
	l := New(1, c, 4, "4", loads)
	for hour := range 30 {
		for i, name := range l.Clusters {
			if restless {
				l.Loads[name] = float64(10 + 90*((i+hour/3)%4/3))
			}
		}
		l.Pass(time.Hour)
	}
	if spent := l.Moves[change.Balance] >= 15; spent != restless {
		t.Fatalf("levelling moved %d clusters", l.Moves[change.Balance])
	}
	maps.Copy(l.Loads, loads) // nothing is levelled any more
	return l
}

// TestHoursOfARollback: what a person goes back to waits for no levelling. Of 60 clusters 15, the budget of a day, are on other replicas
// in the plan that is gone back to; six go back an hour, whether or not levelling has spent the whole day's budget before.
func TestHoursOfARollback(t *testing.T) {
	const most = 2*time.Hour + 30*time.Minute
	for name, restless := range map[string]bool{"at rest": false, "levelled all day": true} {
		t.Run(name, func(t *testing.T) {
			l := equals(t, restless)
			for l.Plan.Rollout != nil {
				l.Pass(time.Minute)
			}
			back := l.Plan.Clone()
			for _, name := range slices.Sorted(maps.Keys(back.Clusters))[:15] {
				row := back.Clusters[name]
				row.Replica = (row.Replica + 1) % 4
				back.Clusters[name] = row
			}
			left := func() (n int) {
				for name, row := range back.Clusters {
					if owners := l.Owners(name); !slices.Equal(owners, []int{row.Replica}) || !l.Working(name) {
						n++
					}
				}
				return n
			}
			began, all, levelled, first := l.Now, left(), l.Moves[change.Balance], time.Duration(0)
			l.Rollback = &input.Rollback{Revision: back.Revision, Plan: &back}
			for left() > 0 && l.Now.Sub(began) < 48*time.Hour {
				if l.Pass(time.Minute); first == 0 && left() < all {
					first = l.Now.Sub(began)
				}
			}
			took := l.Now.Sub(began)
			t.Logf("%d clusters went back, the first after %s, the last after %s; moves %v", all, first, took, l.Moves)
			if all != 15 || took > most || l.Moves[change.Rollback] != 15 || l.Moves[change.Balance] != levelled {
				t.Errorf("%d clusters took %s with moves %v, want 15 within %s by the rollback alone", all, took, l.Moves, most)
			}
		})
	}
}

// TestHoursOfAnEvacuation: what a person wants empty waits for no levelling. Of 60 clusters on four replicas 15 leave one, six an hour,
// whether or not levelling has spent the whole day's budget before.
func TestHoursOfAnEvacuation(t *testing.T) {
	const most = 2*time.Hour + 30*time.Minute
	for name, restless := range map[string]bool{"at rest": false, "levelled all day": true} {
		t.Run(name, func(t *testing.T) {
			l := equals(t, restless)
			began := l.Now
			on := func() (n int) {
				for _, row := range l.Plan.Clusters {
					if row.Replica == 1 {
						n++
					}
				}
				return n
			}
			all := on()
			l.Cordon = "1=" + began.Add(100*time.Hour).UTC().Format(time.RFC3339)
			for on() > 0 && l.Now.Sub(began) < 48*time.Hour {
				l.Pass(time.Minute)
			}
			took := l.Now.Sub(began)
			t.Logf("%d clusters left within %s; moves %v", all, took, l.Moves)
			if took > most || all < 13 {
				t.Errorf("%d clusters took %s, want %s at most", all, took, most)
			}
		})
	}
}
