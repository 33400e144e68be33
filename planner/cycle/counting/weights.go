package counting

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"ballast/planner/config"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/reading"
	"ballast/planner/discover"
	"ballast/planner/partition"
	"ballast/planner/plan"
	"ballast/planner/size"
	"ballast/planner/size/weights"
)

// countFor is how much more load fewer replicas must be enough for: a load beside a step would open and close a replica
// for ever.
const countFor = 0.1

// growth shares the growth of the load out among replicas and their sizes.
type growth struct{ *outcome.Draft }

// Weigh works out how many replicas the weights ask for, and what replicas are known to bear.
func Weigh(d *outcome.Draft, g *ground.Ground) {
	growth{d}.weigh(g)
	evidence{d}.weigh(g)
}

// weigh works out how many replicas the weights ask for. Nothing else asks for another number then, but people, pins
// and groups.
func (w growth) weigh(g *ground.Ground) {
	in := w.In.Config
	if len(in.Size.Weights) == 0 || in.Partition.Replicas != nil || g.Next.Unmanaged {
		w.Out.Memory.Counts.Start, w.Out.Memory.Counts.Asked = memory.Start{}, 0
		return
	}
	p, err := w.packings(g)
	if err != nil || p.load == 0 {
		return // the partition says so
	}
	intervals, wrong := in.Size.Intervals()
	if len(wrong) > 0 {
		return // no configuration is like that
	}
	start := w.startOf(g, p.load, intervals)
	f := weights.Fleet{Replicas: start.Replicas, Capacity: start.Load / float64(start.Replicas),
		Now: bounds.Settled(g.Next), Load: p.load,
		Heaviest: p.heaviest, Min: p.bounds.MinReplicas, Max: p.bounds.MaxReplicas, Hysteresis: countFor,
		FullestOf: p.fullest, Intervals: intervals}
	if node := reading.NodeCap(w.In); len(in.Size.All()) > 0 && len(node) > 0 {
		f.Request = func(replicas int, spare float64) float64 { return w.ofNode(g, p, replicas, spare) }
	}
	split := f.Decide()
	w.Out.Memory.Counts.Start, w.Out.Memory.Counts.Asked = start, split.Replicas
	g.Weighed = min(max(split.Replicas, bounds.MustHave(g)), p.bounds.MaxReplicas)
	w.Counts().Weights = &outcome.Weighing{Load: p.load, Start: start, Weight: split.Weight, Replicas: g.Weighed,
		Fullest:    split.Capacity,
		Horizontal: f.Horizontal(), Fewer: split.Fewer, OverNode: split.OverNode, Why: split.Why,
		Most: max(split.Capacity, f.Asked()*(1+countFor))}
}

// MostLoad is the load above which a replica carries too much: the capacity that a person wrote, or what the weights
// make of it, with a tenth to spare. 0: nothing says so.
func MostLoad(of *outcome.Counts, capacity plan.Load) float64 {
	if of != nil && of.Weights != nil {
		return of.Weights.Most
	}
	return capacity.Float()
}

// startOf is where growth counts from: what stands when the fleet is taken over. With weights or a capacity that are
// new, each of those replicas carries that capacity. Where the history is lost, loads are in another unit or an
// interval was edited, what the weights asked for last, and what the fleet makes then: no number may leap by that, nor
// grow by what a pin asked for.
func (w growth) startOf(g *ground.Ground, load float64, in weights.Intervals) memory.Start {
	capacity, m := 0.0, w.In.Memory
	if configured := w.In.Config.Partition.Capacity; configured != nil {
		capacity = configured.Float()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%v %v", capacity, in))
	of := hex.EncodeToString(sum[:8])
	before, adopted := m.Counts.Start, (w.In.InForce != nil || w.In.Last != nil) && g.Next.Mode.Enforced()
	if adopted && before.Of == of && before.Load > 0 {
		return before
	}
	start := memory.Start{Replicas: bounds.Settled(g.Next), Load: load, Capacity: capacity, Of: of}
	if asked := m.Counts.Asked; adopted && asked > 0 {
		start.Replicas = min(start.Replicas, asked)
	}
	old := before.Of == memory.Unknown || before.Of != "" && before.Capacity == capacity
	if begins := !adopted || !old; capacity > 0 && begins {
		start.Load = capacity * float64(start.Replicas)
	}
	return start
}

// packing asks LPT how full the fullest of so many replicas is.
type packing struct {
	groups   []discover.Unit
	items    []partition.Item
	bounds   partition.Bounds
	load     float64
	heaviest float64
	made     map[int]partition.Partition
}

func (w growth) packings(g *ground.Ground) (*packing, error) {
	p := &packing{groups: g.Units().All(), bounds: bounds.Of(g), made: map[int]partition.Partition{}}
	var err error
	if p.items, err = division.ItemsOf(g, p.groups, w.Out.Loads); err != nil {
		return nil, err
	}
	var all plan.Load
	for _, item := range p.items {
		if all, err = plan.SumLoads(all, item.Load); err != nil {
			return nil, err
		}
		p.heaviest = max(p.heaviest, item.Load.Float())
	}
	p.load = all.Float()
	_, err = p.of(p.bounds.MaxReplicas)
	return p, err
}

func (p *packing) of(replicas int) (partition.Partition, error) {
	if made, known := p.made[replicas]; known {
		return made, nil
	}
	b := partition.Bounds{MinReplicas: 1, MaxReplicas: p.bounds.MaxReplicas, Fixed: replicas,
		MaxClusters: p.bounds.MaxClusters}
	made, err := partition.LPT(p.items, b)
	if err == nil {
		p.made[replicas] = made
	}
	return made, err
}

func (p *packing) fullest(replicas int) float64 {
	made, err := p.of(replicas)
	if err != nil {
		return 0 // no number is refused that the most is not
	}
	return made.Makespan().Float()
}

// ofNode is what rules ask for the largest of so many replicas, as a share of a node, with so much more of every input
// than a packing that is level gives it.
func (w growth) ofNode(g *ground.Ground, p *packing, replicas int, spare float64) (most float64) {
	made, err := p.of(replicas)
	if err != nil {
		return 0
	}
	of := make([][]int, made.Replicas)
	for k, u := range p.groups {
		at := made.Of[k]
		of[at] = append(of[at], u.Clusters...)
	}
	told := w.Out.Problems
	inputs := reading.Divided(w.Draft, g, of)
	w.Out.Problems = told // what is missing is told once, for the replicas that there are
	for id, r := range inputs {
		inputs[id] = more(r, spare)
	}
	conf := w.In.Config.Size
	q := size.Question{Rules: undelayed(conf.Merged()), Inputs: inputs, Replicas: ordinals(made.Replicas),
		Headroom: conf.Headrooms(),
		Uniform:  conf.Apply == config.Template || g.Next.Target.Kind == plan.Deployment, Now: w.In.Now}
	result, _ := size.Evaluate(q, nil)
	node := reading.NodeCap(w.In)
	for _, of := range result.Sizes {
		for name, request := range of.Requests {
			if room, known := node[name]; known {
				most = max(most, request.AsApproximateFloat64()/room.AsApproximateFloat64())
			}
		}
	}
	return most
}

func ordinals(replicas int) []int {
	all := make([]int, replicas)
	for r := range all {
		all[r] = r
	}
	return all
}

// undelayed are rules that answer for what is asked now.
func undelayed(rules []size.Rule) []size.Rule {
	for i := range rules {
		rules[i].DelayUp, rules[i].DelayDown, rules[i].Smoothing = size.Delay{}, size.Delay{}, nil
	}
	return rules
}

// more is a reading by that factor.
func more(r size.Reading, factor float64) size.Reading {
	out := size.Reading{Missing: r.Missing, Total: r.Total * factor, Cluster: r.Cluster * factor,
		Replica: make(map[int]float64, len(r.Replica))}
	for replica, value := range r.Replica {
		out.Replica[replica] = value * factor
	}
	return out
}
