package transitions

import (
	"maps"
	"slices"

	"ballast/planner/observed"
)

// resyncActs is how many acts pass before a new owner that nobody nudged looks at its clusters.
const resyncActs = 12

// apps is what the clusters' Applications bring about: who has a cluster connected.
type apps struct {
	connected map[string]int  // by Secret: the replica that has the cluster connected
	waits     map[string]int  // by Secret: acts since it came or moved
	nudged    map[string]int  // by Secret: the replica that is to look at the cluster
	dead      map[string]bool // clusters that nobody can connect
	idle      map[string]bool // servers without an Application
	away      bool            // the pods' metrics cannot be read
}

func newApps() apps {
	return apps{connected: map[string]int{}, waits: map[string]int{}, nudged: map[string]int{}, dead: map[string]bool{}, idle: map[string]bool{}}
}

func (a apps) moved(name string) { a.waits[name] = 0 }

// lose: a process that ends has nothing connected.
func (a apps) lose(replica int) {
	maps.DeleteFunc(a.connected, func(_ string, at int) bool { return at == replica })
}

// pass lets an act pass.
func (a apps) pass() {
	for name := range a.waits {
		a.waits[name]++
	}
}

// connect lets the owners of clusters connect them: one that starts all its clusters, one that runs a cluster that came to
// it at the next resync, or when it was nudged and knew by then that the cluster is its own.
func (f *fleet) connect() {
	for _, name := range f.names() {
		owners := f.owners[f.secrets[name].stamp.Server]
		nudged, any := f.apps.nudged[name]
		due := f.apps.waits[name] >= resyncActs || any && slices.Equal(owners, []int{nudged})
		if due && len(owners) == 1 && f.pods[owners[0]].ready && !f.apps.dead[name] {
			f.apps.connected[name] = owners[0]
		}
	}
	clear(f.apps.nudged)
}

// seen is what ballast sees: the spec and the status, the Secrets as they stand, and the owners by the pods' own account,
// which is Argo CD's package's.
func (f *fleet) seen() observed.State {
	f.answers()
	f.connect()
	w := &observed.Workload{Replicas: f.replicas, Current: len(f.pods), ObservedCurrent: f.observed == f.generation}
	if f.env > 0 {
		env := f.env
		w.ControllerReplicas = &env
	}
	s := observed.State{Workload: w, InCluster: observed.InCluster{Algorithm: f.algorithm, Implicit: f.inCluster && f.secrets["in-cluster"] == nil}}
	for i, p := range f.pods {
		if p.ready {
			w.Ready++
		}
		if p.generation == f.generation {
			w.Updated++
		}
		s.Pods = append(s.Pods, observed.Pod{Replica: i, Ready: p.ready, Claimed: true, Restarts: p.restarts, RestartedAt: p.restartedAt,
			OOMKilled: p.killed, Memory: p.memory, MemoryLimit: 100})
	}
	for _, name := range f.names() {
		s.Secrets = append(s.Secrets, f.secrets[name].stamp)
	}
	if f.apps.away {
		return s
	}
	s.OwnersKnown, s.Owned = true, map[string]observed.Owned{}
	for _, name := range f.names() {
		s.Owned[name] = f.owned(name)
	}
	return s
}

func (f *fleet) owned(name string) observed.Owned {
	server := f.secrets[name].stamp.Server
	owned := observed.Owned{Idle: f.apps.idle[server]}
	if owned.Idle {
		return owned
	}
	owned.Owners = slices.Clone(f.owners[server])
	if at, any := f.apps.connected[name]; any && slices.Contains(owned.Owners, at) {
		owned.Live = []int{at}
	}
	return owned
}
