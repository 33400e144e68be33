package cycle

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/discover/labeltext"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// unwritable makes a Secret one that names that shard, below 0 none, and that nobody can write. Argo CD has its cluster on replica at.
func (w *liveWorld) unwritable(name string, shard, at int) {
	s := w.secret(name)
	if s.Shard = (discover.ShardValue{State: discover.ShardValid, N: shard}); shard < 0 {
		s.Shard = discover.ShardValue{State: discover.ShardAbsent}
		w.placed = map[string]int{name: at}
	}
	w.in.Barred, w.refuses = map[string]string{name: "a policy refuses it"}, map[string]bool{name: true}
}

// TestARollbackEnds, whatever of the earlier plan cannot be had: what cannot move stays, and no round begins for it a second time.
func TestARollbackEnds(t *testing.T) {
	late := config.Duration(10 * time.Minute)
	modes := map[string]config.Rollout{
		"live":    {},
		"x0y":     {X0Y: &config.X0YRollout{}, StageTimeout: late},
		"default": {Default: &config.DefaultRollout{}, StageTimeout: late},
	}
	for name, spoil := range map[string]func(w *liveWorld, earlier *plan.Plan){
		"nothing is in its way": func(w *liveWorld, earlier *plan.Plan) {
			earlier.Clusters[w.on(1)[0]] = plan.Row{Replica: 0}
		},
		"one of two Secrets of a server cannot be written": func(w *liveWorld, earlier *plan.Plan) {
			name := w.on(1)[0]
			w.twin(name, 1)
			w.unwritable(name, -1, 1)
			earlier.Clusters[name], earlier.Clusters["twin-"+name+"-000"] = plan.Row{Replica: 0}, plan.Row{Replica: 0}
		},
		"the younger of the two cannot": func(w *liveWorld, earlier *plan.Plan) {
			name := w.on(1)[0]
			w.twin(name, 1)
			w.unwritable("twin-"+name+"-000", -1, 1)
			earlier.Clusters[name], earlier.Clusters["twin-"+name+"-000"] = plan.Row{Replica: 0}, plan.Row{Replica: 0}
		},
		"one without a shard is on a replica that goes": func(w *liveWorld, earlier *plan.Plan) {
			w.unwritable(w.on(2)[0], -1, 2)
			fewer(earlier)
		},
		"one names a replica that goes": func(w *liveWorld, earlier *plan.Plan) {
			w.unwritable(w.on(2)[0], 2, 2)
			fewer(earlier)
		},
		"its pin is beyond all replicas": func(w *liveWorld, earlier *plan.Plan) {
			name := w.on(1)[0]
			w.unwritable(name, -1, 1)
			w.in.Pins = plan.Pins{name: 99}
			earlier.Clusters[name] = plan.Row{Replica: 0}
		},
		"it stands alone": func(w *liveWorld, earlier *plan.Plan) {
			name := w.on(1)[0]
			w.twin(name, 1)
			w.unwritable("twin-"+name+"-000", -1, 1)
			w.secret("twin-" + name + "-000").Server = ""
			earlier.Clusters["twin-"+name+"-000"] = plan.Row{Replica: 0}
		},
		"a group binds it to another": func(w *liveWorld, earlier *plan.Plan) {
			name, other := w.on(1)[0], w.on(1)[1]
			w.unwritable(name, -1, 1)
			for _, n := range []string{name, other} {
				w.secret(n).Labels = labeltext.Of(map[string]string{"g": "yes"}, []string{"g"})
				earlier.Clusters[n] = plan.Row{Replica: 0}
			}
			w.in.Config.Partition.Groups = []config.Group{together("g")}
		},
		"one that opted out is on a replica that goes": func(w *liveWorld, earlier *plan.Plan) {
			name := w.on(2)[0]
			w.secret(name).Unmanaged, w.secret(name).Shard = true, discover.ShardValue{State: discover.ShardAbsent}
			w.placed = map[string]int{name: 2}
			fewer(earlier)
		},
		"one that opted out was elsewhere": func(w *liveWorld, earlier *plan.Plan) {
			name := w.on(1)[0]
			w.secret(name).Unmanaged, w.secret(name).Shard = true, discover.ShardValue{State: discover.ShardAbsent}
			w.placed = map[string]int{name: 1}
			earlier.Clusters[name] = plan.Row{Replica: 0}
		},
	} {
		for mode, rollout := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				w := undecided(t, skewed(24)...)
				if mode != "live" {
					w.in.Config.Rollout = rollout
					w.minutes(60)
				}
				earlier := w.in.InForce.Clone()
				spoil(w, &earlier)
				w.minutes(20)
				w.in.Rollback = &input.Rollback{Revision: 7, Plan: &earlier}
				began, waves, writes, done := 0, len(w.waves), w.writes, false
				for range 4 * 60 {
					before := w.in.InForce.Rollout
					out := w.step(time.Minute)
					if before == nil && w.in.InForce.Rollout != nil {
						began++
					}
					if out.Done {
						w.in.Rollback, done = nil, true
					}
				}
				waves, writes = len(w.waves)-waves, w.writes-writes
				if !done || began > 1 || waves > 6 || writes > 20 || w.in.InForce.Rollout != nil {
					t.Errorf("done %t; %d rollouts begun, %d waves, %d plans written; %+v; %v", done, began, waves, writes, w.in.InForce.Rollout, messages(w.last))
				}
			})
		}
	}
}

// fewer has no clusters on the last of three replicas.
func fewer(p *plan.Plan) {
	p.Replicas--
	if p.ControllerReplicas == 3 {
		p.ControllerReplicas--
	}
	for name, row := range p.Clusters {
		row.Replica = min(row.Replica, p.Replicas-1)
		p.Clusters[name] = row
	}
}

// oddWorld is a fleet under each mode, of Secrets of all kinds: some nobody can write, some opted out, some have a pin, a server or a group
// with others, and any may name no replica.
func oddWorld(t *rapid.T) *liveWorld {
	w := newLiveWorld(rapid.SliceOfN(rapid.Float64Range(1, 40), 5, 9).Draw(t, "loads")...)
	w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
	late := config.Duration(10 * time.Minute)
	w.in.Config.Rollout = rapid.SampledFrom([]config.Rollout{w.in.Config.Rollout, {X0Y: &config.X0YRollout{}, StageTimeout: late},
		{Default: &config.DefaultRollout{}, StageTimeout: late}}).Draw(t, "rollout")
	w.minutes(90)
	w.in.Barred, w.refuses, w.in.Pins = map[string]string{}, map[string]bool{}, plan.Pins{}
	for i := range w.in.Discovered.Secrets {
		s := &w.in.Discovered.Secrets[i]
		kinds := []string{"", "", "", "pinned", "bound", "twin", "refused", "immutable", "opted out"}
		switch rapid.SampledFrom(kinds).Draw(t, s.Name) {
		case "refused":
			w.in.Barred[s.Name], w.refuses[s.Name] = "a policy refuses it", true
		case "immutable":
			s.Immutable = true
		case "opted out":
			s.Unmanaged = true
		case "pinned":
			w.in.Pins[s.Name] = rapid.IntRange(0, 20).Draw(t, "pin")
			continue
		case "twin":
			s.Server, s.Created = w.in.Discovered.Secrets[0].Server, w.in.Now
		case "bound":
			s.Labels = labeltext.Of(map[string]string{"g": "yes"}, []string{"g"})
			w.in.Config.Partition.Groups = []config.Group{together("g")}
		}
		if rapid.Bool().Draw(t, "without a shard") {
			s.Shard = discover.ShardValue{State: discover.ShardAbsent}
		}
	}
	w.byAlgorithm()
	return w
}

// byAlgorithm has what names no replica where Argo CD's algorithm has it.
func (w *liveWorld) byAlgorithm() {
	w.placed = map[string]int{}
	fleet := discover.All(w.in.Discovered, w.in.Now)
	owners := sharding.Owners(fleet.Clusters, standing.Algorithm(w.in), standing.ControllerReplicas(w.in.Workload), nil)
	for i, c := range fleet.Clusters {
		if c.Explicit.State != discover.ShardValid {
			w.placed[c.Shard.ID] = owners[i]
		}
	}
}

// rests lets so many hours pass, and wants few rollouts in them and no plan written in the last one.
func (w *liveWorld) rests(t *rapid.T, hours, most int) {
	writes, began := 0, 0
	for minute := range hours * 60 {
		before := w.in.InForce.Rollout
		if minute == (hours-1)*60 {
			writes = w.writes
		}
		w.byAlgorithm()
		if out := w.step(time.Minute); out.Done {
			w.in.Rollback = nil
		}
		w.sound(t)
		if before == nil && w.in.InForce.Rollout != nil {
			began++
		}
	}
	w.settled(t)
	if began > most || w.writes > writes {
		t.Fatalf("%d rollouts begun, %d plans written in the last hour; %+v; %v", began, w.writes-writes, w.in.InForce.Rollout, messages(w.last))
	}
}

// sound wants what holds in each cycle: every row is a replica's, and Secrets of a server that ballast may write have one, but for pins.
func (w *liveWorld) sound(t *rapid.T) {
	rows := map[string]int{}
	for _, s := range w.in.Discovered.Secrets {
		row, planned := w.in.InForce.Clusters[s.Name]
		if planned && (row.Replica < 0 || row.Replica >= w.in.InForce.Widest()) {
			t.Fatalf("%s is on replica %d of %d", s.Name, row.Replica, w.in.InForce.Widest())
		}
		_, pinned := w.in.Pins[s.Name]
		if !w.writable(s) || !planned || pinned {
			continue
		}
		if at, known := rows[s.Server]; known && at != row.Replica {
			t.Fatalf("%s is on replica %d, and another Secret of its server on %d", s.Name, row.Replica, at)
		}
		rows[s.Server] = row.Replica
	}
}

// writable reports whether ballast may write a Secret.
func (w *liveWorld) writable(s discover.Secret) bool {
	return !s.Unmanaged && !s.Immutable && w.in.Barred[s.Name] == ""
}

// settled wants of a fleet at rest, all of whose replicas work, that Secrets which ballast may write name their row.
func (w *liveWorld) settled(t *rapid.T) {
	if w.in.InForce.Rollout != nil || len(w.down) > 0 {
		return
	}
	for _, s := range w.in.Discovered.Secrets {
		row, planned := w.in.InForce.Clusters[s.Name]
		names := discover.ShardValue{State: discover.ShardValid, N: row.Replica}
		if planned && w.writable(s) && s.Shard != names {
			t.Fatalf("%s names %v, and its row is %d of %d; %v", s.Name, s.Shard, row.Replica, w.in.InForce.Replicas, messages(w.last))
		}
	}
}

// TestAnyRollbackComesToRest, whoever asks for whatever plan, among Secrets of all kinds.
func TestAnyRollbackComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := oddWorld(t)
		earlier := w.in.InForce.Clone()
		earlier.Replicas = rapid.IntRange(1, 4).Draw(t, "replicas")
		for _, name := range slices.Sorted(maps.Keys(earlier.Clusters)) {
			earlier.Clusters[name] = plan.Row{Replica: rapid.IntRange(0, earlier.Replicas-1).Draw(t, "row")}
		}
		w.minutes(20)
		w.in.Rollback = &input.Rollback{Revision: 7, Plan: &earlier}
		w.rests(t, 5, 3)
	})
}

// TestWhatPeopleAskForComesToRest among such Secrets: a cordon, a number of replicas, pins, or what is elected.
func TestWhatPeopleAskForComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := oddWorld(t)
		for range rapid.IntRange(1, 3).Draw(t, "how many") {
			asks := []string{"cordon", "replicas", "pins", "dies", "elects", "scales"}
			if w.in.Config.Rollout.X0Y != nil { // which `ballast config check` refuses beside replicas that are people's
				asks = asks[:5]
			}
			switch rapid.SampledFrom(asks).Draw(t, "what") {
			case "cordon":
				w.cordons(rapid.IntRange(0, 2).Draw(t, "replica"))
			case "replicas":
				w.in.Config.Partition.Replicas = &config.Replicas{Fixed: rapid.IntRange(1, 4).Draw(t, "replicas")}
			case "pins":
				for _, s := range w.in.Discovered.Secrets {
					if rapid.IntRange(0, 3).Draw(t, s.Name) == 0 {
						w.in.Pins[s.Name] = rapid.IntRange(0, 4).Draw(t, "pin")
					}
				}
			case "dies":
				w.down[rapid.IntRange(0, 2).Draw(t, "replica")] = true
			case "elects":
				w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(10 * time.Minute), MinSamples: 5}}
			case "scales":
				w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
				w.scale(rapid.IntRange(1, 4).Draw(t, "replicas"))
			}
			w.minutes(rapid.IntRange(1, 20).Draw(t, "minutes"))
		}
		w.rests(t, 12, 12)
	})
}

// TestReplicasThatPeopleTakeAwayAreLeft, though nobody can write one of two Secrets of a server that names such a replica, or nobody works
// for those that stay: nothing begins again and again, and a replica that dies meanwhile is emptied.
func TestReplicasThatPeopleTakeAwayAreLeft(t *testing.T) {
	stuckTwin := func(w *liveWorld, replica int) {
		name := w.on(replica)[0]
		w.twin(name, 1)
		w.minutes(20)
		w.secret(name).Immutable = true
	}
	for name, test := range map[string]struct {
		replicas, began int
		before, amid    func(w *liveWorld) // before it is smaller, and two hours later
		left            int                // servers on no replica that works, a quarter of an hour later and at the end
	}{
		"nothing is in the way": {replicas: 1, began: 1},
		"twins, to one":         {replicas: 1, began: 1, before: func(w *liveWorld) { stuckTwin(w, 1) }},
		"twins of the last, to two": {replicas: 2, began: 2, before: func(w *liveWorld) { stuckTwin(w, 2) },
			amid: func(w *liveWorld) { w.down[1] = true }},
		"to one that does not work": {replicas: 1, before: func(w *liveWorld) { w.down[0] = true }, left: 24},
		"to one that works again": {replicas: 1, began: 1, before: func(w *liveWorld) { w.down[0] = true },
			amid: func(w *liveWorld) { delete(w.down, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			if w.in.Config.Partition.Replicas = (&config.Replicas{Workload: true}); test.before != nil {
				test.before(w)
			}
			w.scale(test.replicas)
			began, writes := 0, 0
			for minute := range 24 * 60 {
				if minute == 2*60 && test.amid != nil {
					test.amid(w)
				}
				if minute == 3*60 {
					writes = w.writes
				}
				before := w.in.InForce.Rollout
				if w.step(time.Minute); before == nil && w.in.InForce.Rollout != nil {
					began++
				}
				look := minute == 2*60+15 || minute == 24*60-1
				if left := w.unserved(); look && left != test.left {
					t.Errorf("in minute %d %d servers are on no replica that works, want %d", minute, left, test.left)
				}
			}
			if began != test.began || w.writes != writes || w.in.InForce.Rollout != nil {
				t.Errorf("%d rollouts begun, want %d; %d plans written after three hours; %+v", began, test.began, w.writes-writes, w.in.InForce.Rollout)
			}
		})
	}
}

// unserved counts the servers that Argo CD has on no replica that works.
func (w *liveWorld) unserved() (servers int) {
	works := map[int]bool{}
	for r := range w.in.Workload.Replicas {
		works[r] = !w.down[r]
	}
	counted := map[string]bool{}
	for _, s := range w.in.Discovered.Secrets {
		if at, placed := w.servedAt(s); (!placed || !works[at]) && !counted[s.Server] {
			counted[s.Server] = true
			servers++
		}
	}
	return servers
}
