// Package bars_test holds planning to its bars, side by side with the seed's rule (LPT) and Argo CD's own algorithms.
package bars_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"ballast/planner/discover"
	"ballast/planner/partition"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// TestBars prints one table of every bar. A bar that is met is asserted; where one is not, the table says by how much, and the
// test holds what is. BALLAST_BARS=all runs every instance.
func TestBars(t *testing.T) {
	rows := &table{}
	t.Run("replicas and balance", func(t *testing.T) { replicasAndBalance(t, rows) })
	t.Run("bin packing", func(t *testing.T) { binPacking(t, rows) })
	t.Run("makespan", func(t *testing.T) { makespan(t, rows) })
	t.Run("moves under jitter", func(t *testing.T) { movesUnderJitter(t, rows) })
	t.Run("moves over the proven least", func(t *testing.T) { movesAgainstTheLeast(t, rows) })
	t.Run("a day", func(t *testing.T) { aDay(t, rows) })
	t.Run("peers", func(t *testing.T) { peers(t, rows) })
	t.Run("bytes", func(t *testing.T) { bytesOfAPlan(t, rows) })
	t.Run("allocations", func(t *testing.T) { allocations(t, rows) })
	t.Logf("the bars:\n%s", rows)
}

// every is which instances are run: all with BALLAST_BARS=all, else each of so many.
func every(n int) int {
	if os.Getenv("BALLAST_BARS") == "all" {
		return 1
	}
	return n
}

// columns are ballast, LPT and Argo CD's three.
const columns = 5

var algorithms = []sharding.Algorithm{sharding.Legacy, sharding.RoundRobin, sharding.ConsistentHashing}

type row struct {
	what, bar string
	cells     [columns]string
	met       bool
}

type table struct{ rows []row }

func (t *table) add(r row) { t.rows = append(t.rows, r) }

func (t *table) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tbar\tballast\tLPT\tlegacy\tround-robin\tconsistent-hashing\t")
	for _, r := range t.rows {
		verdict := "met"
		if !r.met {
			verdict = "NOT MET"
		}
		for k := range r.cells {
			if r.cells[k] == "" {
				r.cells[k] = "-"
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.bar, strings.Join(r.cells[:], "\t"), verdict)
	}
	w.Flush()
	return text.String()
}

// marks counts the instances in which each column reaches something.
type marks struct {
	ours, lpt int
	argo      [3]int
}

func (m *marks) add(ours, lpt bool, argo func(sharding.Algorithm) bool) {
	if ours {
		m.ours++
	}
	if lpt {
		m.lpt++
	}
	for k, a := range algorithms {
		if argo(a) {
			m.argo[k]++
		}
	}
}

func (m *marks) cells(of int) (cells [columns]string) {
	for k, n := range []int{m.ours, m.lpt, m.argo[0], m.argo[1], m.argo[2]} {
		cells[k] = fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
	}
	return cells
}

func percents(sums [columns]float64, of float64, form string) (cells [columns]string) {
	for k, sum := range sums {
		cells[k] = fmt.Sprintf(form, 100*sum/of)
	}
	return cells
}

// argo is where Argo CD's own algorithm has each item. A cluster has as many Applications as it has load, which is kind to
// consistent hashing: it is the only one that looks at anything.
func argo(a sharding.Algorithm, in []partition.Item, replicas int) []int {
	var total plan.Load
	for _, it := range in {
		total += it.Load
	}
	clusters, apps := make([]discover.Cluster, len(in)), make(map[string]int, len(in))
	for i, it := range in {
		server := "https://" + it.ID
		clusters[i].Shard = plan.Shard{ID: it.ID, UID: it.ID, Name: it.ID, Server: server}
		apps[server] = int(float64(it.Load) / float64(total) * 100_000)
	}
	return sharding.Owners(clusters, a, replicas, apps)
}

// carried adds up what each replica carries.
func carried(in []partition.Item, of []int, replicas int) []plan.Load {
	loads := make([]plan.Load, replicas)
	for i, r := range of {
		loads[r] += in[i].Load
	}
	return loads
}

func loadsOf(in []partition.Item) []plan.Load {
	loads := make([]plan.Load, len(in))
	for i, it := range in {
		loads[i] = it.Load
	}
	return loads
}

// whole are items of whole loads.
func whole(loads []int64) []partition.Item {
	out := make([]partition.Item, len(loads))
	for i, l := range loads {
		out[i] = partition.Item{ID: fmt.Sprintf("c%05d", i), Load: plan.Load(l), Clusters: 1, Replica: partition.Free}
	}
	return out
}
