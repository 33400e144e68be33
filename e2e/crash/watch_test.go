package crash_test

import (
	"fmt"
	"maps"
	"time"

	"ballast/planner/change"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/rollout"
)

// crashWatch knows what must never be, and notes the first time it is.
type crashWatch struct {
	run       *crashRun
	mode      string
	plan      *plan.Plan // as it stands in its ConfigMap
	pins      plan.Pins  // people's, beside it
	rollouts  int        // that began
	changed   time.Time  // when anything changed last
	zeroings  int        // of the rollout under way, or the last one
	back      bool       // it is on its way back, or over
	replicas  int
	templates int
	template  string
	waits     map[string]crashWait // clusters that nobody works on
	moves     []crashMoves         // that plans decided on
	given     map[string]int       // by the last wave of each cluster, or its way back
	counted   bool                 // every pod has an env above 1, so that each cluster has one owner
	wrong     string

	longest, longestUp, stopped time.Duration
	stoppedFor                  time.Duration
}

// crashMoves is how many rows a plan gave another replica, and when it was written.
type crashMoves struct {
	at time.Time
	n  int
}

// crashWait is for how long nobody has worked on a cluster, and for how long of that the pod that should was ready.
type crashWait struct{ all, ready time.Duration }

// For how long a cluster may at most be without anybody who works on it. While its replica's pod is ready: the longest resync
// and a few seconds, or in mode live three nudges, and whatever the leader or the API server was away for. While pods are
// replaced or stopped: that and a stage's deadline. Of this the workload stands at 0 for the time of four pods to stop.
const (
	crashMostUp      = crashResync*3/2 + 5*time.Second
	crashMostLive    = 15 * time.Second
	crashMostDown    = 8 * time.Minute
	crashMostStopped = time.Minute
)

func newCrashWatch(r *crashRun) crashWatch {
	return crashWatch{run: r, waits: map[string]crashWait{}, given: map[string]int{}}
}

func (w *crashWatch) blame(format string, args ...any) {
	if w.wrong == "" {
		stage := "no rollout is under way"
		if w.plan != nil && w.plan.Rollout != nil {
			stage = fmt.Sprintf("%+v", *w.plan.Rollout)
		}
		w.wrong = fmt.Sprintf("after %s, write %d, %s: ", w.run.clock.Since(epoch), w.run.faults.steps, stage) + fmt.Sprintf(format, args...)
	}
}

// planSeen takes in the plan as it was written.
func (w *crashWatch) planSeen(d configmap.Document) {
	w.pins = d.Pins
	if d.Plan == nil {
		if w.plan != nil {
			w.blame("the plan cannot be read any more: %v", d.PlanErr)
		}
		return
	}
	old := w.plan
	w.plan = d.Plan
	if old != nil && old.Revision == d.Plan.Revision {
		if !old.SameEnforced(*d.Plan) {
			w.blame("revision %d means two plans", old.Revision)
		}
		return
	}
	if old != nil && d.Plan.Revision < old.Revision {
		w.blame("revision %d came after %d", d.Plan.Revision, old.Revision)
	}
	w.changed = w.run.clock.Now()
	if old != nil {
		w.limited(*old, *d.Plan)
	}
	r := d.Plan.Rollout
	if r != nil {
		maps.Copy(w.given, r.Moves)
	}
	switch {
	case r == nil:
		w.back = true
	case old == nil || old.Rollout == nil:
		w.rollouts, w.zeroings, w.back = w.rollouts+1, 0, false
	case r.Stage == plan.Reverting:
		w.back = true
	}
	if d.Plan.Replicas == 0 && !stopsAll(r) {
		w.blame("the plan holds 0 replicas")
	}
	w.run.note("plan %d: %d replicas, env %d, %s", d.Plan.Revision, d.Plan.Replicas, d.Plan.ControllerReplicas, stageOf(*d.Plan))
}

// limited: no plan moves more clusters than the budget has room for, but to take a wave back.
func (w *crashWatch) limited(old, next plan.Plan) {
	moved := len(rollout.Moves(old, next))
	if moved == 0 || next.Rollout != nil && next.Rollout.Stage == plan.Reverting {
		return
	}
	now := w.run.clock.Now()
	w.moves = append(w.moves, crashMoves{now, moved})
	for _, rate := range w.run.config.Change.Moves.Rate {
		sum, allowed := 0, change.Rate{Percent: rate.Percent}.Allowed(len(w.run.fleet.Clusters))
		for _, m := range w.moves {
			if now.Sub(m.at) < time.Duration(rate.Period) {
				sum += m.n
			}
		}
		if sum > allowed {
			w.blame("%d clusters moved within %s, of at most %d: %v", sum, time.Duration(rate.Period), allowed, w.moves)
		}
	}
}

func stageOf(p plan.Plan) string {
	if p.Rollout == nil {
		return "at rest"
	}
	return fmt.Sprintf("%s %s %v was %v", p.Rollout.Mode, p.Rollout.Stage, p.Rollout.Moves, p.Rollout.Was)
}

// stopsAll reports whether a stage may hold the workload at 0.
func stopsAll(r *plan.Rollout) bool {
	return r != nil && r.Mode == plan.ModeX0Y && (r.Stage == plan.Draining || r.Stage == plan.Assigning)
}

// workloadWritten counts how often the workload stops.
func (w *crashWatch) workloadWritten() {
	w.changed = w.run.clock.Now()
	before, now := w.replicas, w.run.fleet.Replicas
	w.replicas = now
	if w.template != w.run.fleet.Template() {
		w.template = w.run.fleet.Template()
		w.templates++
	}
	if now != 0 || before == 0 {
		return
	}
	w.zeroings++
	switch {
	case w.plan == nil || !stopsAll(w.plan.Rollout):
		w.blame("the workload stops outside of x0y's stages")
	case w.back:
		w.blame("the workload stops on its way back")
	case w.zeroings > 1:
		w.blame("the workload stops for the %d. time in one rollout", w.zeroings)
	}
}

// secretWritten knows that in mode live nothing moves but by a wave or a pin. A wave off a replica for which nobody works is
// not taken back: what could not be written in its time is written later.
func (w *crashWatch) secretWritten(name string, before int, had bool) {
	w.changed = w.run.clock.Now()
	shard, has := w.run.fleet.Shards[name]
	if t, waits := w.waits[name]; waits && shard != before {
		w.waits[name] = crashWait{all: t.all} // another replica's turn
	}
	switch {
	case had && !has:
		w.blame("Secret %s lost its shard", name)
	case !had && has:
		w.stamped(name, shard)
	case w.mode == plan.ModeLive && had && shard != before:
		pin, pinned := w.pins[name]
		meant := pinned && pin == shard
		if to, given := w.given[name]; given && to == shard {
			meant = true
		}
		if moves := w.plan.Rollout != nil && hasKey(w.plan.Rollout.Moves, name); !moves && !meant {
			w.blame("Secret %s went from %d to %d, and no wave moves it", name, before, shard)
		}
	}
}

func hasKey(m map[string]int, name string) bool {
	_, has := m[name]
	return has
}

// stamped: the first shard of a Secret is who owns its cluster.
func (w *crashWatch) stamped(name string, shard int) {
	f := w.run.fleet
	for _, p := range f.Pods {
		if p.Env <= 1 {
			return // every pod has every cluster
		}
		if owner := f.Algorithm(name, p.Env); f.Pods[owner] != nil && owner != shard {
			w.blame("Secret %s is stamped with %d, and its owner was %d", name, shard, owner)
		}
	}
}

// second looks at every cluster once a second.
func (w *crashWatch) second(now time.Time) {
	f := w.run.fleet
	w.stoppedFor += time.Second
	if f.Replicas > 0 {
		w.stoppedFor = 0
	}
	w.stopped = max(w.stopped, w.stoppedFor)
	if w.stoppedFor > crashMostStopped+w.run.faults.lasted() {
		w.blame("the workload has stood at 0 for %s", w.stoppedFor)
	}
	if f.Replicas == 0 && (w.plan == nil || w.plan.Rollout == nil || w.plan.Rollout.Mode != plan.ModeX0Y) {
		w.blame("the workload stands at 0")
	}
	w.oneEnv()
	for _, c := range f.Clusters {
		if owners := f.countedOwners(c); len(owners) > 1 {
			w.blame("cluster %s is owned by %v", c, owners)
		}
		w.wait(c, now)
	}
}

// oneEnv: no pod that owns everything starts once all pods count replicas.
func (w *crashWatch) oneEnv() {
	all := len(w.run.fleet.Pods) > 0
	for i, p := range w.run.fleet.Pods {
		if p.Env <= 1 {
			all = false
			if w.counted {
				w.blame("pod %d owns everything", i)
			}
		}
	}
	w.counted = w.counted || all
}

func (w *crashWatch) wait(c string, now time.Time) {
	f := w.run.fleet
	if f.Working(c) {
		w.waits[c] = crashWait{}
		return
	}
	t, had := w.waits[c]
	if !had {
		return // found without an owner: its first one waits for its resync
	}
	shard, stamped := f.Shards[c]
	if stamped && (f.Broken[shard] || f.Dead(shard, now)) {
		return // for as long as its replica is ill
	}
	t.all += time.Second
	if stamped && f.Up(f.Pods[shard], now) {
		t.ready += time.Second
	}
	w.waits[c] = t
	w.longest, w.longestUp = max(w.longest, t.all), max(w.longestUp, t.ready)
	most := crashMostUp
	if w.mode == plan.ModeLive {
		most = min(most, crashMostLive+w.run.faults.lasted())
	}
	if t.ready > most {
		w.blame("nobody has worked on cluster %s for %s, though replica %d is ready", c, t.ready, shard)
	}
	if t.all > crashMostDown+w.run.faults.lasted() {
		w.blame("nobody has worked on cluster %s for %s", c, t.all)
	}
}
