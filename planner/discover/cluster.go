package discover

import (
	"cmp"
	"time"

	"ballast/planner/discover/labeltext"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// ImplicitID is the ID of the cluster Argo CD runs in while no Secret describes it.
const ImplicitID = "in-cluster"

// Cluster is a destination cluster. Explicit is its data.shard, Pin its annotation if that is a number. FixedAt is set
// for a cluster without a Secret: nothing can move it from there. Skip means that Argo CD reconciles nothing there, so
// that it carries no load.
type Cluster struct {
	Shard     plan.Shard       `json:"shard"`
	Explicit  ShardValue       `json:"explicit,omitzero"`
	Pin       string           `json:"pin,omitempty"`
	FixedAt   *int             `json:"fixedAt,omitempty"`
	Implicit  bool             `json:"implicit,omitempty"`
	Skip      bool             `json:"skip,omitempty"`
	Unmanaged bool             `json:"unmanaged,omitempty"`
	Immutable bool             `json:"immutable,omitempty"`
	Follows   bool             `json:"follows,omitempty"`  // its server has another Secret that leads
	Alone     bool             `json:"alone,omitempty"`    // it stands beside that one: ballast may not write it
	Unread    bool             `json:"unread,omitempty"`   // Argo CD cannot read its Secret, and does nothing for it
	Misled    bool             `json:"misled,omitempty"`   // Argo CD may take another Secret of its server for this one, and cannot read that, or ballast has left it out, or it is gone
	NoText    bool             `json:"noText,omitempty"`   // some text of its Secret is no UTF-8, and what goes by JSON changes it
	Nameless  bool             `json:"nameless,omitempty"` // no Application finds it by name: its Secret has none, or another has the same
	Created   time.Time        `json:"created,omitzero"`   // of its Secret
	Labels    labeltext.Labels `json:"labels,omitempty"`   // of its Secret, those that partition.groups asks for
	Bound     string           `json:"bound,omitempty"`    // the server that its own stays together with now, since a group asks for it
	Apart     []string         `json:"apart,omitempty"`    // the groups that keep it apart from their others
}

// Called is the name by which Applications find the cluster; empty where they do not.
func (c Cluster) Called() string {
	if c.Nameless {
		return ""
	}
	return c.Shard.Name
}

// Together is what the cluster has in common with those that it stays together with, its server or the one that leads
// its group; empty: it stays alone.
func (c Cluster) Together() string {
	if c.Alone {
		return ""
	}
	return cmp.Or(c.Bound, c.Shard.Server)
}

// OfServer is what it has in common with the other Secrets of its server; empty: it stays alone.
func (c Cluster) OfServer() string {
	c.Bound = ""
	return c.Together()
}

func newCluster(s Secret) Cluster {
	c := Cluster{
		Shard: plan.Shard{
			UID: s.UID, ID: s.Name, Namespace: s.Namespace, Name: cmp.Or(s.Cluster, s.Name),
			Server: plan.NormalizeServer(s.Server),
		},
		Explicit: s.Shard, Skip: s.SkipReconcile, Unmanaged: s.Unmanaged, Immutable: s.Immutable, NoText: s.NoText,
		Created: s.Created, Labels: s.Labels,
		Unread: s.Unread, Misled: s.Beside, Nameless: s.Cluster == "" || s.Namesake,
	}
	if s.Pin != invalidPin {
		c.Pin = s.Pin
	}
	return c
}

// implicit is the cluster that Argo CD adds by itself. Its ID must be no Secret's: a row of the plan under that name
// would be read as that Secret's.
func implicit(in Input, nameTaken bool) Cluster {
	id := ImplicitID
	if nameTaken {
		id = ImplicitID + " (implicit)"
	}
	owner := in.InClusterOwner
	return Cluster{
		Shard:    plan.Shard{ID: id, Namespace: in.Namespace, Name: ImplicitID, Server: plan.InClusterServer},
		Implicit: true, FixedAt: &owner,
	}
}

// Unit is the clusters with one server URL, which Argo CD cannot tell apart: they share a shard. Clusters are ascending
// indexes into Fleet.Clusters.
type Unit struct {
	Server   string `json:"server"`
	Clusters []int  `json:"clusters"`
}

func grouped(clusters []Cluster, by func(Cluster) string) []Unit {
	groups := placement.Group(len(clusters), func(i int) string { return by(clusters[i]) })
	us := make([]Unit, len(groups))
	for k, members := range groups {
		us[k] = Unit{Server: clusters[members[0]].Shard.Server, Clusters: members}
	}
	return us
}
