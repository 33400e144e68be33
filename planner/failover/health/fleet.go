package health

import "ballast/planner/observed"

// Fleet is what is seen of the application-controllers. Known is false where the pods could not be listed. Rolling says
// that the workload's pods are being replaced: its status speaks of an older spec, or not every pod has the newest
// template.
type Fleet struct {
	Known    bool
	Replicas int  // that should run
	Dynamic  bool // a Deployment's replicas are claimed slots
	Rolling  bool
	Pods     []observed.Pod
}

// pods is each replica's pod: of several the one that works. A replica without one has a pod without a name.
func (f Fleet) pods() []observed.Pod {
	found := make([]observed.Pod, f.Replicas)
	for _, p := range f.Pods {
		if p.Replica < 0 || p.Replica >= f.Replicas {
			continue
		}
		if old := found[p.Replica]; old.Name == "" || f.better(p, old) {
			found[p.Replica] = p
		}
	}
	return found
}

func (f Fleet) better(a, b observed.Pod) bool {
	if f.up(a) != f.up(b) {
		return f.up(a)
	}
	if a.Ready != b.Ready {
		return a.Ready
	}
	return a.Name < b.Name
}

// up reports whether the pod does its replica's work: the holder of a slot does, ready or not.
func (f Fleet) up(p observed.Pod) bool {
	if f.Dynamic {
		return p.Claimed
	}
	return p.Ready
}
