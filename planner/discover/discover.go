// Package discover turns cluster Secrets into the fleet that is planned for. It is a function of values: package
// secrets reads them.
package discover

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ballast/planner/discover/labeltext"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// ImplicitID is the ID of the cluster Argo CD runs in while no Secret describes it.
const ImplicitID = "in-cluster"

// Input is what was seen in Argo CD's namespace; with Known it decides the fleet.
type Input struct {
	Namespace        string   `json:"namespace"`
	Secrets          []Secret `json:"secrets"`
	LeftOut          int      `json:"leftOut,omitempty"` // how many more there are than are planned
	InClusterEnabled bool     `json:"inClusterEnabled"`
	InClusterOwner   int      `json:"inClusterOwner"`            // the shard on which Argo CD keeps an implicit in-cluster
	AcceptDiscovery  *int     `json:"acceptDiscovery,omitempty"` // people's annotation accept-discovery
	Algorithm        string   `json:"algorithm,omitempty"`       // controller.sharding.algorithm of argocd-cmd-params-cm
}

// Options are the configuration's part.
type Options struct {
	MaxShrink float64                          // share of the known clusters that may be lost at once, 0 to 1
	Before    map[string]string                // the Secrets' servers in the last discovery; nil: not known
	Made      map[string]time.Time             // when those Secrets were made
	Had       func(secret, server string) bool // whether the Secret had that server before; nil: none is known to
}

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

// Unit is the clusters with one server URL, which Argo CD cannot tell apart: they share a shard. Clusters are ascending
// indexes into Fleet.Clusters.
type Unit struct {
	Server   string `json:"server"`
	Clusters []int  `json:"clusters"`
}

// Fleet is every cluster in the order of plan.CompareShards, the units in the order of their first cluster, and what is
// wrong with the Secrets.
type Fleet struct {
	Clusters []Cluster       `json:"clusters"`
	Units    []Unit          `json:"units"`
	Problems []SecretProblem `json:"problems,omitempty"`
}

// Made is when each cluster's Secret was made: where there is room for some alone, nobody takes it from older ones by
// new ones.
func (f Fleet) Made() map[string]time.Time {
	made := make(map[string]time.Time, len(f.Clusters))
	for _, c := range f.Clusters {
		made[c.Shard.ID] = c.Created
	}
	return made
}

// Groups are what Argo CD cannot tell apart: the units, without the Secrets that stand alone, which are groups of their
// own.
func (f Fleet) Groups() []Unit {
	if !slices.ContainsFunc(f.Clusters, func(c Cluster) bool { return c.Alone }) {
		return f.Units
	}
	return grouped(f.Clusters, Cluster.OfServer)
}

// All is the fleet as it stands, compared with none.
func All(in Input, now time.Time) Fleet {
	fleet, _, _ := Discover(in, Known{}, Options{MaxShrink: 1}, now) // nothing is known, so nothing is lost
	return fleet
}

// Discover lists the fleet and compares it with the last accepted one. The error, a *ShrinkError, says that too many
// clusters went at once: the plan in force stays, and the returned Known is to be kept for the next call all the same.
func Discover(in Input, known Known, o Options, now time.Time) (Fleet, Known, error) {
	fleet := list(in)
	fleet.Units = grouped(fleet.Clusters, func(c Cluster) string { return c.Shard.Server })
	for _, u := range fleet.Units {
		fleet.mislead(u)
		if p, found := conflict(u.Server, fleet.Clusters, u); found {
			fleet.Problems = append(fleet.Problems, p)
		}
	}
	twins := fleet.twins(known.Twins, now)
	leaders, passed := known.lead(fleet, o, now)
	fleet.Problems = append(fleet.Problems, passed...)
	slices.SortFunc(fleet.Problems, func(a, b SecretProblem) int {
		return cmp.Or(cmp.Compare(a.Secret, b.Secret), cmp.Compare(a.Kind, b.Kind))
	})
	all, ours := fleet.secretNames()
	known, err := known.accept(all, ours, in.AcceptDiscovery, o, now)
	known.Leaders, known.Twins = leaders, twins
	return fleet, known, err
}

func list(in Input) Fleet {
	fleet := Fleet{Clusters: make([]Cluster, 0, len(in.Secrets)+1)}
	explicit, nameTaken := false, false
	shared := sharedNames(in.Secrets)
	for _, s := range in.Secrets {
		nameTaken = nameTaken || s.Name == ImplicitID
		if p, out := leftOut(s); out {
			fleet.Problems = append(fleet.Problems, p)
			continue
		}
		fleet.Problems = append(fleet.Problems, flaws(s)...)
		c := newCluster(s)
		if others := shared[s.Cluster]; len(others) > 1 {
			c.Nameless = true
			fleet.Problems = append(fleet.Problems, sharedName(s, others))
		}
		if c.Shard.Server == plan.InClusterServer {
			explicit = true
			if !in.InClusterEnabled {
				c.Skip = true
				fleet.Problems = append(fleet.Problems, SecretProblem{s.Name, InClusterDisabled, fmt.Sprintf(
					"Secret %q describes the cluster Argo CD runs in, which cluster.inClusterEnabled in argocd-cm turns off: nobody owns it; delete the Secret or turn it on", s.Name)})
			}
		}
		fleet.Clusters = append(fleet.Clusters, c)
	}
	if in.LeftOut > 0 {
		fleet.Problems = append(fleet.Problems, tooMany(in))
	}
	if in.InClusterEnabled && !explicit {
		fleet.Clusters = append(fleet.Clusters, implicit(in, nameTaken))
	}
	slices.SortFunc(fleet.Clusters, func(a, b Cluster) int { return plan.CompareShards(a.Shard, b.Shard) })
	return fleet
}

// mislead marks the other Secrets of a server of which one keeps Argo CD from reconciling it: it takes any of them.
func (f Fleet) mislead(u Unit) {
	keeps := func(i int) bool {
		c := f.Clusters[i]
		return c.Unread || c.Skip || c.Explicit.State == ShardNegative
	}
	if len(u.Clusters) > 1 && slices.ContainsFunc(u.Clusters, keeps) {
		for _, i := range u.Clusters {
			f.Clusters[i].Misled = !keeps(i)
		}
	}
}

// sharedNames are the Secrets of each data.name that several have, those too that are left out: Argo CD finds no
// cluster by it.
func sharedNames(secrets []Secret) map[string][]string {
	first, shared := make(map[string]string, len(secrets)), map[string][]string{}
	for _, s := range secrets {
		other, taken := first[s.Cluster]
		switch {
		case s.Cluster == "":
		case !taken:
			first[s.Cluster] = s.Name
		case shared[s.Cluster] == nil:
			shared[s.Cluster] = []string{other, s.Name}
		default:
			shared[s.Cluster] = append(shared[s.Cluster], s.Name)
		}
	}
	return shared
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

func grouped(clusters []Cluster, by func(Cluster) string) []Unit {
	groups := placement.Group(len(clusters), func(i int) string { return by(clusters[i]) })
	us := make([]Unit, len(groups))
	for k, members := range groups {
		us[k] = Unit{Server: clusters[members[0]].Shard.Server, Clusters: members}
	}
	return us
}

// secretNames are the clusters that a Secret stands for, and those of them that ballast writes: the implicit one can
// not be lost.
func (f Fleet) secretNames() (all, ours []string) {
	all, ours = make([]string, 0, len(f.Clusters)), make([]string, 0, len(f.Clusters))
	for _, c := range f.Clusters {
		if c.Implicit {
			continue
		}
		all = append(all, c.Shard.ID)
		if !c.Unmanaged {
			ours = append(ours, c.Shard.ID)
		}
	}
	return all, ours
}

// Selector converts the configured selector of cluster Secrets. One that would select every Secret of the namespace is
// refused: reading them all is neither needed nor granted.
func Selector(s metav1.LabelSelector) (labels.Selector, error) {
	sel, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of cluster secrets: %w", err)
	}
	if sel.Empty() {
		return nil, errors.New(`reading the selector of cluster secrets: it is empty and would select every Secret; ` +
			`set matchLabels, as in {argocd.argoproj.io/secret-type: cluster}`)
	}
	if sel.Matches(labels.Set{}) {
		return nil, fmt.Errorf("reading the selector of cluster secrets: %q also selects Secrets without any label; require a label that only cluster Secrets have", sel)
	}
	return sel, nil
}

// twinsAfter is for how long Argo CD may go by a Secret that is gone, of a server that another one has: it deletes a
// server by its text, slashes and all, and keeps it by the text without them. Hearing of the Secret that is left mends
// that, and any change of the distribution after it; for the cluster that it runs in, which has none, only a restart
// does.
const twinsAfter = time.Hour

// twins marks what is left of servers that had several Secrets within twinsAfter as misled, and says which had, and
// when last. The cluster that Argo CD runs in is one without a Secret, so that one is a second.
func (f Fleet) twins(before map[string]time.Time, now time.Time) map[string]time.Time {
	all := map[string]time.Time{}
	for key, at := range before {
		if since := now.Sub(at); since < twinsAfter {
			all[key] = at
		}
	}
	gone := len(all) > 0
	for _, u := range f.Units {
		first := &f.Clusters[u.Clusters[0]]
		switch {
		case len(u.Clusters) > 1, first.Shard.Server == plan.InClusterServer && !first.Implicit:
			all[leaderKey(u.Server)] = now
		case gone: // as nearly never
			if _, lately := all[leaderKey(u.Server)]; lately {
				first.Misled = true
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	if len(all) > mostLeaders {
		keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(all[b].Compare(all[a]), cmp.Compare(a, b)) })
		for _, key := range keys[mostLeaders:] {
			delete(all, key)
		}
	}
	return all
}
