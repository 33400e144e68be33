package ownership

import (
	"maps"
	"slices"
	"time"

	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
)

// Applications is how many Applications Argo CD would work on for each server URL, normalised: of the namespaces that
// it watches, without those that are annotated to be skipped, whether their destination is given by server or by name.
// nil means that nobody could read them.
type Applications map[string]int

// Unknown is a number of Applications that nobody could read.
const Unknown = -1

// Observation is one look at the fleet: who shows what, and who said nothing.
type Observation struct {
	Pods     []PodObservation              `json:"pods"`
	Asked    bool                          `json:"asked"` // every ready pod answered, and there is one
	Clusters map[string]ClusterObservation `json:"clusters"`
	Counted  time.Time                     `json:"counted,omitzero"` // when the Applications were listed; zero: just now

	// Setting stands for the namespaces whose Applications were listed; empty: nobody said it.
	Setting string `json:"setting,omitempty"`
}

// Misses reports whether a cluster has Applications, by their number, and nobody is responsible for any of them.
func (s Observation) Misses() bool {
	for _, c := range s.Clusters {
		if c.Apps > 0 && len(c.Holders) == 0 && !c.Skip {
			return true
		}
	}
	return false
}

// Idle reports whether a cluster is known to have no Application, by their number and by all that is shown of its
// owners, so that nobody waits for one.
func (s Observation) Idle(name string) bool {
	c, listed := s.Clusters[name]
	return listed && c.Apps == 0 && len(c.Owners) == 0
}

// Quoted reports whether Prometheus alone says what a replica has.
func (s Observation) Quoted(replica int) bool {
	return slices.ContainsFunc(s.Pods, func(p PodObservation) bool { return p.Replica == replica && p.Quoted })
}

// PodObservation is a pod in an Observation.
type PodObservation struct {
	Name      string    `json:"name"`
	Replica   int       `json:"replica"`
	Ready     bool      `json:"ready,omitempty"`
	Running   bool      `json:"running,omitempty"`
	Answered  bool      `json:"answered,omitempty"`
	SampledAt time.Time `json:"sampledAt,omitzero"`
	Unplaced  int       `json:"unplaced,omitempty"` // Applications that it shows with an empty dest_server
	Quoted    bool      `json:"quoted,omitempty"`   // Prometheus said it in its place
	Started   time.Time `json:"started,omitzero"`   // of the container that runs
}

// ByName is how many Applications more than the others' pods show with an empty dest_server: one that Argo CD cannot
// place is shown by all of them alike, one that names its cluster, by Argo CD 3.0.0 to 3.0.5, by its owner alone.
func (s Observation) ByName() (more int) {
	least, answered := -1, 0
	for _, p := range s.Pods {
		if p.Ready && p.Answered {
			if answered++; least < 0 || p.Unplaced < least {
				least = p.Unplaced
			}
		}
	}
	for _, p := range s.Pods {
		if p.Ready && p.Answered && answered > 1 {
			more += p.Unplaced - least
		}
	}
	return more
}

// ByNameAfter is ByName, but where one pod alone answers, of which none can tell: there it is what was known before,
// and no more than that pod shows.
func (s Observation) ByNameAfter(before int) int {
	answered, shown := 0, 0
	for _, p := range s.Pods {
		if p.Ready && p.Answered {
			answered, shown = answered+1, p.Unplaced
		}
	}
	if answered == 1 {
		return min(before, shown)
	}
	return s.ByName()
}

// ClusterObservation is a cluster in an Observation. Holders indexes the pods that are responsible for one of its
// Applications; Owners are their replicas, Live those of them that have read the cluster and are connected to it,
// Cached all replicas that show its gauges; each sorted, none twice. Readers indexes the pods that have read it and are
// connected to it, and show none of its Applications.
type ClusterObservation struct {
	Server  string `json:"server"`
	Skip    bool   `json:"skip,omitempty"` // Argo CD was told to leave the cluster alone
	Owners  []int  `json:"owners,omitempty"`
	Live    []int  `json:"live,omitempty"`
	Cached  []int  `json:"cached,omitempty"`
	Holders []int  `json:"holders,omitempty"`
	Readers []int  `json:"readers,omitempty"`
	Apps    int    `json:"apps"`             // Applications that there are, or Unknown
	ByName  bool   `json:"byName,omitempty"` // it has Applications, and each gives its name, none its server
}

// ManyByName is more than the pods' pages, read one after the other, differ by in Applications that come and go.
const ManyByName = 5

// Hides reports whether two looks in a row, of which before is what the first one counted, show that Argo CD leaves
// destinations empty.
func (s Observation) Hides(before int) bool { return min(before, s.ByNameAfter(before)) >= ManyByName }

// WithReaders is the observation where Argo CD leaves destinations empty: of a cluster that it shows nobody for, the
// only pod that keeps a cache of it, a live one, is the owner. A pod drops the cache of a cluster that is its own no
// more, and shows it for 30 s at most; the next one has none before it works on it.
func (s Observation) WithReaders() Observation {
	s.Clusters = maps.Clone(s.Clusters)
	for name, c := range s.Clusters {
		if c.Unshown() && len(c.Readers) == 1 && len(c.Cached) == 1 {
			c.Holders, c.Owners, c.Live = c.Readers, c.Cached, c.Cached
			s.Clusters[name] = c
		}
	}
	return s
}

// Unshown reports whether Argo CD 3.0.0 to 3.0.5 would show nobody as a cluster's owner though it may have one: all its
// Applications give its name, which those versions show with an empty dest_server, and a pod that answers keeps its
// cache. One that no pod keeps a cache of has no owner in any version.
func (c ClusterObservation) Unshown() bool {
	return c.ByName && len(c.Holders) == 0 && len(c.Cached) > 0
}

// TellByName notes which clusters have Applications of which none gives the server; byServer is the number of those
// that do, and where that is Unknown or not said, nothing is noted.
func (s Observation) TellByName(byServer Applications) {
	for name, c := range s.Clusters {
		n, said := byServer[c.Server]
		if c.ByName = said && n == 0 && c.Apps > 0; c.ByName {
			s.Clusters[name] = c
		}
	}
}

// Join puts the reports beside the fleet, by cluster Secret name. Clusters with one server URL cannot be told apart,
// and all have what any of them has.
func Join(reports []scrape.PodReport, fleet discover.Fleet, apps Applications) Observation {
	s := Observation{Pods: make([]PodObservation, len(reports)),
		Clusters: make(map[string]ClusterObservation, len(fleet.Clusters))}
	ready, answered := 0, 0
	for i, r := range reports {
		s.Pods[i] = PodObservation{r.Name, r.Replica, r.Ready, r.Running, r.Answered(), r.SampledAt, r.Unplaced,
			r.Quoted, r.Started}
		if r.Ready {
			ready++
			if r.Answered() {
				answered++
			}
		}
	}
	s.Asked = ready > 0 && answered == ready
	for _, unit := range fleet.Units {
		seen := joinServer(reports, plan.NormalizeServer(unit.Server))
		seen.Apps = Unknown
		if apps != nil {
			seen.Apps = apps[seen.Server]
		}
		for _, i := range unit.Clusters {
			c := seen
			c.Skip = fleet.Clusters[i].Skip
			s.Clusters[fleet.Clusters[i].Shard.ID] = c
		}
	}
	return s
}

func joinServer(reports []scrape.PodReport, server string) ClusterObservation {
	c := ClusterObservation{Server: server}
	for i, r := range reports {
		shown, found := r.Servers[server]
		if !found || !r.Answered() {
			continue
		}
		if shown.Cached {
			c.Cached = insert(c.Cached, r.Replica)
		}
		if shown.Apps == 0 {
			if shown.Live() {
				c.Readers = append(c.Readers, i)
			}
			continue
		}
		c.Holders = append(c.Holders, i)
		c.Owners = insert(c.Owners, r.Replica)
		if shown.Live() {
			c.Live = insert(c.Live, r.Replica)
		}
	}
	return c
}

// insert keeps the numbers sorted and each once.
func insert(numbers []int, n int) []int {
	at, found := slices.BinarySearch(numbers, n)
	if found {
		return numbers
	}
	return slices.Insert(numbers, at, n)
}
