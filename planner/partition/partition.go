// Package partition decides how many replicas there are and which clusters each of them owns.
package partition

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ballast/planner/plan"
)

// Free is the Replica of an item that no rule fixes: the partition chooses one. Of an item that is on none,
// plan.NoReplica says so.
const Free = plan.NoReplica

// Item is a unit of clusters that must stay together, for Secrets with one server URL are one cluster to Argo CD.
// Clusters is how many Secrets it has. Replica fixes it, for a pin or an implicit in-cluster (which Argo CD puts on
// shard 0); Free leaves it to the partition. IDs are unique, for they break ties.
//
// Memory is what it takes of a replica's memory, where Bounds.Memory says what one has.
type Item struct {
	ID       string
	Load     plan.Load
	Clusters int
	Replica  int
	Memory   plan.Bytes
}

// Bounds is what a partition must keep to. MaxReplicas wins over Fixed, Fixed over MinReplicas. Held are replicas that
// are needed whatever is on them, as those of fixed items are.
type Bounds struct {
	MinReplicas int
	Held        int
	MaxReplicas int
	Fixed       int       // that many replicas: balance only; 0 = as many as the load asks for
	MaxClusters int       // of one replica; 0 = no cap
	Capacity    plan.Load // the load a replica may carry; 0 = that of the heaviest item

	Memory plan.Bytes // that the items of a replica may take together; 0 = nobody knows, and nothing is bounded by it. LPT knows no memory
}

// Partition is the result: Of is each item's replica, in the order of the items; Loads and Clusters are by replica.
type Partition struct {
	Replicas int
	Of       []int
	Loads    []plan.Load
	Clusters []int
	Memory   []plan.Bytes // nil where nothing is bounded by it
	Lost     []Lost
}

// Makespan is the load of the most loaded replica.
func (p Partition) Makespan() plan.Load {
	if len(p.Loads) == 0 {
		return 0
	}
	return slices.Max(p.Loads)
}

// Rule is something a partition keeps to, of a closed set.
type Rule string

// The rules; of two that contradict each other the one further up wins.
const (
	Pin           Rule = "Pin"           // a fixed item is on its replica
	SameServer    Rule = "SameServer"    // Secrets with one server URL are on one replica
	Together      Rule = "Together"      // clusters of a group are on one replica
	Apart         Rule = "Apart"         // items of a group are on different replicas
	MaxReplicas   Rule = "MaxReplicas"   // never more replicas
	FixedReplicas Rule = "FixedReplicas" // that many replicas
	MinReplicas   Rule = "MinReplicas"   // never fewer replicas
	Closed        Rule = "Closed"        // a closed replica receives nothing
	Memory        Rule = "Memory"        // never more memory than a replica has
	MaxClusters   Rule = "MaxClusters"   // never more clusters on one replica
	Undivided     Rule = "Undivided"     // an item is on one replica
)

// Lost says that one rule had to give way to another. Item and Replica say where; Item is empty where no item is the
// cause, and for MaxClusters it is the item that took the replica above the cap.
type Lost struct {
	What    Rule
	To      Rule
	Item    string
	Replica int
}

// String is a sentence for events and logs.
func (l Lost) String() string {
	switch {
	case l.What == MaxClusters:
		return fmt.Sprintf("replica %d has more clusters than maxClustersPerReplica since %q joined it: %s goes first",
			l.Replica, l.Item, l.To)
	case l.What == Memory && l.To == Undivided:
		return fmt.Sprintf("%q takes more memory than a replica has, and Argo CD cannot split a cluster: it is on replica %d", l.Item, l.Replica)
	case l.What == Memory:
		return fmt.Sprintf("replica %d has more memory in use than it may since %q joined it: %s goes first", l.Replica,
			l.Item, l.To)
	case l.What == Closed:
		return fmt.Sprintf("replica %d is closed, and %q goes there: %s goes first", l.Replica, l.Item, l.To)
	case l.To == Pin:
		return fmt.Sprintf("there are more replicas than the fixed number, for %q is pinned to replica %d", l.Item,
			l.Replica)
	default:
		return fmt.Sprintf("%s gives way to %s", l.What, l.To)
	}
}

// check refuses what has no sensible partition, all of it at once, and returns the heaviest load.
func check(items []Item, b Bounds) (heaviest plan.Load, err error) {
	errs := b.check()
	var total plan.Load
	var memory plan.Bytes
	for i := range items {
		it := &items[i]
		if err := it.check(b.MaxReplicas); err != nil {
			errs = append(errs, err)
			continue
		}
		heaviest = max(heaviest, it.Load)
		if total, err = plan.SumLoads(total, it.Load); err != nil {
			errs = append(errs, fmt.Errorf("partitioning %q: %w", it.ID, err))
			break
		}
		if memory = memory.Plus(it.Memory); b.Memory > 0 && memory == math.MaxInt64 {
			errs = append(errs, fmt.Errorf("partitioning %q: with it the memory of all is beyond what can be added up",
				it.ID))
			break
		}
	}
	return heaviest, errors.Join(errs...)
}

func (it *Item) check(maxReplicas int) error {
	switch {
	case it.Load < 0:
		return fmt.Errorf("partitioning %q: its load is %s, and a load is 0 or more", it.ID, it.Load)
	case it.Memory < 0:
		return fmt.Errorf("partitioning %q: it takes %d bytes of memory, and that is 0 or more", it.ID, it.Memory)
	case it.Clusters < 1 || it.Clusters > math.MaxInt32:
		return fmt.Errorf("partitioning %q: it stands for %d clusters, and an item has at least one", it.ID,
			it.Clusters)
	case it.Replica < Free:
		return fmt.Errorf("partitioning %q: it is pinned to replica %d, and replicas count from 0", it.ID, it.Replica)
	case it.Replica >= maxReplicas && maxReplicas > 0:
		return fmt.Errorf("partitioning %q: it is pinned to replica %d, and with maxReplicas %d the last one is %d: pin it lower or raise maxReplicas",
			it.ID, it.Replica, maxReplicas, maxReplicas-1)
	}
	return nil
}

func (b Bounds) check() (errs []error) {
	if b.MaxReplicas < 1 {
		errs = append(errs, fmt.Errorf("partitioning over at most %d replicas: maxReplicas is 1 or more",
			b.MaxReplicas))
	}
	if b.MinReplicas < 0 || b.MinReplicas > max(b.MaxReplicas, 1) {
		errs = append(errs, fmt.Errorf("partitioning over at least %d replicas: minReplicas is between 0 and maxReplicas (%d)", b.MinReplicas, b.MaxReplicas))
	}
	if b.Fixed < 0 {
		errs = append(errs, fmt.Errorf("partitioning over exactly %d replicas: replicas is 1 or more, or 0 for as many as the load asks for", b.Fixed))
	}
	if b.MaxClusters < 0 {
		errs = append(errs, fmt.Errorf("partitioning with at most %d clusters a replica: maxClustersPerReplica is 0 (no cap) or more", b.MaxClusters))
	}
	if b.Capacity < 0 {
		errs = append(errs, fmt.Errorf("partitioning with a capacity of %s: capacity is 0 (the heaviest cluster's load) or more", b.Capacity))
	}
	if b.Memory < 0 {
		errs = append(errs, fmt.Errorf("partitioning with %d bytes of memory a replica: that is 0 (nobody knows) or more", b.Memory))
	}
	return errs
}
