package cycle

import (
	"fmt"
	"slices"
	"strings"

	"ballast/planner/cycle/adopt"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/ledger"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

// changes reports whether a plan enforces something else than the one that was read.
func (c *cycle) changes(next plan.Plan) bool { return c.read == nil || !next.SameEnforced(*c.read) }

// finish compares with the plan in force and words the reason. A plan that enforces the same is the one in force, loads
// and revision too, since rows keep the load of their decision.
func (c *cycle) finish(a *adopt.Adoption) {
	c.Notes = append(a.Notes, c.Notes...)
	adopt.SetArrivals(a.Ground)
	adopt.SayFull(a.Ground, c.Out.Memory.Changes.Target, bounds.Capacity(a.Ground), c.Out.Loads)
	c.noteFull(a.Next.Full)
	c.Out.Next = a.Next
	c.Out.Changed = c.changes(a.Next)
	if !c.Out.Changed {
		return
	}
	c.stampLoads(a.Ground)
	ledger.Ledger{Draft: c.Draft}.CountAdopted(a)
	ledger.Ledger{Draft: c.Draft}.CountStage(c.Out.Next, a.Beside)
	if c.In.InForce == nil && c.In.Last == nil {
		c.Out.Decided = true
		c.Note(fmt.Sprintf("took over the fleet as it is: %d clusters on %d replicas", len(c.Out.Next.Clusters),
			c.Out.Next.Replicas))
	}
	if c.Provisional != "" {
		c.Note(c.Provisional)
	}
	if len(c.Notes) == 0 {
		c.Note("what is enforced changed with the configuration or the Secrets")
	}
	c.Out.Reason = strings.Join(c.Notes, "; ")
}

// noteFull says that other replicas than before take no new cluster.
func (c *cycle) noteFull(full []int) {
	switch {
	case c.In.InForce == nil || slices.Equal(full, c.In.InForce.Full):
	case len(full) == 0:
		c.Note("no replica is full any more: each takes new clusters")
	default:
		c.Note(division.ReplicaList(slices.Clone(full)) + " takes no new cluster while another one does: it is full")
	}
}

// stampLoads writes the loads of this decision into the rows; the last ones stay while nothing is known. Where they
// leave the plan no room they go: they are for people.
func (c *cycle) stampLoads(g *ground.Ground) {
	defer c.dropLoads()
	if c.Out.Loads == nil || c.Out.Table.Frozen {
		return
	}
	for i, cl := range c.Out.Fleet.Clusters {
		if row, ok := c.Out.Next.Clusters[cl.Shard.ID]; ok {
			if row.Load = c.Indexes[i].DisplayValue; c.Out.Loads[i] == 0 && adopt.Unmeasured(g, i) {
				row.Load = "" // nothing is known of it yet, which is not that it carries nothing
			}
			c.Out.Next.Clusters[cl.Shard.ID] = row
		}
	}
}

func (c *cycle) dropLoads() {
	if codec.Room(c.Out.Next) >= 0 {
		return
	}
	for name, row := range c.Out.Next.Clusters {
		row.Load = ""
		c.Out.Next.Clusters[name] = row
	}
}
