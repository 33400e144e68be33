package life

import (
	"testing"
	"time"
)

// spread is 60 equal clusters, dealt over the replicas in turn, at rest.
func spread(replicas int) *Life {
	loads := map[string]float64{}
	for name := range loadsOf(1, 60) {
		loads[name] = 10
	}
	l := New(1, configuration(), replicas, "16", loads)
	for i, name := range l.Clusters {
		l.Shards[name] = i % replicas
	}
	l.Pass(2 * time.Hour)
	return l
}

// comes has a replica's pod be ready again.
func (l *Life) comes(ordinal int) {
	delete(l.Broken, ordinal)
	l.Crash(ordinal, false, l.Now)
}

// rescued lets time pass until each cluster has an owner that works: how many had none, for how long, and of all the hours.
func (l *Life) rescued() (orphans int, took time.Duration, hours float64) {
	began, orphans := l.Now, l.orphans()
	for left := orphans; left > 0 && l.Now.Sub(began) < 48*time.Hour; left = l.orphans() {
		hours += float64(left) / 60
		l.Pass(time.Minute)
	}
	return orphans, l.Now.Sub(began), hours
}

// TestHoursOfTwoThatDieAtOnce: neither died of the other's clusters, so that none waits for the other's hour. What the others take on
// is the same quarter for both.
func TestHoursOfTwoThatDieAtOnce(t *testing.T) {
	for _, test := range []struct {
		replicas, orphans int
		took              time.Duration
		hours             float64
	}{
		{10, 12, 10 * time.Minute, 1.5},           // an hour and 7 minutes, 7.2 cluster-hours, when the second waited
		{6, 20, time.Hour + 10*time.Minute, 8.5},  // 12.2
		{4, 30, 2*time.Hour + 10*time.Minute, 29}, // 3 hours, 31.3
	} {
		l := spread(test.replicas)
		l.dies(1)
		l.dies(2)
		orphans, took, hours := l.rescued()
		if orphans != test.orphans || took > test.took || hours > test.hours {
			t.Errorf("two of %d: %d clusters, the last after %s, %.1f cluster-hours; want %d, %s and %.1f at most",
				test.replicas, orphans, took, hours, test.orphans, test.took, test.hours)
		}
	}
}

// TestOneThatDiesMomentsLaterWaitsForNoHour: one that did not work when the first one's failover began, though not for long enough, has
// no illness of it. What the others take on freely is shared: of its six clusters two go, and four wait for the rates. One that fell ill
// after that may have, and waits with what it received.
func TestOneThatDiesMomentsLaterWaitsForNoHour(t *testing.T) {
	for after, left := range map[time.Duration]int{4 * time.Minute: 4, 8 * time.Minute: 7} {
		l := spread(10)
		l.dies(1)
		l.Pass(after)
		l.dies(2)
		l.Pass(30 * time.Minute)
		if got := l.orphans(); got != left {
			t.Errorf("%s after the first one the second dies, and half an hour later %d clusters have no owner; want %d", after, got, left)
		}
	}
}

// TestHoursOfARescueOfTheRescued: six hours after one replica's clusters were failed over another one dies, to which some of them went.
// It had them for hours, and died of none: they wait for no day's budget.
func TestHoursOfARescueOfTheRescued(t *testing.T) {
	for _, test := range []struct {
		replicas, orphans, again int
		took                     time.Duration
		hours                    float64
	}{
		{3, 30, 10, 2*time.Hour + 10*time.Minute, 25}, // nine hours, 55.3 cluster-hours, when they did
		{4, 20, 5, time.Hour + 10*time.Minute, 5.5},   // four hours, 12.3
	} {
		l := spread(test.replicas)
		l.dies(1)
		l.rescued()
		l.comes(1)
		l.Pass(6 * time.Hour)
		again := 0
		for name, row := range l.Plan.Clusters {
			if _, is := l.memory.Changes.Failed[name]; is && row.Replica == 2 {
				again++
			}
		}
		l.dies(2)
		orphans, took, hours := l.rescued()
		if orphans != test.orphans || again != test.again || took > test.took || hours > test.hours {
			t.Errorf("another of %d: %d clusters, %d again, the last after %s, %.1f cluster-hours; want %d, %d, %s and %.1f at most",
				test.replicas, orphans, again, took, hours, test.orphans, test.again, test.took, test.hours)
		}
	}
}

// TestAClusterThatKillsItsReplicasKillsNoMoreThanOneAnHour, whether it takes minutes or more than an hour to do so, and how few replicas
// it meets: what is beside it is not taken along through the fleet.
func TestAClusterThatKillsItsReplicasKillsNoMoreThanOneAnHour(t *testing.T) {
	for _, test := range []struct {
		replicas       int
		after          time.Duration
		killed, others int // times, and different replicas
	}{
		{6, 2 * time.Minute, 14, 2},
		{10, 30 * time.Minute, 14, 2},
		{10, 70 * time.Minute, 19, 3},
	} {
		l := spread(test.replicas)
		killed := l.poisoned("c01", test.after, 24*time.Hour)
		met := map[int]bool{}
		for _, ordinal := range killed {
			met[ordinal] = true
		}
		if len(killed) > test.killed || len(met) > test.others || len(killed) < test.killed/2 {
			t.Errorf("%d replicas, each dies after %s: %v died within a day; want %d times %d replicas at most",
				test.replicas, test.after, killed, test.killed, test.others)
		}
	}
}

// poisoned has a cluster kill each replica that has had it for a while; without it they come back.
func (l *Life) poisoned(cluster string, after, long time.Duration) (killed []int) {
	began, on, since := l.Now, -1, l.Now
	for l.Now.Sub(began) < long {
		l.Pass(time.Minute)
		at := l.Shards[cluster]
		for ordinal := range l.Broken {
			if ordinal != at {
				l.comes(ordinal)
			}
		}
		if at != on {
			on, since = at, l.Now
		}
		if l.Now.Sub(since) >= after && !l.Broken[at] {
			l.dies(at)
			killed = append(killed, at)
		}
	}
	return killed
}
