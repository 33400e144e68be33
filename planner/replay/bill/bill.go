// Package bill counts what sizes cost over a replayed time: pods resized and restarted, memory and cores reserved,
// beside the same size for all, and beside what CPVPS and HVPA would have made of the same rules.
package bill

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/config"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Bill is what sizes came to: ours first, then the same size for all, then the peers.
type Bill struct {
	Apply   config.SizeApply `json:"apply"`
	Ways    []Way            `json:"ways"`
	Blocked []Blocked        `json:"blocked,omitempty"`
}

// Way is one way to size replicas, as many as ballast makes; HVPA's rules make a number of their own.
type Way struct {
	Name      string   `json:"name"`
	Replicas  Replicas `json:"replicas"`
	Changes   int      `json:"changes"`   // of a replica's size, while it ran
	Resizes   int      `json:"resizes"`   // pods that were resized in place
	Restarts  int      `json:"restarts"`  // pods that restarted for their size
	GiBHours  float64  `json:"gibHours"`  // of memory that was requested
	CoreHours float64  `json:"coreHours"` // of cpu
	Largest   Amount   `json:"largest"`   // that one replica requested
}

// Replicas is how many there were at the end, and the least and the most.
type Replicas struct {
	Last  int `json:"last"`
	Least int `json:"least"`
	Most  int `json:"most"`
}

// Amount is a request of each resource, as Kubernetes writes it; empty: none.
type Amount struct {
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

// Blocked is how many cycles had a change that waited, by its reason.
type Blocked struct {
	Reason string `json:"reason"`
	Cycles int    `json:"cycles"`
}

// The names of the ways.
const (
	Ours  = "ballast"
	Same  = "the same for all"
	CPVPS = "CPVPS's rules"
	HVPA  = "HVPA's rules"
)

// Tally counts while a replay goes on. The zero value has counted nothing.
type Tally struct {
	apply    config.SizeApply
	ours     account
	cpvps    account
	hvpa     account
	theirs   hvpa
	one      request // the size that CPVPS's rules have in force
	was      []request
	replicas float64 // hours of them
	blocked  map[string]int
}

// Count takes in a cycle: what sizes are about to hold, of so many replicas and for so long. Without sizes it counts
// nothing.
func (t *Tally) Count(now time.Time, s *resize.Sizing, next plan.Plan, replicas int, lasts time.Duration) {
	if s == nil || replicas == 0 {
		return
	}
	t.apply = s.Apply
	hours := lasts.Hours()
	t.replicas += float64(replicas) * hours
	t.ours.counts(replicas)
	t.cpvps.counts(replicas)
	sizes := held(next, replicas)
	changed := differing(t.was, sizes)
	if s.Apply == config.Template {
		t.ours.restarts += changed
	} else {
		t.ours.resizes += changed
	}
	t.ours.changes += changed
	for _, r := range sizes {
		t.ours.reserve(r, 1, hours)
	}
	t.was = sizes
	raw, delayed := wanted(s)
	raw.replicas = replicas
	t.cpvpsTakes(delayed, replicas, hours)
	if restarts := t.theirs.takes(now, raw); restarts > 0 {
		t.hvpa.restart(restarts)
	}
	if t.theirs.stands != nil {
		t.hvpa.counts(t.theirs.replicas)
	}
	t.hvpa.reserve(t.theirs.stands, t.theirs.replicas, hours)
	t.wait(s.Blocked)
}

// cpvpsTakes is its loop: whatever the rules say is in the template at once, and every pod restarts for it. A resource
// of which an input is not known stays as it is there.
func (t *Tally) cpvpsTakes(wanted request, replicas int, hours float64) {
	next := request{}
	maps.Copy(next, t.one)
	maps.Copy(next, wanted)
	if !maps.Equal(next, t.one) {
		if t.one != nil {
			t.cpvps.restart(replicas)
		}
		t.one = next
	}
	t.cpvps.reserve(t.one, replicas, hours)
}

func (t *Tally) wait(blocked []resize.Blocked) {
	if t.blocked == nil {
		t.blocked = map[string]int{}
	}
	seen := map[string]bool{}
	for _, b := range blocked {
		if reason := string(b.Reason); !seen[reason] {
			seen[reason] = true
			t.blocked[reason]++
		}
	}
}

// Bill is what was counted; nil where no sizes were decided.
func (t *Tally) Bill() *Bill {
	if t.replicas == 0 {
		return nil
	}
	same := account{replicas: t.ours.replicas}
	same.reserve(t.ours.largest, 1, t.replicas)
	b := &Bill{Apply: t.apply, Ways: []Way{t.ours.way(Ours), same.way(Same), t.cpvps.way(CPVPS), t.hvpa.way(HVPA)}}
	for _, reason := range slices.Sorted(maps.Keys(t.blocked)) {
		b.Blocked = append(b.Blocked, Blocked{reason, t.blocked[reason]})
	}
	return b
}

// Reserved is the memory that our sizes request now, in GiB.
func (t *Tally) Reserved() float64 {
	sum := int64(0)
	for _, r := range t.was {
		sum += r[size.Memory]
	}
	return rounded(float64(sum) / 1000 / (1 << 30))
}

// account is what one way has come to.
type account struct {
	replicas                   Replicas
	changes, resizes, restarts int
	gib, cores                 float64 // hours of them
	largest                    request
}

func (a *account) counts(replicas int) {
	if a.replicas.Last == 0 {
		a.replicas.Least = replicas
	}
	a.replicas = Replicas{Last: replicas, Least: min(a.replicas.Least, replicas), Most: max(a.replicas.Most, replicas)}
}

func (a *account) restart(replicas int) {
	a.changes++
	a.restarts += replicas
}

func (a *account) reserve(r request, replicas int, hours float64) {
	a.gib += float64(r[size.Memory]) / 1000 / (1 << 30) * float64(replicas) * hours
	a.cores += float64(r[size.CPU]) / 1000 * float64(replicas) * hours
	for name, milli := range r {
		if a.largest == nil {
			a.largest = request{}
		}
		a.largest[name] = max(a.largest[name], milli)
	}
}

func (a account) way(name string) Way {
	w := Way{Name: name, Replicas: a.replicas, Changes: a.changes, Resizes: a.resizes, Restarts: a.restarts,
		GiBHours: rounded(a.gib), CoreHours: rounded(a.cores)}
	if milli, named := a.largest[size.CPU]; named {
		w.Largest.CPU = resource.NewMilliQuantity(milli, resource.DecimalSI).String()
	}
	if milli, named := a.largest[size.Memory]; named {
		bytes, format := (milli+999)/1000, resource.BinarySI
		if bytes%1024 != 0 {
			format = resource.DecimalSI
		}
		w.Largest.Memory = resource.NewQuantity(bytes, format).String()
	}
	return w
}

// rounded keeps two digits behind the point.
func rounded(v float64) float64 { return math.Round(v*100) / 100 }

// wanted is what the rules of requests compute, and the one size that fits the largest replica as their own delays
// leave it. A resource of which an input is not known is in neither.
func wanted(s *resize.Sizing) (raw demand, delayed request) {
	type sums struct{ computed, value request }
	of, fullest := map[int]sums{}, request{}
	unknown := map[string]bool{}
	for _, row := range s.Rules {
		name, counts := requests(row.Rule)
		if !counts {
			continue
		}
		computed, value, known := amounts(row)
		if !known {
			unknown[name] = true
			continue
		}
		if of[row.Replica].computed == nil {
			of[row.Replica] = sums{request{}, request{}}
		}
		of[row.Replica].value[name] += value
		if row.Fullest {
			fullest[name] += computed
			continue
		}
		of[row.Replica].computed[name] += computed
	}
	all := of[size.All]
	raw, delayed = demand{each: request{}, fullest: request{}}, request{}
	for replica, sum := range of {
		for name := range sum.value {
			if unknown[name] {
				continue
			}
			if replica == size.All {
				raw.each[name], raw.fullest[name] = sum.computed[name], max(raw.fullest[name], fullest[name])
				delayed[name] = max(delayed[name], sum.value[name])
				continue
			}
			raw.fullest[name] = max(raw.fullest[name], sum.computed[name])
			delayed[name] = max(delayed[name], sum.value[name]+all.value[name])
		}
	}
	return raw, delayed
}

// requests is the resource of a rule of requests, by its name for people.
func requests(rule string) (resource string, is bool) {
	list, rest, _ := strings.Cut(rule, "/")
	resource, _, _ = strings.Cut(rest, "/")
	return resource, list == string(size.Requests)
}

func amounts(row resize.SizeRow) (computed, value int64, known bool) {
	c, err := size.ParseQuantity(row.Computed)
	v, also := size.ParseQuantity(row.Value)
	return c.MilliValue(), v.MilliValue(), row.Known && err == nil && also == nil
}
