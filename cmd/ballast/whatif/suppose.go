package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/config/validation"
	"ballast/planner/cycle"
	"ballast/planner/cycle/explain"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/track"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// change is what is supposed.
type change struct {
	add         int
	like        string
	remove      []string
	lose        []int
	replicas    string
	maxReplicas int
	capacity    string
}

// mostAdded bounds what --add makes: a fleet of Argo CD has some thousands of clusters.
const mostAdded = 20_000

// auto takes a number in partition.replicas away.
const auto = "auto"

// check judges what can be judged without a cluster. Every mistake is told at once.
func (c change) check() error {
	var errs []error
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	add(c.onlyLoses() && len(c.lose) == 0,
		"nothing is supposed: say what, as in --add 20 --like prod-eu, --remove prod-us, --lose 2, --replicas 8 or --capacity 1.5")
	add(c.add < 0 || c.add > mostAdded, "--add: %d is not between 1 and %d", c.add, mostAdded)
	add(c.add > 0 && c.like == "", "--add: say with --like which cluster the new ones are like")
	add(c.add == 0 && c.like != "", "--like: say with --add how many are like it")
	add(c.maxReplicas < 0, "--max-replicas: %d is not 1 or more", c.maxReplicas)
	if c.replicas != "" && c.replicas != auto {
		n, err := strconv.Atoi(c.replicas)
		add(err != nil || n < 1, "--replicas: %q is neither a number of replicas nor %s, which lets the load say it",
			c.replicas, auto)
	}
	for i, r := range c.lose {
		add(r < 0, "--lose: %d is no replica: they are counted from 0", r)
		add(slices.Contains(c.lose[:i], r), "--lose: replica %d stands twice", r)
	}
	return errors.Join(errs...)
}

// onlyLoses reports whether nothing is supposed but losses: those happen to the fleet as it is.
func (c change) onlyLoses() bool {
	return c.add == 0 && len(c.remove) == 0 && c.replicas == "" && c.maxReplicas == 0 && c.capacity == ""
}

// words are what is supposed, each in a few words.
func (c change) words() (words []string) {
	if c.add > 0 {
		words = append(words, fmt.Sprintf("%s more like %s", say.Plural(c.add, "cluster"), c.like))
	}
	for _, name := range c.remove {
		words = append(words, "no "+name)
	}
	if c.capacity != "" {
		words = append(words, "partition.capacity "+c.capacity)
	}
	if c.replicas != "" {
		words = append(words, "partition.replicas "+c.replicas)
	}
	if c.maxReplicas > 0 {
		words = append(words, fmt.Sprintf("partition.maxReplicas %d", c.maxReplicas))
	}
	for _, r := range c.lose {
		words = append(words, fmt.Sprintf("replica %d lost", r))
	}
	return words
}

// steady are the inputs of a cycle that keeps what is and begins nothing: its candidate is what ballast wants. A
// rollout under way has no rows to go by until it has ended.
func steady(in input.Inputs) (input.Inputs, error) {
	if p := cmp.Or(in.InForce, in.Last); p != nil && p.Rollout != nil { // a plan that is lost is put back first
		return in, fmt.Errorf("a rollout is under way (%s): what would be is known once it has ended; "+
			"ballast status says how far it is", say.Rollout(p.Rollout))
	}
	if in.Config.Mode != plan.Observe {
		in.Config.Mode = plan.Hold
	}
	in.Rollback, in.Rebase = nil, ""
	return in, nil
}

// goesOn are the inputs after a cycle, with its plan in force. Every replica is taken to work, and a replica that is
// not needed to have been so for long.
func goesOn(in input.Inputs, out cycle.Outcome) input.Inputs {
	next := out.Next.Clone()
	next.Rollout, next.Mode, next.Revision = nil, plan.Hold, max(next.Revision, 1)
	in.Config.Mode = plan.Hold
	in.InForce, in.PlanFault, in.Observed = &next, "", input.Observed{}
	in.Workload.Replicas, in.Workload.ReadyReplicas = max(in.Workload.Replicas, next.Replicas),
		max(in.Workload.ReadyReplicas, next.Replicas)
	m := out.Memory
	in.Memory = memory.Memory{LastGood: m.LastGood, Heaviest: m.Heaviest, Even: m.Even, Unit: m.Unit,
		Evidence: m.Evidence,
		Young:    m.Young, Servers: m.Servers, Made: m.Made}
	in.Memory.Known.Leaders = m.Known.Leaders
	in.Memory.Changes.Ledger = m.Changes.Ledger
	return spared(in)
}

// spared has the highest replica not needed for long already, if it is not: people want to know where that ends. Nor
// does it matter by how many moves a decision gets there.
func spared(in input.Inputs) input.Inputs {
	if in.Config.Partition.Sticky == nil {
		return in
	}
	sticky := *in.Config.Partition.Sticky
	sticky.MaxMoves = 0
	in.Config.Partition.Sticky = &sticky
	in.Memory.Spare = track.Spare{Replica: in.InForce.Replicas - 1, At: in.Now, For: time.Duration(sticky.DownWindow)}
	return in
}

// taken are the inputs after a cycle whose candidate came about.
func taken(in input.Inputs, out cycle.Outcome) input.Inputs {
	in = goesOn(in, out)
	p := in.InForce
	for _, m := range out.Candidate.Moves {
		row := p.Clusters[m.Cluster]
		row.Replica = m.To
		p.Clusters[m.Cluster] = row
	}
	if !p.FreeReplicas {
		p.Replicas = len(out.Candidate.Replicas)
		p.ControllerReplicas = max(p.ControllerReplicas, p.Replicas)
	}
	in.Workload.Replicas, in.Workload.ReadyReplicas = max(in.Workload.Replicas, p.Replicas),
		max(in.Workload.ReadyReplicas, p.Replicas)
	return spared(in)
}

// apply changes the inputs that go on from an outcome; that was of the fleet as it is.
func (c change) apply(in input.Inputs, out cycle.Outcome) (input.Inputs, error) {
	partition, err := c.partition(in)
	if err != nil {
		return in, err
	}
	in.Config.Partition = partition
	for _, mistake := range validation.Validate(in.Config) { // of a file that an older ballast saved others may be wrong, too
		if strings.HasPrefix(mistake.Field, "partition.") {
			return in, fmt.Errorf("the configuration would be wrong: %w", mistake)
		}
	}
	if in, err = c.without(in, out); err != nil {
		return in, err
	}
	return c.with(in, out)
}

// partition is the configuration's with what is supposed of it.
func (c change) partition(in input.Inputs) (config.Partition, error) {
	p := in.Config.Partition
	if c.maxReplicas > 0 {
		p.MaxReplicas = &c.maxReplicas
	}
	switch {
	case c.replicas == auto:
		p.Replicas = nil
	case c.replicas != "":
		n, _ := strconv.Atoi(c.replicas) // it was checked
		most := in.InForce.MaxReplicas
		if p.MaxReplicas != nil {
			most = *p.MaxReplicas
		}
		if n > most {
			return p, fmt.Errorf("--replicas: %d are more than partition.maxReplicas, which is %d: say --max-replicas %d, too", n, most, n)
		}
		p.Replicas = &config.Replicas{Fixed: n}
	}
	if c.capacity != "" {
		var d config.Decimal
		if err := d.UnmarshalText([]byte(c.capacity)); err != nil {
			return p, fmt.Errorf("--capacity: %q %w", c.capacity, err)
		}
		p.Capacity = &d
	}
	if c.capacity != "" && p.Replicas != nil {
		return p, fmt.Errorf("--capacity says nothing while partition.replicas is %s: say --replicas %s, too",
			said(p.Replicas), auto)
	}
	return p, nil
}

func said(r *config.Replicas) string {
	if r.Workload {
		return "workload"
	}
	return strconv.Itoa(r.Fixed)
}

// without takes clusters away.
func (c change) without(in input.Inputs, out cycle.Outcome) (input.Inputs, error) {
	gone := map[string]bool{}
	for _, name := range c.remove {
		i, err := explain.Named(out, name)
		if err != nil {
			return in, fmt.Errorf("--remove: %w", err)
		}
		cl := out.Fleet.Clusters[i]
		if cl.Implicit {
			return in, fmt.Errorf("--remove: %q has no Secret, it is the cluster that Argo CD runs in: "+
				"cluster.inClusterEnabled in argocd-cm turns it off", name)
		}
		gone[cl.Shard.ID] = true
	}
	if len(gone) == 0 {
		return in, nil
	}
	in.Discovered.Secrets = slices.DeleteFunc(slices.Clone(in.Discovered.Secrets), func(s discover.Secret) bool { return gone[s.Name] })
	maps.DeleteFunc(in.InForce.Clusters, func(name string, _ plan.Row) bool { return gone[name] })
	in.Pins = maps.Clone(in.Pins)
	maps.DeleteFunc(in.Pins, func(name string, _ int) bool { return gone[name] })
	return unmeasured(in, out, gone), nil
}

// unmeasured takes away what was measured of clusters that nobody else stands for.
func unmeasured(in input.Inputs, out cycle.Outcome, gone map[string]bool) input.Inputs {
	there, not := map[string]bool{}, map[string]bool{}
	for _, cl := range out.Fleet.Clusters {
		keys := there
		if gone[cl.Shard.ID] {
			keys = not
		}
		for to, key := range map[poll.MatchTo]string{poll.ToServer: cl.Shard.Server, poll.ToName: cl.Shard.Name, poll.ToID: cl.Shard.ID} {
			keys[string(to)+" "+key] = true
		}
	}
	in.Fetched = slices.Clone(in.Fetched)
	for _, m := range loads.MetricsOf(in.Config) {
		at := slices.IndexFunc(in.Fetched, func(f poll.Fetched) bool { return f.Metric == m.ID })
		if at < 0 {
			continue
		}
		in.Fetched[at].Samples = slices.DeleteFunc(slices.Clone(in.Fetched[at].Samples), func(s poll.Sample) bool {
			key := kindOf(m, s.Key)
			return not[key] && !there[key]
		})
	}
	return in
}

// kindOf is what of a cluster a sample names.
func kindOf(m poll.Metric, key string) string {
	to := cmp.Or(m.Match.To, poll.ToServer)
	if m.PerCluster() {
		to = poll.ToID
	}
	if alias, ok := m.Match.Aliases[key]; ok {
		key = alias
	}
	if to == poll.ToServer {
		key = plan.NormalizeServer(key)
	}
	return string(to) + " " + key
}

// with adds clusters that are measured as the one that they are like.
func (c change) with(in input.Inputs, out cycle.Outcome) (input.Inputs, error) {
	if c.add == 0 {
		return in, nil
	}
	i, err := explain.Named(out, c.like)
	if err != nil {
		return in, fmt.Errorf("--like: %w", err)
	}
	like := out.Fleet.Clusters[i].Shard
	taken := map[string]bool{}
	for _, s := range in.Discovered.Secrets {
		taken[s.Name] = true
	}
	in.Discovered.Secrets = slices.Clone(in.Discovered.Secrets)
	in.Fetched = slices.Clone(in.Fetched)
	for k, n := 0, 0; k < c.add; n++ {
		name := fmt.Sprintf("%s-new-%d", like.ID, n+1)
		if taken[name] {
			continue
		}
		k++
		s := discover.Secret{UID: "whatif-" + name, Name: name, Namespace: like.Namespace, Cluster: name, HasData: true}
		s.Server = fmt.Sprintf("https://%s.invalid", name)
		in.Discovered.Secrets = append(in.Discovered.Secrets, s)
	}
	made := in.Discovered.Secrets[len(in.Discovered.Secrets)-c.add:]
	for k, m := range loads.MetricsOf(in.Config) {
		value := shared(out.Table.Columns[k].Values, out.Fleet, i)
		at := slices.IndexFunc(in.Fetched, func(f poll.Fetched) bool { return f.Metric == m.ID })
		if at < 0 {
			continue // it was not asked for, and the table says so
		}
		in.Fetched[at].Samples = slices.Clone(in.Fetched[at].Samples)
		for _, s := range made {
			in.Fetched[at].Samples = append(in.Fetched[at].Samples,
				poll.Sample{Key: keyOf(m, s), Value: value, At: in.Now})
		}
	}
	return in, nil
}

// shared is what all Secrets of a cluster's server have together: one of them carries it.
func shared(values []float64, fleet discover.Fleet, i int) float64 {
	for _, u := range fleet.Units {
		if slices.Contains(u.Clusters, i) {
			most := 0.0
			for _, k := range u.Clusters {
				most = max(most, values[k])
			}
			return most
		}
	}
	return values[i]
}

// keyOf is how a metric's answer names a cluster.
func keyOf(m poll.Metric, s discover.Secret) string {
	switch {
	case m.PerCluster() || m.Match.To == poll.ToID:
		return s.Name
	case m.Match.To == poll.ToName:
		return s.Cluster
	}
	return strings.TrimSuffix(s.Server, "/")
}
