package cycle

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/discover/labeltext"
	"ballast/planner/plan"
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

// TestAnyRollbackComesToRest, whoever asks for whatever plan, among Secrets of all kinds.
func TestAnyRollbackComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newLiveWorld(rapid.SliceOfN(rapid.Float64Range(1, 40), 5, 9).Draw(t, "loads")...)
		w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
		late := config.Duration(10 * time.Minute)
		w.in.Config.Rollout = rapid.SampledFrom([]config.Rollout{w.in.Config.Rollout, {X0Y: &config.X0YRollout{}, StageTimeout: late},
			{Default: &config.DefaultRollout{}, StageTimeout: late}}).Draw(t, "rollout")
		w.minutes(90)
		earlier := w.in.InForce.Clone()
		w.placed, w.in.Barred, w.refuses, w.in.Pins = map[string]int{}, map[string]string{}, map[string]bool{}, plan.Pins{}
		for i := range w.in.Discovered.Secrets {
			s := &w.in.Discovered.Secrets[i]
			at := s.Shard.N
			switch rapid.SampledFrom([]string{"", "", "", "refused", "immutable", "opted out", "pinned", "twin", "bound"}).Draw(t, s.Name) {
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
				s.Shard, w.placed[s.Name] = discover.ShardValue{State: discover.ShardAbsent}, at
			}
		}
		earlier.Replicas = rapid.IntRange(1, 4).Draw(t, "replicas")
		for _, name := range slices.Sorted(maps.Keys(earlier.Clusters)) {
			earlier.Clusters[name] = plan.Row{Replica: rapid.IntRange(0, earlier.Replicas-1).Draw(t, "row")}
		}
		w.minutes(20)
		w.in.Rollback = &input.Rollback{Revision: 7, Plan: &earlier}
		writes, began := 0, 0
		for minute := range 5 * 60 {
			before := w.in.InForce.Rollout
			if minute == 4*60 {
				writes = w.writes
			}
			maps.DeleteFunc(w.placed, func(name string, _ int) bool { return w.secret(name).Shard.State == discover.ShardValid })
			if out := w.step(time.Minute); out.Done {
				w.in.Rollback = nil
			}
			if before == nil && w.in.InForce.Rollout != nil {
				began++
			}
		}
		if began > 3 || w.writes > writes {
			t.Fatalf("%d rollouts begun, %d plans written in the fifth hour; %+v; %v", began, w.writes-writes, w.in.InForce.Rollout, messages(w.last))
		}
	})
}
