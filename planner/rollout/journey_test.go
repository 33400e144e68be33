package rollout

import (
	"fmt"
	"maps"
	"math"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
	"ballast/planner/rollout/readiness"
)

// journey is a fleet on which mode live could begin, and a decision.
type journey struct {
	from, to      int
	env           int
	free          bool
	deployment    bool
	before, after map[string]int
	units         [][]string // clusters with one server
}

const longest = 16 // newPlan's maxReplicas

func drawJourney(t *rapid.T) journey {
	j := journey{before: map[string]int{}, after: map[string]int{}}
	j.from, j.to = rapid.IntRange(1, 5).Draw(t, "from"), rapid.IntRange(1, 5).Draw(t, "to")
	j.free, j.deployment = rapid.IntRange(0, 5).Draw(t, "free") == 0, rapid.IntRange(0, 3).Draw(t, "deployment") == 0
	j.env = rapid.SampledFrom([]int{longest, longest, j.from, j.from + 1, 20}).Draw(t, "env")
	if j.free { // more replicas than the env doubles clusters before there is a rollout
		j.env = max(j.env, j.to)
	}
	if j.deployment {
		j.env = 0
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "clusters") {
		u := []string{fmt.Sprintf("c%02d", i)}
		if rapid.IntRange(0, 3).Draw(t, "twins") == 0 {
			u = append(u, fmt.Sprintf("c%02d-twin", i))
		}
		before, after := rapid.IntRange(0, j.from-1).Draw(t, "before"), rapid.IntRange(0, j.to-1).Draw(t, "after")
		for _, name := range u {
			j.before[name], j.after[name] = before, after
		}
		j.units = append(j.units, u)
	}
	return j
}

// rowsOf gives clusters of a unit one server, and every cluster a load.
func (j journey) rowsOf(shards map[string]int) map[string]plan.Row {
	rows := map[string]plan.Row{}
	for i, u := range j.units {
		for _, name := range u {
			rows[name] = plan.Row{Replica: shards[name], Server: plan.ServerHash("https://" + u[0]), Load: []string{"", "0.5", "1.2", "7"}[i%4]}
		}
	}
	return rows
}

// begin takes the first step of the journey.
func (j journey) begin(t *rapid.T, mode string) *run {
	f := newFleet(j.from, j.env, j.before)
	f.Deployment = j.deployment
	for _, u := range j.units {
		for _, name := range u {
			s := f.stamps[name]
			s.Server = "https://" + u[0]
			f.stamps[name] = s
		}
	}
	p := newPlan(j.from, j.env, nil)
	p.Clusters, p.FreeReplicas = j.rowsOf(j.before), j.free
	if j.deployment {
		p.Target.Kind = plan.Deployment
		for _, p := range f.Pods {
			p.Env = j.from
		}
		f.hear()
	}
	if j.free {
		f.Replicas = j.to
		for range 100 {
			f.tick()
		}
	}
	if missing := readiness.Missing(p, f.seen()); mode == plan.ModeLive && len(missing) > 0 {
		t.Fatalf("a journey lacks %q", missing)
	}
	o := basis.Options{Mode: mode, StageTimeout: time.Hour, DrainTimeout: time.Hour, MaxMovesPerWave: rapid.IntRange(1, 6).Draw(t, "perWave"), Budget: math.MaxInt}
	env := max(j.to, j.env)
	if j.deployment {
		env = 0
	}
	p, err := Begin(p, Proposal{Replicas: j.to, ControllerReplicas: env, Rows: j.rowsOf(j.after)}, o, start)
	if err != nil {
		t.Fatal(err)
	}
	return &run{t: t, fleet: f, plan: p, pins: plan.Pins{}, target: j.after, o: o, now: start, moved: map[string]bool{}, owners: map[string][]int{}}
}

// adopt is what the planner does before it advances: new clusters have rows, pins that hold are rows.
func (r *run) adopt() {
	p, v := r.plan.Clone(), plan.NewView(r.plan, r.pins)
	arrivals := placement.NewArrivals(v)
	for name, s := range r.fleet.stamps {
		row, known := p.Clusters[name]
		if s.Unmanaged {
			delete(p.Clusters, name)
			continue
		}
		if !known {
			row = plan.Row{Replica: arrivals.Place(s.Server, s.Shard, nil), Server: plan.ServerHash(s.Server)}
		}
		if replica, why, _ := v.Effective(name); why == plan.Pinned {
			row.Replica = replica
		}
		p.Clusters[name] = row
	}
	r.plan = r.stored(p)
}

// ends is the count a live rollout ends with, if there is one at all.
func (j journey) ends() plan.Count {
	c := plan.Count{Replicas: j.to, ControllerReplicas: max(longest, j.env)}
	if j.deployment {
		c.ControllerReplicas = 0
	}
	return c
}

// disturb does to a fleet what happens to fleets, for a while.
func (r *run) disturb(j journey, loops int) {
	r.mischief = func() {
		loops--
		r.o.Budget = math.MaxInt
		if loops < 0 {
			r.o.Closed, r.o.Unwell, r.fleet.orphans, r.fleet.doubled = nil, nil, nil, nil
			r.fleet.away, r.plan.Mode, r.plan.FreeReplicas = false, plan.Enforce, j.free
			r.fleet.Stuck = r.fleet.Stuck && !r.stopping // x0y's way back ends when people have mended what keeps pods unready
			r.adopt()
			maps.DeleteFunc(r.plan.Clusters, func(name string, _ plan.Row) bool { _, there := r.fleet.stamps[name]; return !there }) // an hour has passed
			return
		}
		r.o.Budget = rapid.SampledFrom([]int{math.MaxInt, math.MaxInt, 1, 0}).Draw(r.t, "budget")
		switch event := rapid.SampledFrom([]string{"", "", "", "pin", "unpin", "oom", "restart", "memory", "away", "new", "forget", "break", "mend", "dead", "gone", "opt out", "freeze", "hold", "enforce", "slow", "people", "close", "unwell", "orphan", "double"}).Draw(r.t, "mischief"); event {
		case "pin":
			pin := rapid.IntRange(0, 5).Draw(r.t, "pin")
			for _, name := range rapid.SampledFrom(j.units).Draw(r.t, "pinned") {
				r.pins[name], r.moved[name] = pin, true
			}
		case "unpin":
			r.pins = plan.Pins{}
		case "oom", "restart", "memory":
			r.fall(event)
		case "opt out", "freeze":
			name := rapid.SampledFrom(j.units).Draw(r.t, "opts out")[0]
			if s, there := r.fleet.stamps[name]; there {
				s.Unmanaged, s.Immutable = event == "opt out", event == "freeze"
				r.fleet.stamps[name] = s
			}
		case "close":
			r.o.Closed = map[int]bool{rapid.IntRange(0, 5).Draw(r.t, "closed"): true}
		case "unwell":
			r.o.Unwell = map[int]bool{rapid.IntRange(0, 5).Draw(r.t, "unwell"): true}
		case "orphan":
			r.fleet.orphans = rapid.SampledFrom(j.units).Draw(r.t, "orphan")
		case "double":
			r.fleet.doubled = rapid.SampledFrom(j.units).Draw(r.t, "doubled")
		case "hold":
			r.plan.Mode = plan.Hold
		case "enforce":
			r.plan.Mode = plan.Enforce
		case "people":
			r.plan.FreeReplicas = r.plan.FreeReplicas || r.stopping
		case "slow":
			r.fleet.Start = tick * time.Duration(1+rapid.IntRange(0, 5).Draw(r.t, "slow"))
		case "away":
			r.fleet.away = !r.fleet.away
		case "new":
			name := fmt.Sprintf("n%03d", loops)
			shard := placement.NewArrivals(plan.NewView(r.plan, r.pins)).Place("https://"+name, -1, nil)
			r.fleet.stamps[name] = observed.Secret{Name: name, Server: "https://" + name, Shard: shard, Valid: true}
		case "forget":
			r.target = nil
		case "break", "mend":
			r.fleet.Stuck = !r.fleet.Stuck
		case "dead":
			r.fleet.Unreachable[rapid.SampledFrom(j.units).Draw(r.t, "dead")[0]] = true
		case "gone":
			name := rapid.SampledFrom(j.units).Draw(r.t, "gone")[0]
			delete(r.fleet.stamps, name)
			delete(r.owners, name)
		}
		r.adopt()
	}
}

// fall happens to a pod.
func (r *run) fall(event string) {
	if len(r.fleet.Pods) == 0 {
		return
	}
	p := r.fleet.Pods[rapid.IntRange(0, len(r.fleet.Pods)-1).Draw(r.t, "pod")]
	if event == "memory" {
		p.Memory = int64(rapid.SampledFrom([]int{0, 50, 89, 90, 99}).Draw(r.t, "memory"))
		return
	}
	r.fleet.Crash(p.Ordinal, event == "oom", r.fleet.at)
	p.RestartedAt = r.now
}
