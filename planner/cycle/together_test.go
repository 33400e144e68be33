package cycle

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// shares gives one cluster's Secret the server of another's, and so its replica.
func (w *world) shares(name, with string) {
	s, other := w.secret(name), w.secret(with)
	s.Server, s.Shard = other.Server, other.Shard
}

func TestTheSecretsOfOneServerStayTogetherWhenPeopleTakeTheirReplicaAway(t *testing.T) {
	for name, test := range map[string]struct {
		live bool
		on   map[string]int // of three replicas, of which the last goes
		most int            // clusters of a replica
		want map[string]int

		cordon string
		down   map[int]bool
	}{
		"both leave": {on: map[string]int{"c000": 2, "twin": 2, "c001": 0, "c002": 1, "c003": 0, "c004": 1},
			want: map[string]int{"c000": 0, "twin": 0, "c001": 0, "c002": 1, "c003": 0, "c004": 1}},
		"both leave, in mode live": {live: true, on: map[string]int{"c000": 2, "twin": 2, "c001": 0, "c002": 1, "c003": 0, "c004": 1},
			want: map[string]int{"c000": 0, "twin": 0, "c001": 0, "c002": 1, "c003": 0, "c004": 1}},
		"the heavier one first": {on: map[string]int{"c000": 2, "twin": 2, "c001": 0, "c002": 1, "c003": 0, "c004": 2},
			want: map[string]int{"c000": 1, "twin": 1, "c001": 0, "c002": 1, "c003": 0, "c004": 0}},
		"to where there is room for both, though it carries more": {on: map[string]int{"c000": 2, "twin": 2, "c001": 0, "c002": 0, "c003": 0, "c004": 1}, most: 4,
			want: map[string]int{"c000": 1, "twin": 1, "c001": 0, "c002": 0, "c003": 0, "c004": 1}},
		"where no replica has room for both": {on: map[string]int{"c000": 2, "twin": 2, "c001": 0, "c002": 0, "c003": 1, "c004": 1}, most: 3,
			want: map[string]int{"c000": 0, "twin": 0, "c001": 0, "c002": 0, "c003": 1, "c004": 1}},
		"not to a cordoned replica, though it carries less": {on: map[string]int{"c000": 2, "twin": 2, "c001": 0, "c002": 0, "c003": 0, "c004": 2}, cordon: "1",
			want: map[string]int{"c000": 0, "twin": 0, "c001": 0, "c002": 0, "c003": 0, "c004": 0}},
		"not to a replica that is not ready": {on: map[string]int{"c000": 2, "twin": 2, "c001": 0, "c002": 0, "c003": 0, "c004": 2}, down: map[int]bool{1: true},
			want: map[string]int{"c000": 0, "twin": 0, "c001": 0, "c002": 0, "c003": 0, "c004": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLiveWorld(10, 1, 1, 1, 10)
			if !test.live {
				w.in.Config.Rollout = config.Rollout{Default: &config.DefaultRollout{}}
			}
			w.add("twin", 10)
			w.secret("twin").Server = server("c000")
			w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
			w.in.Config.Partition.MaxClustersPerReplica = test.most
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
			for name, replica := range test.on {
				w.secret(name).Shard = discover.ShardValue{State: discover.ShardValid, N: replica}
			}
			for range 5 {
				w.step(time.Minute)
			}
			w.scale(2)
			if w.down = test.down; test.cordon != "" {
				w.in.Cordon = test.cordon + "=" + w.in.Now.Add(time.Hour).UTC().Format(time.RFC3339)
			}
			for range 5 {
				w.step(time.Minute)
			}
			rows := map[string]int{}
			for name, row := range w.in.InForce.Clusters {
				rows[name] = row.Replica
			}
			if diff := cmp.Diff(test.want, rows) + cmp.Diff(test.want, w.owners()); diff != "" {
				t.Errorf("rows and Secrets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPinOfOneOfTwoSecretsBeyondTheReplicasMovesBothOnce(t *testing.T) {
	for _, pinned := range []string{"c000", "c001"} {
		for _, annotation := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, annotation %t", pinned, annotation), func(t *testing.T) {
				w := undecided(t, skewed(12)...)
				other := map[string]string{"c000": "c001", "c001": "c000"}[pinned]
				w.shares(other, pinned) // the one that had the server leads by its own pin
				w.step(time.Minute)
				w.history, w.counts, w.waves = map[string][]int{}, nil, nil
				before, writes := w.in.InForce.Clusters["c000"].Replica, w.writes
				w.step(time.Minute)
				if annotation {
					w.secret(pinned).Pin = "4"
				} else {
					w.in.Pins = plan.Pins{pinned: 4}
				}
				for range 12 * 60 {
					w.step(5 * time.Second)
				}
				want := map[string][]int{"c000": {before, 4}, "c001": {before, 4}}
				if diff := cmp.Diff(want, w.moved()) + cmp.Diff([]int{3, 5}, w.counts) + cmp.Diff([]int{2}, w.waves); diff != "" {
					t.Errorf("who owned what, replicas, and moves of each wave (-want +got):\n%s", diff)
				}
				if w.writes-writes != 5 { // it begins, there are replicas, a wave moves both, it is verified, and at rest
					t.Errorf("%d plan writes", w.writes-writes)
				}
			})
		}
	}
}

func TestWhatHasTheServerOfASecretThatOptedOutStaysWithIt(t *testing.T) {
	w := undecided(t, skewed(12)...)
	w.shares("c001", "c000")
	w.secret("c000").Unmanaged = true // the one that leads
	on := w.owners()["c000"]
	w.step(time.Minute)
	w.in.Cordon = fmt.Sprintf("%d=%s", on, w.in.Now.Add(2*time.Hour).UTC().Format(time.RFC3339))
	w.until(t, "the replica is empty but for the other", time.Hour, func(outcome.Outcome) bool {
		left := slices.DeleteFunc(w.on(on), func(cluster string) bool { return cluster == "c000" })
		return w.in.InForce.Rollout == nil && cmp.Equal([]string{"c001"}, left)
	})
	if out := w.step(time.Minute); !slices.Contains(problems(out), "rollout/FixedStays/c001") || out.Changed {
		t.Errorf("changed %t, problems %v", out.Changed, problems(out))
	}
}

// TestPinsThatPartAServerPartNobodyElse: the third Secret goes with the first pin, and the fleet comes to rest.
func TestPinsThatPartAServerPartNobodyElse(t *testing.T) {
	w := newWorld(10, 1, 1, 1, 1)
	w.in.Config.Evaluate = config.Evaluate{}
	w.add("twin", 0)
	w.add("zwin", 0)
	w.secret("twin").Server, w.secret("zwin").Server = server("c000"), server("c000")
	w.in.Pins = plan.Pins{"c000": 2, "twin": 0}
	w.run(10)
	writes := w.writes
	w.run(60)
	want := map[string]int{"c000": 2, "twin": 0, "zwin": 2}
	got := map[string]int{"c000": w.row(t, "c000"), "twin": w.row(t, "twin"), "zwin": w.row(t, "zwin")}
	if diff := cmp.Diff(want, got); diff != "" || w.writes != writes {
		t.Errorf("%d plan writes in an hour; rows (-want +got):\n%s", w.writes-writes, diff)
	}
	if n := len(w.last.Candidate.Moves); n != 0 {
		t.Errorf("%d moves are wanted for good", n)
	}
}

// lives is a fleet to which things happen, and the plans at rest that it had.
type lives struct {
	*liveWorld
	kept []plan.Plan
}

func drawLives(t *rapid.T) *lives {
	loads := make([]float64, rapid.IntRange(3, 12).Draw(t, "clusters"))
	for i := range loads {
		loads[i] = float64(rapid.IntRange(1, 30).Draw(t, "load"))
	}
	w := &lives{liveWorld: newLiveWorld(loads...)}
	c := &w.in.Config
	switch rapid.SampledFrom([]string{plan.ModeLive, plan.ModeX0Y, plan.ModeDefault}).Draw(t, "mode") {
	case plan.ModeX0Y:
		c.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: c.Rollout.StageTimeout}
	case plan.ModeDefault:
		c.Rollout = config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: c.Rollout.StageTimeout}
	}
	switch rapid.SampledFrom([]string{"load", "fixed", "people", "people"}).Draw(t, "replicas") {
	case "fixed":
		c.Partition.Replicas = &config.Replicas{Fixed: 3}
	case "people":
		if c.Rollout.X0Y == nil {
			c.Partition.Replicas = &config.Replicas{Workload: true}
		}
	}
	if most := rapid.IntRange(0, 3).Draw(t, "room"); most > 0 {
		c.Partition.MaxClustersPerReplica = (len(loads)+2)/3 + most
	} else if rapid.Bool().Draw(t, "budget") { // what it leaves of a change may pass the cap
		c.Change.Moves.Rate = []config.Rate{{Percent: 20, Period: config.Duration(10 * time.Minute)}}
	}
	c.Evaluate = config.Evaluate{}
	if rapid.Bool().Draw(t, "votes") {
		c.Evaluate.MostWanted = &config.MostWanted{Window: config.Duration(2 * time.Minute), MinSamples: 3}
	}
	c.Failover = &config.Failover{After: config.Duration(2 * time.Minute), Settle: config.Duration(time.Minute)}
	for i := range w.in.Discovered.Secrets {
		s := &w.in.Discovered.Secrets[i]
		s.Shard = discover.ShardValue{State: discover.ShardValid, N: rapid.IntRange(0, 2).Draw(t, "on")}
		if i > 0 && rapid.IntRange(0, 2).Draw(t, "shares") == 0 {
			s.Server = w.in.Discovered.Secrets[rapid.IntRange(0, i-1).Draw(t, "with")].Server
		}
	}
	return w
}

func (w *lives) drawName(t *rapid.T) string {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(w.owners()))).Draw(t, "cluster")
}

// happens is what people, nodes and loads do between two cycles.
func (w *lives) happens(t *rapid.T) {
	replica := rapid.IntRange(0, 4).Draw(t, "replica")
	switch rapid.SampledFrom([]string{"scale", "cordon", "pin", "new", "down", "rollback", "load", "unpin", "ends", "up", "freeze", "resume"}).Draw(t, "happens") {
	case "pin":
		w.in.Pins = maps.Clone(w.in.Pins)
		if w.in.Pins == nil {
			w.in.Pins = plan.Pins{}
		}
		w.in.Pins[w.drawName(t)] = replica
	case "unpin":
		w.in.Pins = nil
	case "cordon":
		w.in.Cordon = fmt.Sprintf("%d=%s", replica, w.in.Now.Add(20*time.Minute).UTC().Format(time.RFC3339))
	case "ends":
		w.in.Cordon = ""
	case "down":
		w.down[replica] = true
	case "up":
		w.down = map[int]bool{}
	case "scale":
		if w.in.InForce.FreeReplicas {
			w.scale(max(replica, 1))
		}
	case "rollback":
		p := rapid.SampledFrom(w.kept).Draw(t, "to").Clone()
		w.in.Rollback = &input.Rollback{Revision: p.Revision, Plan: &p}
	case "new":
		with := w.secret(w.drawName(t)).Server
		name := fmt.Sprintf("n%03d", len(w.in.Discovered.Secrets))
		w.add(name, 5)
		if s := w.secret(name); rapid.Bool().Draw(t, "shares") {
			s.Server = with
		}
	case "load":
		w.setLoad(w.drawName(t), float64(rapid.IntRange(1, 60).Draw(t, "load")))
	case "freeze":
		w.in.Paused = true
	case "resume":
		w.in.Paused = false
	}
}

// TestEveryProposalKeepsToTheRules: whatever happens, and in every mode, the Secrets of one server have one replica in
// every plan that is written, but for pins that part them; what is decided gives a closed replica nothing; and a
// replica has more clusters than the cap only where no other has room.
func TestEveryProposalKeepsToTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawLives(t)
		w.step(time.Minute)
		for range rapid.IntRange(10, 60).Draw(t, "cycles") {
			before := w.in.InForce.Clone()
			if before.Rollout == nil {
				w.kept = append(w.kept, before)
			}
			for range rapid.IntRange(0, 2).Draw(t, "happenings") {
				w.happens(t)
			}
			out := w.step(time.Duration(rapid.IntRange(1, 12).Draw(t, "pause")) * 10 * time.Second)
			w.togetherIn(t, out)
			w.decidedWell(t, before, out)
			if out.Done {
				w.in.Rollback = nil
			}
		}
	})
}

func (w *lives) togetherIn(t *rapid.T, out outcome.Outcome) {
	parted, on := w.parted(out), map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(w.in.InForce.Clusters)) {
		server, replica := w.secret(name).Server, w.in.InForce.Clusters[name].Replica
		if other := on[server]; other != "" && !parted[server] && w.in.InForce.Clusters[other].Replica != replica {
			t.Fatalf("%s is on %d and %s, which has the same server, is not: %s", name, replica, other, out.Reason)
		}
		on[server] = name
	}
}

// parted are the servers whose Secrets are pinned apart.
func (w *lives) parted(out outcome.Outcome) map[string]bool {
	parted, pins := map[string]bool{}, map[string]int{}
	for name, pin := range out.Pins {
		server := w.secret(name).Server
		other, pinned := pins[server]
		parted[server], pins[server] = parted[server] || pinned && other != pin, pin
	}
	return parted
}

// decidedWell looks at what was decided in this cycle. What a person chose is not judged: a pin, the rows of an earlier
// plan.
func (w *lives) decidedWell(t *rapid.T, before plan.Plan, out outcome.Outcome) {
	after := w.in.InForce
	if before.Rollout != nil || after.Rollout == nil {
		return
	}
	to := maps.Clone(after.Rollout.Moves)
	if after.Rollout.Mode == plan.ModeLive {
		to = maps.Clone(out.Memory.Changes.Target)
	}
	bins, largest, received := make([]placement.Bin, after.Rollout.Replicas), map[int]int{}, map[int]bool{}
	for replica := range bins {
		bins[replica].Open = !w.closed(out, replica)
	}
	staying := len(bins) // or more, where the budget lets no replica go yet
	if out.Memory.Changes.Cause == change.Rollback {
		staying = min(staying, w.in.Rollback.Plan.Replicas)
	}
	anyOpen := slices.ContainsFunc(bins[:staying], func(b placement.Bin) bool { return b.Open })
	for name, row := range after.Clusters {
		replica, moves := to[name]
		if !moves {
			replica = row.Replica
		}
		bins[replica].Clusters++
		largest[replica] = max(largest[replica], w.secrets(name))
		was, known := before.Clusters[name]
		from := was.Replica
		if !known || from == replica || w.belongs(before, out, name, replica) {
			continue
		}
		if anyOpen && !bins[replica].Open {
			t.Fatalf("%s goes from %d to %d, which is closed: %s", name, from, replica, out.Reason)
		}
		received[replica] = true
	}
	for name := range after.Clusters {
		if _, known := before.Clusters[name]; !known {
			return // it came in this cycle, and the webhook that answered for it knows no cap
		}
	}
	most := w.in.Config.Partition.MaxClustersPerReplica
	if slices.Contains(slices.Collect(maps.Values(w.parted(out))), true) {
		return // the partition counts all Secrets of a server in one place
	}
	for replica := range received {
		for other, b := range bins { // what has room then had room for each of them
			if most > 0 && bins[replica].Clusters > most && b.Open && b.Clusters+largest[replica] <= most {
				t.Fatalf("replica %d goes to %d clusters, of at most %d, and %d has %d: %s", replica, bins[replica].Clusters, most, other, b.Clusters, out.Reason)
			}
		}
	}
}

// belongs reports whether a cluster goes where a pin of its server is, or another Secret of it, or was in the plan that
// a person goes back to.
func (w *lives) belongs(before plan.Plan, out outcome.Outcome, name string, replica int) bool {
	for _, s := range w.in.Discovered.Secrets {
		if s.Server != w.secret(name).Server {
			continue
		}
		pin, pinned := out.Pins[s.Name]
		if out.Memory.Changes.Cause == change.Rollback && w.in.Rollback.Plan.Clusters[s.Name].Replica == replica {
			return true
		}
		if row, known := before.Clusters[s.Name]; known && row.Replica == replica || pinned && pin == replica {
			return true
		}
	}
	return false
}

// secrets is how many Secrets a cluster's server has.
func (w *lives) secrets(name string) (n int) {
	for _, s := range w.in.Discovered.Secrets {
		if s.Server == w.secret(name).Server {
			n++
		}
	}
	return n
}

func (w *lives) closed(out outcome.Outcome, replica int) bool {
	for _, s := range out.Replicas.Sick {
		if s.Replica == replica {
			return true
		}
	}
	return slices.Contains(out.Cordoned, replica) || slices.Contains(out.Replicas.Down, replica)
}
