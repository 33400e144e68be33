package life

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/config"
	"ballast/planner/plan"
)

// owned is since when a cluster has had no owner that works while nothing stood in the way.
type owned struct {
	since  map[string]time.Time
	ill    map[int]time.Time // when a replica was seen not to work last
	rolled time.Time         // when a pod was seen last that is to be replaced
	jumped time.Time         // when the leader, its clock or its plan was another last
	skew   time.Duration
	led    int
	lost   int       // of Counts["plans lost"]
	anew   time.Time // when the hours of what went began anew last
}

func newOwned() owned { return owned{since: map[string]time.Time{}, ill: map[int]time.Time{}} }

// window is how long a restart or an OOM kill makes a replica unwell (planner/failover).
const window = 15 * time.Minute

// longest is how long a cluster may be without an owner that works while nothing stands in the way: the patience of the
// failover and a look; a stage that is under way, and its way back; and the waves, of which each may wait two minutes for
// connections.
func (j *judge) longest() time.Duration {
	const wave = 3 * time.Minute
	c := j.Config
	waves := 1
	if live := c.Rollout.Live; live != nil {
		waves += len(j.Clusters) / live.MaxMovesPerWave
	}
	return time.Duration(c.Failover.After) + 2*time.Duration(c.Interval) + 2*time.Duration(c.Rollout.StageTimeout) + time.Duration(waves)*wave
}

// ownerless: a cluster whose replica does not work, or that no replica has, is somebody's again in time.
func (j *judge) ownerless() {
	j.owned.note(j)
	working := map[string]bool{}
	for ordinal, p := range j.Pods {
		if !j.serves(ordinal) {
			continue
		}
		for name := range p.Gained {
			working[name] = true
		}
	}
	maps.DeleteFunc(j.owned.since, func(name string, _ time.Time) bool { return !slices.Contains(j.Clusters, name) }) // it may come again
	for _, name := range j.Clusters {
		if j.First(name) != name {
			continue
		}
		if working[name] {
			delete(j.owned.since, name)
			continue
		}
		why := j.standsInTheWay(name)
		j.waits[why]++
		since, known := j.owned.since[name]
		if !known || why != "" {
			j.owned.since[name] = j.Now
		} else if most := j.longest(); j.Now.Sub(since) > most {
			j.fail("%s has had no owner that works for more than %s, and nothing stands in the way; its row is %+v, the pods %s",
				name, most, j.Plan.Clusters[name], j.pods())
		}
	}
}

// serves reports whether a replica's pod is ready, and in a Deployment has its slot.
func (l *Life) serves(ordinal int) bool { return l.Up(l.Pods[ordinal], l.Now) && !l.Slotless[ordinal] }

// note keeps what the reasons need.
func (o *owned) note(j *judge) {
	for ordinal := range j.Replicas {
		if p := j.Pods[ordinal]; !j.serves(ordinal) || !p.RestartedAt.IsZero() && j.Now.Sub(p.RestartedAt) < window {
			o.ill[ordinal] = j.Now
		}
	}
	if j.rolls() {
		o.rolled = j.Now
	}
	if o.skew != j.Skew || o.led != j.Counts["elections"] || j.Plan == nil {
		o.jumped = j.Now
	}
	o.skew, o.led = j.Skew, j.Counts["elections"]
}

// rolls reports whether pods are being replaced, by whomever: no replica is judged meanwhile.
func (j *judge) rolls() bool {
	for _, p := range j.Pods {
		if p.Template != j.Template() {
			return true
		}
	}
	return j.Observed < j.Generation
}

// ails reports whether a replica is or was unwell lately.
func (j *judge) ails(ordinal int) bool {
	at, seen := j.owned.ill[ordinal]
	_, dies := j.Dies[ordinal]
	return dies || seen && j.Now.Sub(at) < window
}

// standsInTheWay names why a cluster may have no owner; empty where it is to have one. Each is documented, and a person's
// doing or what ballast cannot mend.
func (j *judge) standsInTheWay(name string) string {
	if j.Plan == nil {
		return "no plan"
	}
	row, planned := j.Plan.Clusters[name]
	dead := planned && !j.serves(row.Replica) // else it need only be written
	for _, reason := range []struct {
		why string
		is  bool
	}{
		{"another leader, clock or plan", j.owned.jumped.Equal(j.Now)},
		{"break-glass", j.Glass},
		{"the mode", j.Config.Mode == plan.Observe || j.Config.Mode == plan.Hold && dead},
		{"a Secret that people keep", j.anyOptedOut(name)},
		{"a Secret that nobody may write", slices.ContainsFunc(j.SecretsOf(name), func(s string) bool { return j.Refused[s] })},
		{"a pin", dead && j.peoples(name)},
		{"pins that part a server", j.pinnedApart(name)},
		{"frozen", dead && j.Paused},
		{"tripped for memory", dead && j.starved(name, row.Replica)},
		{"half of the fleet is ill", dead && j.wholeFleet()},
		{"nowhere to go", dead && j.nowhere(row.Replica)},
		{"the workload rolls out", dead && j.Now.Sub(j.owned.rolled) < time.Duration(j.Config.Failover.Settle)},
		{"another replica's hour", dead && j.hourWaits(row.Replica)},
		{"the budget", dead && j.budgetWaits(name)},
	} {
		if reason.is {
			return reason.why
		}
	}
	return ""
}

// starved reports whether a trip stops the failover of a cluster, too: where nobody knows why, or for memory, where that killed its
// replica, or a wave moved it before.
func (j *judge) starved(name string, replica int) bool {
	c := j.memory.Changes
	switch {
	case c.Trip == nil:
		return j.Tripped != ""
	case c.Trip.Reason != harm.OOMKilled:
		return false
	}
	return !c.Trip.Bounds(c.TripMoved) || slices.Contains(c.Trip.Replicas, replica) || slices.Contains(c.TripMoved, name)
}

// wholeFleet reports whether more than half of the replicas are or were ill lately.
func (j *judge) wholeFleet() bool {
	ill := 0
	for ordinal := range j.Replicas {
		if j.ails(ordinal) {
			ill++
		}
	}
	return 2*ill > j.Replicas
}

// nowhere reports whether every other replica is ill or cordoned, or silent: in mode live none receives that does not say what it owns.
// Nor does one that was killed for its memory before a trip.
func (j *judge) nowhere(from int) bool {
	cordoned := j.cordoned()
	for ordinal := range j.Replicas {
		silent := j.Silent[ordinal] && j.Config.Rollout.Live != nil
		if ordinal == from || j.ails(ordinal) || silent || j.killed(ordinal) {
			continue
		}
		if !slices.Contains(cordoned, ordinal) {
			return false
		}
	}
	return true
}

// killed reports whether a trip for memory names a replica.
func (j *judge) killed(ordinal int) bool {
	trip := j.memory.Changes.Trip
	return trip != nil && trip.Reason == harm.OOMKilled && slices.Contains(trip.Replicas, ordinal)
}

// hourWaits reports whether a failover of another replica began within the hour.
func (j *judge) hourWaits(from int) bool {
	b := j.budget
	along := slices.Contains(j.memory.Changes.Failover.Dead, from)
	return !b.at.IsZero() && b.emptied != from && !along && j.leaders().Sub(b.at).Abs() < time.Hour
}

// budgetWaits reports whether failovers have spent what may move beyond what the others take on freely: the share of each rate within
// an hour; of its whole period for what replicas may die of, alone or with its group, and where memory bounds what a replica takes.
func (j *judge) budgetWaits(name string) bool {
	whole := j.Last.InUse.Most() > 0 || j.movedLately(name)
	return slices.ContainsFunc(j.Config.Change.Moves.Rate, func(rate config.Rate) bool {
		period := time.Duration(rate.Period)
		if !whole {
			period = min(period, time.Hour)
		}
		since := j.leaders().Add(-period)
		return within(j.budget.moved[change.Failover], since) >= j.fewest(rate.Percent)
	})
}

// movedLately reports whether a cluster's replica may have died of it, or of one that goes along with it, within the day.
func (j *judge) movedLately(name string) bool {
	bound := j.found(name).Bound
	return slices.ContainsFunc(j.Clusters, func(other string) bool {
		along := j.First(other) == j.First(name) || bound != "" && j.found(other).Bound == bound
		return along && (j.again(other) || j.lately(j.memory.Changes.Suspect, other))
	})
}

// forgets is how long a row may outlive its Secret: an hour, and as long as too many that are gone at once are not believed.
const forgets = time.Hour + time.Hour + 10*time.Minute

// forgotten: what went leaves no row that others would wait for. The hour begins anew with another leader or clock, and
// where the plan that forgets the row is lost.
func (j *judge) forgotten() {
	o := &j.owned
	if n := j.Counts["plans lost"]; o.jumped.Equal(j.Now) || n != o.lost {
		o.lost, o.anew = n, j.Now
	}
	if j.Plan == nil || j.Now.Sub(o.anew) < forgets {
		return
	}
	for name, at := range j.gone {
		if _, row := j.Plan.Clusters[name]; row && j.Now.Sub(at) >= forgets {
			j.fail("%s went %s ago, and has its row", name, j.Now.Sub(at))
		}
	}
}

// pods says how they are.
func (j *judge) pods() string {
	var said []string
	for ordinal := range max(j.Replicas, len(j.Pods)) {
		said = append(said, fmt.Sprintf("%d: %t", ordinal, j.serves(ordinal)))
	}
	return strings.Join(said, ", ")
}
