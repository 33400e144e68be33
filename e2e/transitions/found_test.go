package transitions

import (
	"fmt"
	"strconv"

	"pgregory.net/rapid"

	"ballast/e2e/gaps"
	"ballast/planner/diff"
	"ballast/planner/plan"
	"ballast/planner/rollout/readiness"
)

// mostReplicas is how many pods a fleet has at most.
const mostReplicas = 6

// drawFleet draws a fleet as Argo CD runs it before ballast comes: most Secrets have no shard, and an algorithm decides.
func drawFleet(t *rapid.T, views *views, figures *figures) *fleet {
	f := &fleet{T: t, views: views, figures: figures, generation: 1, observed: 1, secrets: map[string]*secret{}, apps: newApps()}
	f.algorithm = rapid.SampledFrom([]string{"legacy", "round-robin", consistentHashing, ""}).Draw(t, "algorithm")
	f.replicas = rapid.IntRange(1, mostReplicas).Draw(t, "replicas")
	f.env = f.drawEnv()
	f.inCluster = rapid.Bool().Draw(t, "in-cluster")
	for i := range rapid.IntRange(2, 12).Draw(t, "clusters") {
		server := fmt.Sprintf("https://c%02d:6443", i)
		text := f.drawShard()
		f.drawSecret(fmt.Sprintf("c%02d", i), server, text)
		if !f.ranks() && f.oneIn(6, "has a twin") {
			f.drawSecret(fmt.Sprintf("c%02d-twin", i), server, text)
		}
	}
	// Without a Secret it has a shard that changes with the environment under consistent-hashing: Missing asks for one.
	if f.inCluster && (f.algorithm == consistentHashing || rapid.Bool().Draw(t, "in-cluster has a Secret")) {
		f.drawSecret("in-cluster", inCluster, f.drawShard())
	}
	for range f.replicas {
		f.pods = append(f.pods, &pod{env: f.env, generation: 1, runs: true, ran: true, ready: true, sees: map[string]int{}})
	}
	f.begin()
	return f
}

// ranks reports whether the algorithm gives a cluster a shard by its place among all. Then a second Secret of one server, which
// a pod takes for another cluster in the place of the first, moves others that have no shard, whatever is written: such a
// fleet has no owners that could be kept. Under live it has: see createNew.
func (f *fleet) ranks() bool { return f.algorithm == "round-robin" || f.algorithm == consistentHashing }

const consistentHashing = "consistent-hashing"

// drawEnv is ARGOCD_CONTROLLER_REPLICAS as found: the number of pods, one fewer (a pod is idle), one more (clusters are
// nobody's), or 0 for none.
func (f *fleet) drawEnv() int {
	switch n := f.replicas; n {
	case 1:
		return rapid.SampledFrom([]int{0, 1, 2}).Draw(f.T, "env")
	case 2:
		return rapid.SampledFrom([]int{2, 2, 3}).Draw(f.T, "env")
	default:
		return rapid.SampledFrom([]int{n, n, n - 1, n + 1}).Draw(f.T, "env")
	}
}

// drawShard is data.shard as found, mostly none. Text that is no number is no shard to Argo CD, a shard at or above the
// environment is 0, one below 0 nobody's.
func (f *fleet) drawShard() string {
	return rapid.SampledFrom([]string{"", "", "", "", "", "0", "1", "19", "-1", "0x1"}).Draw(f.T, "shard")
}

func (f *fleet) drawSecret(name, server, text string) {
	f.create(name, server, 0)
	s := f.secrets[name]
	shard, err := strconv.Atoi(text)
	s.stamp.Shard, s.stamp.Valid, s.stamp.Absent = shard, err == nil, text == ""
	s.versions[0].secret.Shard = &text
	if text == "" {
		s.versions[0].secret.Shard = nil
	}
	f.apps.idle[server] = f.oneIn(8, "idle")
}

// begin starts all pods at once; who owns what then is what was found.
func (f *fleet) begin() {
	steps := []gaps.Step{{Do: gaps.DoReset}}
	var listed []gaps.ViewSecret
	for _, name := range f.names() {
		listed = append(listed, f.secrets[name].versions[0].secret)
	}
	for i, p := range f.pods {
		for _, name := range f.names() {
			p.sees[name] = 1
		}
		steps = append(steps, gaps.Step{Do: gaps.DoStart, Pod: strconv.Itoa(i), Start: &gaps.ViewStart{
			Replicas: p.envText(), Shard: strconv.Itoa(i), Algorithm: f.algorithm, InCluster: f.inCluster, Secrets: listed,
		}})
	}
	servers := f.servers()
	f.owners = f.found(servers, steps)
	for _, s := range servers {
		owners := f.owners[s.url]
		if len(owners) > 1 {
			f.Fatalf("%q is found with the owners %v; %s", s.url, owners, f)
		}
		for _, secret := range s.secrets {
			if secret.versions[0].owner = nobody; len(owners) == 1 {
				secret.versions[0].owner = owners[0]
			}
		}
	}
	f.ask("the start of all pods")
}

// found asks whose each cluster is, with nothing to hold the answer against. Answers may be open from a fleet that failed.
func (f *fleet) found(servers []server, steps []gaps.Step) map[string][]int {
	q := question{what: "the start of all pods"}
	for _, s := range servers {
		q.urls = append(q.urls, s.url)
	}
	var owners map[string][]int
	err := f.views.ask(q, steps)
	for err == nil && len(f.views.asked) > 0 {
		_, owners, err = f.views.answer()
	}
	if err != nil {
		f.Fatal(err)
	}
	return owners
}

// firstPlan is the fleet as it is: its counts, and each cluster on the replica that owns it. What nobody owns may be
// anywhere.
func (f *fleet) firstPlan() plan.Plan {
	p := plan.Plan{
		Revision: 1, Mode: plan.Hold, PlannerUser: "system:serviceaccount:argocd:ballast-planner", Target: target(),
		MaxReplicas: rapid.IntRange(mostReplicas, 16).Draw(f.T, "maxReplicas"), Replicas: f.replicas, ControllerReplicas: f.env,
		Clusters: map[string]plan.Row{},
	}
	reach := f.replicas
	if f.env > 1 {
		reach = min(f.replicas, f.env)
	}
	for _, name := range f.names() {
		s := f.secrets[name]
		at := s.stands().owner
		if at == nobody {
			at = rapid.IntRange(0, reach-1).Draw(f.T, "adopted by")
		}
		p.Clusters[name] = plan.Row{Replica: at, Server: plan.ServerHash(s.stamp.Server), Load: f.drawLoad()}
	}
	return p
}

func (f *fleet) drawLoad() string {
	return rapid.SampledFrom([]string{"", "0.5", "1.2", "7"}).Draw(f.T, "load")
}

// adopt writes every Secret's owner into it, one at a time, while the pods see what was written before. Then all have seen
// all: the environment is changed a cycle later at the earliest.
func (f *fleet) adopt(p plan.Plan) {
	v := plan.NewView(p, nil)
	steps := diff.Between(v, f.seen(), diff.Options{}).Steps
	for _, step := range rapid.Permutation(steps).Draw(f.T, "stamps") {
		stamp, ok := step.(diff.PatchShard)
		if !ok {
			f.Fatalf("taking the fleet over writes %s", step)
		}
		f.write(stamp.Secret, stamp.Shard)
		f.figures.stamps++
		f.ask(stamp.String())
		f.meanwhile(0, 3)
	}
	for f.deliverAny() {
	}
	if missing := readiness.Missing(p, f.seen()); len(missing) > 0 {
		f.Fatalf("an adopted fleet lacks %q", missing)
	}
}
