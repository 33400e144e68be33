package fleet

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// InClusterServer is the server URL of the cluster that Argo CD runs in, which exists without a Secret.
const InClusterServer = "https://kubernetes.default.svc"

// Options make a fleet. The same options make the same fleet.
type Options struct {
	Seed      uint64
	Clusters  int    // cluster Secrets; default 24
	Namespace string // Argo CD's; default argocd
	Replicas  int    // application-controller replicas to begin with; default 3
}

// Fleet is Argo CD's destination clusters with the work they make.
type Fleet struct {
	Namespace string
	Replicas  int
	Clusters  []Cluster // by name; without the in-cluster
	InCluster Cluster

	seed     uint64
	byServer map[string]Cluster
}

// Cluster is a destination cluster. Server is as its Secret spells it.
type Cluster struct {
	Name   string // of the Secret, and data.name
	Server string
	Work   Work
}

// Work is what a cluster makes Argo CD do. The rates are whole numbers a minute, so that a history with a step of whole
// minutes has exactly these rates.
type Work struct {
	Objects             int // in the cluster cache
	EventsPerMinute     int
	ReconcilesPerMinute int
	Apps                int
}

// Total adds work up.
func (w Work) Total(more Work) Work {
	return Work{
		w.Objects + more.Objects, w.EventsPerMinute + more.EventsPerMinute,
		w.ReconcilesPerMinute + more.ReconcilesPerMinute, w.Apps + more.Apps,
	}
}

// What a cluster of weight 1 makes; the median cluster has weight 1.
const (
	objectsPerWeight    = 1500
	eventsPerWeight     = 240
	reconcilesPerWeight = 60
	appsPerWeight       = 6

	// giantShare is the giant's part of the whole fleet. No partition can give a replica less than its heaviest
	// cluster: that is the capacity, and four of it hold the fleet with 4 % to spare.
	giantShare = 0.26
	// inClusterWeight is light: most installations run little beside Argo CD itself.
	inClusterWeight = 0.3
	// spread is how far one kind of work may stray from a cluster's weight, up or down: what counts objects and what
	// counts events agree, but not exactly.
	spread = 1.2
)

// Giant and Idle are two clusters of every fleet: the heaviest one, and one that has no Application, of which Argo CD
// therefore shows no metrics. Slashed spells its server with a trailing slash, which Argo CD's metrics never have.
const (
	Giant   = "prod-us-1"
	Idle    = "stage-ap-1"
	Slashed = "dev-eu-1"
)

// New makes a fleet: the clusters' weights are lognormal with sigma 1, but for the giant.
func New(o Options) *Fleet {
	f := &Fleet{
		Namespace: cmp.Or(o.Namespace, "argocd"), Replicas: cmp.Or(o.Replicas, 3),
		seed: o.Seed, byServer: map[string]Cluster{},
	}
	names := clusterNames(cmp.Or(o.Clusters, 24))
	weights := make([]float64, len(names))
	rest := 0.0
	for i, name := range names {
		weights[i] = f.weight(name)
		if name != Giant && name != Idle {
			rest += weights[i]
		}
	}
	for i, name := range names {
		if name == Giant {
			weights[i] = rest * giantShare / (1 - giantShare)
		}
		f.Clusters = append(f.Clusters, f.cluster(name, weights[i]))
	}
	slices.SortFunc(f.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	f.InCluster = Cluster{Name: "in-cluster", Server: InClusterServer, Work: f.work("in-cluster", inClusterWeight)}
	for _, c := range append(slices.Clone(f.Clusters), f.InCluster) {
		f.byServer[trim(c.Server)] = c
	}
	return f
}

// Another is a cluster that is not yet in the fleet, to be added to it; the same name is the same cluster.
func (f *Fleet) Another(name string) Cluster { return f.cluster(name, f.weight(name)) }

// Names are the cluster Secrets' names, sorted.
func (f *Fleet) Names() []string {
	names := make([]string, len(f.Clusters))
	for i, c := range f.Clusters {
		names[i] = c.Name
	}
	return names
}

// Of is the cluster behind a server URL; for one that the fleet does not have, what Another would have made of it.
func (f *Fleet) Of(server string) Cluster {
	if c, ok := f.byServer[trim(server)]; ok {
		return c
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(trim(server), "https://"), ".")
	c := f.Another(host)
	c.Server = server
	return c
}

// cluster makes a cluster whose work depends on the seed, its name and weight alone, never on its neighbours.
func (f *Fleet) cluster(name string, weight float64) Cluster {
	c := Cluster{Name: name, Server: "https://" + name + ".clusters.example.com:6443", Work: f.work(name, weight)}
	switch name {
	case Idle:
		c.Work = Work{}
	case Slashed:
		c.Server += "/"
	}
	return c
}

func (f *Fleet) work(name string, weight float64) Work {
	r := f.random(name, "work")
	some := func(perWeight float64) int {
		stray := math.Pow(spread, 2*r.Float64()-1)
		return max(1, int(math.Round(weight*perWeight*stray)))
	}
	return Work{
		Objects: some(objectsPerWeight), EventsPerMinute: some(eventsPerWeight),
		ReconcilesPerMinute: some(reconcilesPerWeight), Apps: some(appsPerWeight),
	}
}

func (f *Fleet) weight(name string) float64 { return math.Exp(f.random(name, "weight").NormFloat64()) }

// random is a stream of its own for each name and purpose: a cluster more changes nothing about the others.
func (f *Fleet) random(name, purpose string) *rand.Rand {
	return rand.New(rand.NewPCG(f.seed, uint64(legacyHash(name+"\x00"+purpose))))
}

// clusterNames are names as people give them: prod-eu-1, prod-us-1, ... With the first twelve every environment has one
// cluster in every region.
func clusterNames(n int) []string {
	names := make([]string, 0, n)
	for k := 1; ; k++ {
		for _, environment := range []string{"prod", "stage", "dev", "edge"} {
			for _, region := range []string{"eu", "us", "ap"} {
				if len(names) == n {
					return names
				}
				names = append(names, fmt.Sprintf("%s-%s-%d", environment, region, k))
			}
		}
	}
}

func trim(server string) string { return strings.TrimRight(server, "/") }

// Total is the work of the whole fleet, the in-cluster's with it.
func (f *Fleet) Total() Work {
	total := f.InCluster.Work
	for _, c := range f.Clusters {
		total = total.Total(c.Work)
	}
	return total
}

// Share is the part of that much work, each kind counted by the weight it has among ballast's default metrics.
func (w Work) Share(of Work) float64 {
	part := func(a, b int) float64 { return float64(a) / float64(max(b, 1)) }
	return (3*part(w.Objects, of.Objects) + 2*part(w.EventsPerMinute, of.EventsPerMinute) +
		2*part(w.ReconcilesPerMinute, of.ReconcilesPerMinute) + part(w.Apps, of.Apps)) / 8
}
