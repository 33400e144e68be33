package cycle

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/plan"
)

// drawnFleet is what a world is made of, whatever its clusters are called. Loads are whole numbers of which no few have one sum, or
// names would decide between those.
type drawnFleet struct {
	loads     []float64
	on        []int
	partition config.Partition
	evaluate  config.Evaluate
	rollout   config.Rollout
	memory    *config.Dimensions
}

func drawFleet(t *rapid.T) drawnFleet {
	n := rapid.IntRange(1, 12).Draw(t, "clusters")
	f := drawnFleet{loads: wholeLoads(rapid.Uint64().Draw(t, "seed"), n), on: rapid.SliceOfN(rapid.IntRange(0, 2), n, n).Draw(t, "on")}
	shipped, timeout := config.Default(), config.Default().Rollout.StageTimeout
	f.partition = rapid.SampledFrom([]config.Partition{shipped.Partition, {LPT: &config.LPT{}}}).Draw(t, "partition")
	f.evaluate = rapid.SampledFrom([]config.Evaluate{shipped.Evaluate, {None: &config.None{}},
		{MostWanted: &config.MostWanted{Window: config.Duration(3 * time.Minute), MinSamples: 3}}}).Draw(t, "evaluate")
	f.rollout = rapid.SampledFrom([]config.Rollout{
		{Live: &config.LiveRollout{MaxMovesPerWave: 2, Nudge: true, Adopt: config.AdoptNow}, StageTimeout: timeout},
		{Default: &config.DefaultRollout{}, StageTimeout: timeout}, {X0Y: &config.X0YRollout{}, StageTimeout: timeout}}).Draw(t, "rollout")
	if rapid.Bool().Draw(t, "a capacity") {
		capacity := rapid.SampledFrom([]config.Decimal{"0.3", "0.5", "1"}).Draw(t, "of a replica")
		f.partition.Capacity = &capacity
	}
	if f.partition.Sticky != nil && rapid.Bool().Draw(t, "bounded by memory") {
		third := 0.0
		for _, load := range f.loads {
			third += load / 3
		}
		room := config.Bytes(fmt.Sprintf("%.0f", third*rapid.SampledFrom([]float64{0.9, 1.2, 2}).Draw(t, "of a third")))
		f.memory = &config.Dimensions{Memory: &config.Memory{Weights: map[string]config.Bytes{"apps": "1"},
			Base: "0", Capacity: &room, LimitShare: "1"}}
	}
	return f
}

func wholeLoads(seed uint64, n int) []float64 {
	coin, loads := rand.New(rand.NewPCG(seed, 11)), make([]float64, n)
	for i := range loads {
		loads[i] = math.Ceil(1e7 * math.Exp(coin.NormFloat64()))
	}
	return loads
}

// world has the fleet's clusters under these names.
func (f drawnFleet) world(names []string) *liveWorld {
	w := newLiveWorld()
	c := &w.in.Config
	c.Partition, c.Evaluate, c.Rollout, c.Index.Dimensions = f.partition, f.evaluate, f.rollout, f.memory
	for i, name := range names {
		w.add(name, f.loads[i])
		w.place(name, f.on[i])
		w.secret(name).UID = fmt.Sprint("uid-", i)
	}
	return w
}

// happening is what comes about before a cycle, by the clusters' numbers.
type happening func(w *liveWorld, names []string)

func drawHappening(t *rapid.T, f drawnFleet) happening {
	i := rapid.IntRange(0, len(f.loads)-1).Draw(t, "which")
	switch rapid.IntRange(0, 5).Draw(t, "happens") {
	case 0:
		load := wholeLoads(rapid.Uint64().Draw(t, "seed of its load"), 1)[0] * rapid.SampledFrom([]float64{1, 3}).Draw(t, "times")
		load += float64(i) // no two carry the same: of such either may be the one that moves
		return func(w *liveWorld, names []string) { w.setLoad(names[i], load) }
	case 1:
		replica := rapid.IntRange(0, 3).Draw(t, "it is pinned to")
		return func(w *liveWorld, names []string) { w.in.Pins = plan.Pins{names[i]: replica} }
	case 2:
		replica := rapid.IntRange(0, 2).Draw(t, "cordoned")
		return func(w *liveWorld, _ []string) {
			w.in.Cordon = fmt.Sprintf("%d=%s", replica, w.in.Now.Add(5*time.Minute).UTC().Format(time.RFC3339))
		}
	case 3:
		return func(w *liveWorld, names []string) { w.secret(names[i]).Unmanaged = true }
	}
	return func(*liveWorld, []string) {}
}

func namesOf(f drawnFleet) (names []string) {
	for i := range f.loads {
		names = append(names, fmt.Sprintf("c%03d", i))
	}
	return names
}

// shuffled has everything in another order that has none by itself.
func shuffled(t *rapid.T, in input.Inputs) input.Inputs {
	in.Discovered.Secrets = rapid.Permutation(in.Discovered.Secrets).Draw(t, "Secrets")
	for i := range in.Fetched {
		in.Fetched[i].Samples = rapid.Permutation(in.Fetched[i].Samples).Draw(t, "samples")
	}
	in.Observed.Pods = rapid.Permutation(in.Observed.Pods).Draw(t, "pods")
	return in
}

// TestTheOrderOfWhatIsSeenChangesNothing: Secrets, samples and pods in another order come to the same plan, for the same reason, and
// to the same memory of it.
func TestTheOrderOfWhatIsSeenChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := drawFleet(rt)
		names := namesOf(f)
		w := f.world(names)
		said := func(out Outcome) string {
			all := []any{out.Next, out.Changed, out.Reason, out.Memory, out.Candidate, out.Loads, out.Problems, out.InUse}
			text, err := json.MarshalIndent(all, "", " ")
			if err != nil {
				rt.Fatal(err)
			}
			return string(text)
		}
		for range rapid.IntRange(1, 10).Draw(rt, "cycles") {
			w.in.Now = w.in.Now.Add(time.Minute)
			drawHappening(rt, f)(w, names)
			w.observe()
			got := Run(shuffled(rt, clone(t, w.in)))
			if diff := cmp.Diff(said(w.cycle()), said(got)); diff != "" {
				rt.Fatalf("in another order (-before +after):\n%s", diff)
			}
		}
	})
}

// standsAs is what a cycle says of clusters by their numbers, and of replicas.
type standsAs struct {
	Rows, Moves, Was map[int]int
	Wants            map[int]Move // of the candidate
	Loads            map[int]plan.Load
	Replicas, Env    int
	Stage            plan.Stage
	Full             []int
	Told             []string // the kinds of the problems, in order
	Decided          bool
}

func standsIn(out Outcome, names []string) standsAs {
	at := func(name string) int { return slices.Index(names, name) }
	numbered := func(of map[string]int) map[int]int {
		by := map[int]int{}
		for name, replica := range of {
			by[at(name)] = replica
		}
		return by
	}
	s := standsAs{Rows: map[int]int{}, Wants: map[int]Move{}, Loads: map[int]plan.Load{}, Replicas: out.Next.Replicas,
		Env: out.Next.ControllerReplicas, Full: out.Next.Full, Decided: out.Decided}
	for name, row := range out.Next.Clusters {
		s.Rows[at(name)] = row.Replica
	}
	if r := out.Next.Rollout; r != nil {
		s.Stage, s.Moves, s.Was = r.Stage, numbered(r.Moves), numbered(r.Was)
	}
	if out.Candidate != nil {
		for _, m := range out.Candidate.Moves {
			s.Wants[at(m.Cluster)] = Move{From: m.From, To: m.To}
		}
	}
	for i, load := range out.Loads {
		s.Loads[at(out.Fleet.Clusters[i].Shard.ID)] = load
	}
	for _, p := range out.Problems {
		s.Told = append(s.Told, p.Kind)
	}
	slices.Sort(s.Told)
	delete(s.Rows, -1)
	delete(s.Loads, -1)
	return s
}

// TestOtherNamesChangeNothingElse: a fleet whose clusters, Secrets and servers are called otherwise lives the same life. Where memory
// bounds replicas it need not: of two that leave a crowded one the first by its name may find the room.
func TestOtherNamesChangeNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		f.memory = nil
		names := namesOf(f)
		others := rapid.Permutation(names).Draw(t, "other names")
		for i := range others {
			others[i] = "x-" + others[i]
		}
		w, other := f.world(names), f.world(others)
		for range rapid.IntRange(1, 15).Draw(t, "cycles") {
			happens := drawHappening(t, f)
			happens(w, names)
			happens(other, others)
			want, got := standsIn(w.step(time.Minute), names), standsIn(other.step(time.Minute), others)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("under other names (-before +after):\n%s", diff)
			}
		}
	})
}

// TestAnEmptyClusterMovesNothing: one cluster more that carries nothing leaves every other one where it is. What wants to move,
// or another number of replicas, without it may go elsewhere or stay, since the empty one fills a replica that had none; what is under way goes on as it was.
// While nobody knows that it is empty, its replica may be full by it.
func TestAnEmptyClusterMovesNothing(t *testing.T) {
	rested, underWay := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		f := drawFleet(rt)
		if f.partition.Sticky == nil { // lpt deals the fleet anew, the empty one too
			f.partition.LPT, f.partition.Sticky = nil, config.Default().Partition.Sticky
		}
		names := namesOf(f)
		w := f.world(names)
		name := rapid.SampledFrom([]string{"0-first", "c005-amid", "last"}).Draw(rt, "its name")
		for range rapid.IntRange(1, 12).Draw(rt, "cycles") {
			w.in.Now = w.in.Now.Add(time.Minute)
			drawHappening(rt, f)(w, names)
			w.observe()
			in := clone(t, w.in)
			empty := *clonedSecret(w.world, names[0], name)
			young := rapid.Bool().Draw(rt, "it came just now")
			empty.Created, empty.Unmanaged, empty.Pin = w.in.Now.Add(-time.Hour), false, ""
			if young {
				empty.Created = w.in.Now
			}
			at := rapid.IntRange(0, 2).Draw(rt, "the webhook puts it on")
			if strings.HasPrefix(in.Cordon, fmt.Sprintf("%d=", at)) { // it would not
				at = (at + 1) % 3
			}
			empty.Shard = discover.ShardValue{State: discover.ShardValid, N: at}
			in.Discovered.Secrets = append(in.Discovered.Secrets, empty)
			in.Observed.Reported.Clusters[name] = ownership.ClusterObservation{Server: empty.Server}
			wasUnderWay := w.in.InForce != nil && w.in.InForce.Rollout != nil
			without := w.cycle()
			got, want := standsIn(Run(in), names), standsIn(without, names)
			if also := append(slices.Clone(want.Full), at); young && !slices.Contains(want.Full, at) && slices.Contains(got.Full, at) {
				slices.Sort(also)
				want.Full = also
			}
			grows := without.Candidate != nil && len(without.Candidate.Replicas) != want.Replicas
			switch rests := want.Stage == "" && len(want.Wants) == 0 && !grows; {
			case wasUnderWay:
				got.Wants, want.Wants = nil, nil
				underWay++
			case rests:
				rested++
			default:
				continue
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("with an empty cluster more (-before +after):\n%s", diff)
			}
		}
	})
	if rested < 10 || underWay < 10 {
		t.Errorf("compared %d times at rest and %d times under way, which is too few", rested, underWay)
	}
}
