package life

import (
	"maps"
	"slices"
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/ledger"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// budget is what moved, and when, by the leader's clock.
type budget struct {
	counted map[change.Cause]int
	moved   map[change.Cause][]time.Time // all of it
	onward  map[change.Cause][]time.Time // but for ways back, which wait for nothing
	servers []counted                    // how many there were
	looked  time.Time                    // by the leader's clock

	failed  map[string]time.Time // clusters that a failover moved, and when
	twice   map[string]time.Time // of those, whom another one had moved within the day
	emptied int                  // the replica of the failover that began last, and when that was
	at      time.Time
	worked  bool         // it worked since, for a while
	dead    map[int]bool // replicas that did not work when that began, nor since
}

// counted is how many servers there were, and how many of them the largest group has that stays together.
type counted struct {
	at         time.Time
	n, largest int
}

// clone shares nothing that changes.
func (b budget) clone() budget {
	times := func(of map[change.Cause][]time.Time) map[change.Cause][]time.Time {
		c := maps.Clone(of)
		for cause := range c {
			c[cause] = slices.Clone(c[cause])
		}
		return c
	}
	b.moved, b.onward, b.failed, b.twice, b.dead = times(b.moved), times(b.onward), maps.Clone(b.failed), maps.Clone(b.twice), maps.Clone(b.dead)
	return b
}

// leaders is the time by the leader's clock.
func (j *judge) leaders() time.Time { return j.Now.Add(j.Skew) }

// moves: each cause keeps to what the docs promise of it. Levelling waits for all moves, and with its ways back stays within
// twice the share. What people ask for (drains and rollbacks) waits for itself and for failovers. Pins, healing, what
// leaves replicas that an autoscaler took away, and what others take on freely of a failover wait for nothing.
func (j *judge) moves() {
	b := &j.budget
	if b.counted == nil {
		b.counted = map[change.Cause]int{}
	}
	if b.moved == nil {
		b.moved, b.onward, b.failed, b.twice = map[change.Cause][]time.Time{}, map[change.Cause][]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	}
	b.shift(j.leaders())
	b.servers = append(b.servers, counted{j.Now, len(j.Clusters) - len(j.Twins), j.largest()})
	for len(b.servers) > 1 && j.Now.Sub(b.servers[0].at) > 2*time.Hour {
		b.servers = b.servers[1:]
	}
	back := j.Plan != nil && j.Plan.Rollout != nil && j.Plan.Rollout.Stage == plan.Reverting
	for _, cause := range change.Causes() {
		n := j.Moves[cause] - b.counted[cause]
		if n == 0 {
			continue
		}
		b.counted[cause] = j.Moves[cause]
		times := slices.Repeat([]time.Time{j.leaders()}, n)
		if cause == change.Failover && j.Plan != nil && j.Plan.Rollout != nil {
			for name := range ledger.MovedBy(*j.Plan.Rollout) {
				if j.lately(b.twice, name) || j.lately(b.failed, name) && !back {
					b.twice[name] = j.leaders()
				}
				b.failed[name] = j.leaders()
			}
		}
		if b.moved[cause] = append(b.moved[cause], times...); !back {
			b.onward[cause] = append(b.onward[cause], times...)
		}
		j.spent(cause, back)
	}
}

// shift takes what lies ahead as now, after a clock that was ahead, and no time as passed: so the budget does (planner/change).
// Of levelling it counts on from when the clock said that it was.
func (b *budget) shift(now time.Time) {
	if !now.Before(b.looked) {
		b.looked = now
		return
	}
	b.looked = now
	for _, cause := range []change.Cause{change.Failover, change.Drain, change.Rollback} {
		for _, times := range [][]time.Time{b.moved[cause], b.onward[cause]} {
			for i := range times {
				times[i] = earlier(times[i], now)
			}
		}
	}
	for _, times := range []map[string]time.Time{b.failed, b.twice} {
		for name, at := range times {
			times[name] = earlier(at, now)
		}
	}
	b.at = earlier(b.at, now)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// spent judges each window after moves of a cause.
func (j *judge) spent(cause change.Cause, back bool) {
	asked := cause == change.Drain || cause == change.Rollback
	for _, rate := range j.Config.Change.Moves.Rate {
		since, most := j.leaders().Add(-time.Duration(rate.Period)), j.share(rate.Percent)+j.beyond()
		switch {
		case cause == change.Balance:
			if n := within(j.budget.onward[cause], since); n > most {
				j.fail("levelling moved %d clusters within %s, and %d may", n, time.Duration(rate.Period), most)
			}
			if n := within(j.budget.moved[cause], since); n > 2*most {
				j.fail("levelling and its ways back moved %d clusters within %s, and twice %d may", n, time.Duration(rate.Period), most)
			}
		case asked && !back:
			n := 0
			for _, before := range []change.Cause{change.Failover, change.Drain, change.Rollback} {
				n += within(j.budget.onward[before], since)
			}
			if n > most {
				j.fail("a %s moved clusters, %d within %s with those of failovers, drains and rollbacks, and %d may",
					cause, n, time.Duration(rate.Period), most)
			}
		}
	}
}

// share is how many clusters that share may be: of the most that there were in the last two hours, since what went lately is
// still known for a while, and what came is not yet.
func (j *judge) share(percent int) int {
	n := 0
	for _, c := range j.budget.servers {
		n = max(n, c.n)
	}
	return max(1, percent*n/100)
}

// beyond is how many more than that share may move: a group that stays together goes whole once there is room for one of its servers.
func (j *judge) beyond() int {
	n := 0
	for _, c := range j.budget.servers {
		n = max(n, c.largest-1)
	}
	return n
}

// largest is how many servers the largest group has that the last cycle kept together.
func (j *judge) largest() (most int) {
	of := map[string]map[string]bool{}
	for _, c := range j.Last.Fleet.Clusters {
		if c.Bound == "" {
			continue
		}
		if of[c.Bound] == nil {
			of[c.Bound] = map[string]bool{}
		}
		of[c.Bound][c.Shard.Server] = true
		most = max(most, len(of[c.Bound]))
	}
	return most
}

// fewest is how many it may have been at least, in the last two hours.
func (j *judge) fewest(percent int) int {
	n := j.budget.servers[0].n
	for _, c := range j.budget.servers {
		n = min(n, c.n)
	}
	return max(1, percent*n/100)
}

// within is how many times lie after one.
func within(times []time.Time, since time.Time) (n int) {
	for _, at := range times {
		if at.After(since) {
			n++
		}
	}
	return n
}

// failedOver judges a failover as it begins: one replica an hour and whoever was dead by then, and what failovers moved twice within
// the day waits for the budget, but for one cluster. A group that stays together is one.
func (j *judge) failedOver() {
	b := &j.budget
	if !j.begins() || j.memory.Changes.Cause != change.Failover {
		return
	}
	cordoned, again, targets, groups := j.cordoned(), 0, j.targets(), map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		to := targets[name]
		from := j.stood(name)
		if from == to || slices.Contains(cordoned, from) || len(j.SecretsOf(name)) > 1 {
			continue // a drain goes along, and Secrets of one server go together
		}
		j.oneAnHour(from)
		group := j.found(name).Bound
		if j.again(name) && !groups[group] {
			again++
		}
		groups[group] = group != ""
	}
	for _, rate := range j.Config.Change.Moves.Rate {
		since, most := j.leaders().Add(-time.Duration(rate.Period)), j.share(rate.Percent)
		moved := b.moved[change.Failover]
		if before := within(moved, since) - within(moved, j.leaders().Add(-1)); again > max(1, most-before) {
			j.fail("a failover moves %d clusters for the third time in a day, beside %d within %s, and %d may",
				again, before, time.Duration(rate.Period), most)
		}
	}
}

// stood is the replica that a cluster had before the present plan: by its row; where it comes with this plan by its Secret, or as
// this plan placed it.
func (j *judge) stood(name string) int {
	if row, known := j.before.Clusters[name]; known {
		return row.Replica
	}
	if carries := shardOf(j.found(name)); carries >= 0 {
		return carries
	}
	return j.Plan.Clusters[name].Replica
}

// again reports whether failovers moved a cluster twice within the day. One that ended before its wave moved nothing.
func (j *judge) again(name string) bool { return j.lately(j.budget.twice, name) }

// lately reports whether that was before now, within the day.
func (j *judge) lately(times map[string]time.Time, name string) bool {
	at, known := times[name]
	return known && at.Before(j.leaders()) && j.leaders().Sub(at) < 24*time.Hour
}

// oneAnHour: the hour of a replica that worked meanwhile holds up no other, nor one that was dead when it began.
func (j *judge) oneAnHour(from int) {
	b, now := &j.budget, j.leaders()
	if within := now.Sub(b.at) < time.Hour && !b.at.IsZero(); within && b.dead[from] {
		return
	}
	if since := now.Sub(b.at); from != b.emptied && !b.at.IsZero() && since >= 0 && since < time.Hour && !b.worked {
		j.fail("a failover begins for replica %d, and one of %d, which did not work since, %s ago", from, b.emptied, since)
	}
	if from != b.emptied || now.Sub(b.at) >= time.Hour {
		b.emptied, b.at, b.worked, b.dead = from, now, false, map[int]bool{}
		for ordinal := range j.Replicas {
			b.dead[ordinal] = !j.serves(ordinal)
		}
	}
}

// works takes note of who worked since the last failover began.
func (b *budget) works(j *judge) {
	b.worked = b.worked || j.serves(b.emptied) || j.recovers(b.emptied)
	maps.DeleteFunc(b.dead, func(ordinal int, _ bool) bool { return j.serves(ordinal) })
}

// cordoned are the replicas that people want empty now.
func (j *judge) cordoned() []int {
	cordons, err := people.ParseCordons(j.Cordon)
	if err != nil {
		j.fail("reading %q: %v", j.Cordon, err)
	}
	return people.Cordoned(cordons, j.leaders())
}

// TestAClusterThatComesFailsOverFromWhereItIs: a Secret that people kept on a replica that died gets its row and leaves in one
// plan; the plan before has no row of it, which is no word of replica 0.
func TestAClusterThatComesFailsOverFromWhereItIs(t *testing.T) {
	c := configuration()
	c.Change.Moves.Rate = nil
	l, j := twinned(t, c)
	l.Pass(2 * time.Hour)
	l.OptedOut["c07"], l.Shards["c07"] = true, 2
	l.Pass(10 * time.Minute)
	l.Broken[2] = true
	l.Pass(20 * time.Minute)
	began := j.budget.at
	l.Pins = plan.Pins{"c03": 0} // so that replica 1 is the lighter one
	l.Pass(2 * time.Minute)
	clear(l.OptedOut)
	for j.Plan.Clusters["c07"] == (plan.Row{}) {
		l.Pass(act)
	}
	if to, fails := j.memory.Changes.Target["c07"]; !fails || to != 1 || j.stood("c07") != 2 {
		t.Errorf("it goes from %d to %d (%t), want from 2 to 1 with the plan that has its row first", j.stood("c07"), to, fails)
	}
	l.Pass(10 * time.Minute)
	if at := l.Plan.Clusters["c07"].Replica; at != 1 || j.budget.emptied != 2 || !j.budget.at.Equal(began) {
		t.Errorf("it is on %d; replica %d was failed over last, %s after %s", at, j.budget.emptied, j.budget.at, began)
	}
}

// TestTheJudgeExcusesWhatWaitsForAnHourAlone: the day's share was spent two hours ago, which keeps waiting what its replica may have
// died of, and what goes along with it.
func TestTheJudgeExcusesWhatWaitsForAnHourAlone(t *testing.T) {
	l, j := twinned(t, configuration())
	l.Pass(10 * time.Minute)
	spent := func(ago time.Duration) {
		j.budget.moved[change.Failover] = slices.Repeat([]time.Time{j.leaders().Add(-ago)}, len(j.Clusters))
	}
	moved, other := j.Clusters[2], j.Clusters[5]
	j.memory.Changes.Suspect = map[string]time.Time{moved: j.leaders().Add(-2 * time.Hour)}
	for _, test := range []struct {
		ago          time.Duration
		moved, other bool
	}{{time.Minute, true, true}, {2 * time.Hour, true, false}, {25 * time.Hour, false, false}} {
		spent(test.ago)
		if a, b := j.budgetWaits(moved), j.budgetWaits(other); a != test.moved || b != test.other {
			t.Errorf("%s after all moved: what moved waits %t, another %t; want %t and %t", test.ago, a, b, test.moved, test.other)
		}
	}
}
