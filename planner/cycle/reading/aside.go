package reading

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/size"
	"ballast/planner/size/inputs"
)

// readAside adds the inputs that say nothing of clusters: they are known whatever is believed of loads. What a rule
// wants and is not known is told with its reason, each for itself.
func (d readings) readAside(g *ground.Ground, replicas int, readings map[string]size.Reading) {
	for _, name := range d.In.Config.Size.SizeInputs() {
		source := config.SourceOf(name)
		if source == config.FromFleet {
			continue
		}
		reading, why := d.In.Surroundings.Of(name, d.In.Now)
		if source == config.FromPods {
			reading, why = d.inUse(g, replicas)
		}
		readings[name] = reading
		d.inputMissing(name, why)
	}
	for _, m := range loads.ReplicaMetricsOf(d.In.Config) {
		reading, why := d.ofReplicas(g, m, replicas)
		readings[m.ID] = reading
		if slices.Contains(d.In.Config.Size.SizeInputs(), m.ID) {
			d.inputMissing(m.ID, why)
		}
	}
}

func (d readings) inputMissing(name, why string) {
	if why != "" {
		d.Tell(problem.Problem{Phase: problem.PhaseSize, Subject: name, Kind: "SizeInputMissing",
			Message: "size rules read " + name + ", of which nothing is known: " + why +
				"; what they decided stays, and other rules go on"})
	}
}

// ofReplicas is a metric of replicas, by the pods of the workload.
func (d readings) ofReplicas(g *ground.Ground, m poll.Metric, replicas int) (size.Reading, string) {
	if g.Next.Target.Kind == plan.Deployment {
		return size.Reading{Missing: true}, "the pods of a Deployment have no ordinals by which they are replicas"
	}
	fetched := poll.Fetched{Metric: m.ID, Err: "it was not asked for"}
	if i := slices.IndexFunc(d.In.Fetched, func(f poll.Fetched) bool { return f.Metric == m.ID }); i >= 0 {
		fetched = d.In.Fetched[i]
	}
	pods := inputs.Pods{Workload: g.Next.Target.Name, Replicas: replicas}
	if d.In.Observed.Known {
		pods.Seen = map[int]bool{}
		for _, p := range d.In.Observed.Pods {
			pods.Seen[p.Replica] = true
		}
	}
	r, why := inputs.OfReplicas(fetched, pods, d.In.Now.Add(-d.In.Config.Poll.MaxAge()))
	return d.whole(g, r), why
}

// whole is a reading of replicas; where they all get one size, it is missing unless each has a value: the largest of
// some is not the largest.
func (d readings) whole(g *ground.Ground, r size.Reading) size.Reading {
	uniform := d.In.Config.Size.Apply == config.Template || g.Next.Target.Kind == plan.Deployment
	r.Missing = r.Missing || uniform && len(r.Replica) < g.Next.Replicas
	return r
}

// inUse is the memory that each replica's pod says that it has in use; of two pods of one replica the larger.
func (d readings) inUse(g *ground.Ground, replicas int) (size.Reading, string) {
	r := size.Reading{Replica: map[int]float64{}}
	for _, p := range d.In.Observed.Pods {
		used := p.Memory
		if p.MemoryLimit > 0 { // no container uses more, whoever says so
			used = min(used, p.MemoryLimit)
		}
		if used > 0 && p.Replica >= 0 && p.Replica < replicas {
			r.Replica[p.Replica] = max(r.Replica[p.Replica], float64(used))
		}
	}
	if len(r.Replica) == 0 {
		return size.Reading{Missing: true}, "no pod says what memory it has in use; ballast asks at their metrics ports"
	}
	return d.whole(g, r), ""
}

// SeenInputs are the inputs that say what pods have had, and nothing of clusters that come: by themselves, by a metric,
// or by what a VerticalPodAutoscaler makes of them.
func SeenInputs(conf config.PlannerConfig) map[string]bool {
	seen := map[string]bool{}
	for _, name := range conf.Size.SizeInputs() {
		source := config.SourceOf(name)
		seen[name] = source == config.FromPods || source == config.FromVPA
	}
	for _, m := range loads.ReplicaMetricsOf(conf) {
		seen[m.ID] = true
	}
	return seen
}

// NodeCap is the most of each resource that one replica may request: as it is written, and else as the nodes have it.
func NodeCap(in input.Inputs) map[string]resource.Quantity {
	most := in.Config.Size.Cap()
	for name, room := range NodesGive(in) {
		if _, written := most[name]; !written {
			most[name] = room
		}
	}
	return most
}

// NodesGive is what the nodes can give one replica, where that is asked for. While they are not known it is what they
// gave when they were seen last: no replica is to grow without bound for an answer that is late.
func NodesGive(in input.Inputs) map[string]resource.Quantity {
	from := in.Config.Size.NodeCap.FromNodes
	if from == nil {
		return nil
	}
	if now := in.Surroundings.Nodes.Cap(int(from.Reserve), in.Now); len(now) > 0 {
		return now
	}
	last := map[string]resource.Quantity{}
	for name, text := range in.Memory.Sizes.Nodes {
		if q, err := size.ParseQuantity(text); err == nil && q.Sign() > 0 {
			last[name] = q
		}
	}
	return last
}

// RememberNodes is the memory of sizes with what the nodes give.
func RememberNodes(in input.Inputs) memory.Sizes {
	sizes := in.Memory.Sizes
	sizes.Nodes = nil
	for name, room := range NodesGive(in) {
		if sizes.Nodes == nil {
			sizes.Nodes = map[string]string{}
		}
		sizes.Nodes[name] = room.String()
	}
	return sizes
}
