package steer

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/preview"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/discover/workload"
	"ballast/planner/failover"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/status"
	"ballast/planner/store"
)

// ReplicasAhead is the number of replicas that there are, or will be when the rollout under way has ended.
func ReplicasAhead(p plan.Plan) int {
	if p.Rollout != nil {
		return p.Rollout.Replicas
	}
	return p.Replicas
}

// Carried is what each replica carries by the rows' loads, where of says which replica a cluster has.
func Carried(p plan.Plan, replicas int, of func(name string) int) []plan.Replica {
	list := make([]plan.Replica, replicas)
	for _, name := range slices.Sorted(maps.Keys(p.Clusters)) {
		at := of(name)
		if at < 0 || at >= replicas {
			continue
		}
		load := plan.LoadOf(p.Clusters[name].Load)
		list[at].LoadIndexes = append(list[at].LoadIndexes,
			plan.LoadIndex{Shard: plan.Shard{ID: name}, Value: load, DisplayValue: load.Display()})
		list[at].TotalLoad = list[at].TotalLoad.Plus(load)
	}
	for i := range list {
		list[i].ID, list[i].TotalLoadDisplay = i, list[i].TotalLoad.Display()
	}
	return list
}

// Has reports whether a map has a name.
func Has[V any](m map[string]V, name string) bool { _, ok := m[name]; return ok }

// Standing is what people and Secrets say beside the plan's rows.
type Standing struct {
	Pins   plan.Pins       // nil: only those of the plan ConfigMap are known
	Fixed  map[string]bool // clusters that ballast does not move: of an immutable, unmanaged or not selected Secret
	Homes  []standing.Home
	Unseen string         // what could not be read, so that a cluster may be where none shows
	Said   *status.Status // by the leader; nil: nothing that may be read

	Secrets  *discover.Input      // nil: they could not be read, and the plan's rows stand for them
	workload discover.Workload    // where it was read
	config   config.PlannerConfig // the planner's, else the defaults
}

// Inputs are what the planner's own judgement takes to say what will be.
func (s Standing) Inputs(doc configmap.Document, now time.Time) input.Inputs {
	in := input.Inputs{Now: now, Config: s.config, InForce: doc.Plan, Pins: s.Pins, BreakGlass: doc.BreakGlass,
		Cordon: doc.Cordon, Workload: s.workload}
	if in.Pins == nil {
		in.Pins = doc.Pins
	}
	if s.Secrets != nil {
		in.Discovered = *s.Secrets
		in.Discovered.AcceptDiscovery = doc.AcceptDiscovery
		return in
	}
	in.Discovered, in.Pins = preview.RowsAsSecrets(*doc.Plan), maps.Clone(in.Pins)
	for i, secret := range in.Discovered.Secrets {
		in.Discovered.Secrets[i].Immutable = s.Fixed[secret.Name]
		if _, pinned := in.Pins[secret.Name]; !pinned && doc.Plan.Clusters[secret.Name].Pinned {
			if in.Pins == nil {
				in.Pins = plan.Pins{}
			}
			in.Pins[secret.Name] = doc.Plan.Clusters[secret.Name].Replica
		}
	}
	return in
}

// Unwell are the replicas that the leader found unwell, where it has looked lately.
func (s Standing) Unwell(now time.Time) (unwell []int) {
	if s.Said == nil || s.Said.Old(now) {
		return nil
	}
	for _, u := range s.Said.Unwell {
		unwell = append(unwell, u.Replica)
	}
	return unwell
}

// Stands reads what counts for moves. Without the right to read Secrets it goes by the plan alone, and notes that.
func (m *PlanMap) Stands(ctx context.Context, doc configmap.Document, notes io.Writer) (Standing, error) {
	s, _, err := m.readSecrets(ctx, doc, notes)
	return s, err
}

// StandsWhere reads also where Argo CD has each cluster, which takes the workload. The document has a plan.
func (m *PlanMap) StandsWhere(ctx context.Context, doc configmap.Document, notes io.Writer) (Standing, error) {
	s, all, err := m.readSecrets(ctx, doc, notes)
	if err != nil || s.Unseen != "" {
		return s, err
	}
	_, w, err := workload.FindTarget(ctx, m, doc.Plan.Target, doc.Plan)
	if apierrors.IsForbidden(err) {
		s.Unseen = "the workload's settings, by which Argo CD has a cluster without a shard on a replica: list on statefulsets or deployments is needed"
		return s, nil
	}
	if err != nil {
		return Standing{}, err
	}
	s.Homes, s.workload = standing.Homes(all, w), w
	return s, nil
}

// readSecrets reads all of Argo CD's cluster Secrets, and tells those that are ballast's.
func (m *PlanMap) readSecrets(ctx context.Context, doc configmap.Document, notes io.Writer) (Standing, discover.Input, error) {
	argos, err := discover.Selector(config.Default().Discover.Selector)
	if err != nil {
		return Standing{}, discover.Input{}, err
	}
	all, err := secrets.ReadInput(ctx, m, m.Key.Namespace, argos, discover.Known{})
	if apierrors.IsForbidden(err) {
		say.To(notes, "note: without the right to list Secrets and read Argo CD's settings, clusters whose Secret is immutable, unmanaged or not selected "+
			"are not known, and counted as any other\n")
		return Standing{Pins: doc.Pins, config: config.Default(),
			Unseen: "the cluster Secrets and Argo CD's settings: list on secrets and get on configmaps is needed"}, all, nil
	}
	if err != nil {
		return Standing{}, all, err
	}
	settings, err := m.settings(ctx, notes)
	if err != nil {
		return Standing{}, all, err
	}
	selector, err := discover.Selector(settings.Discover.Selector)
	if err != nil {
		return Standing{}, all, err
	}
	ours := all
	groups := settings.Partition.LabelKeys()
	if selector.String() != argos.String() || len(groups) > 0 {
		if ours, err = secrets.ReadInput(ctx, m, m.Key.Namespace, selector, discover.Known{}, groups...); err != nil {
			return Standing{}, all, err
		}
	}
	kept := store.New(store.Options{Client: m.Client, Reader: m.Client, Namespace: m.Key.Namespace, Plan: m.Key.Name})
	said, err := kept.ReadStatus(ctx)
	if err != nil {
		say.To(notes, "note: which replicas are unwell is not known, and any may receive clusters: %s\n",
			say.OneLine(err.Error()))
	}
	pins, fixed := standing.Pins(doc.Pins, standing.Fleet(input.Inputs{Discovered: ours}).Clusters), fixedOf(all, ours)
	return Standing{Pins: pins, Fixed: fixed, Said: said, Secrets: withOthers(ours, all, doc.Plan), config: settings},
		all, nil
}

// withOthers adds what has a row all the same: Secrets that are not selected, as ones that nobody may write, and
// Secrets that are gone, which may come back until their rows are forgotten.
func withOthers(ours, all discover.Input, p *plan.Plan) *discover.Input {
	if p == nil {
		return &ours
	}
	seen := map[string]bool{}
	for _, s := range ours.Secrets {
		seen[s.Name] = true
	}
	ours.Secrets = slices.Clone(ours.Secrets)
	add := func(s discover.Secret) {
		if !seen[s.Name] && Has(p.Clusters, s.Name) {
			seen[s.Name] = true
			ours.Secrets = append(ours.Secrets, s)
		}
	}
	for _, s := range all.Secrets {
		s.Immutable = true
		add(s)
	}
	for _, s := range preview.RowsAsSecrets(*p).Secrets {
		add(s)
	}
	return &ours
}

// fixedOf are the clusters whose Secret ballast may not write, or that it does not have.
func fixedOf(all, ours discover.Input) map[string]bool {
	fixed, selected := map[string]bool{}, map[string]bool{}
	for _, s := range ours.Secrets {
		if selected[s.Name] = true; s.Immutable || s.Unmanaged {
			fixed[s.Name] = true
		}
	}
	for _, s := range all.Secrets {
		if !selected[s.Name] {
			fixed[s.Name] = true
		}
	}
	return fixed
}

// settings is the planner's configuration. Where that cannot be read the default one counts.
func (m *PlanMap) settings(ctx context.Context, notes io.Writer) (config.PlannerConfig, error) {
	otherwise := config.Default()
	if m.config == "" {
		return otherwise, nil
	}
	var cm corev1.ConfigMap
	switch err := m.Get(ctx, client.ObjectKey{Namespace: m.Key.Namespace, Name: m.config}, &cm); {
	case apierrors.IsNotFound(err):
		return otherwise, nil // an installation that has it in another place, or not at all
	case apierrors.IsForbidden(err):
		say.To(notes, "note: without the right to read ConfigMap %q, its discover.selector is not known, and every cluster Secret is counted as ballast's\n", m.config)
		return otherwise, nil
	case err != nil:
		return otherwise, fmt.Errorf("reading ConfigMap %q: %w", m.config, err)
	}
	c, err := configfile.Parse([]byte(cm.Data["config.yaml"]))
	if err != nil {
		say.To(notes, "note: ConfigMap %q is not read, and every cluster Secret is counted as ballast's: %s\n",
			m.config, say.OneLine(err.Error()))
		return otherwise, nil
	}
	return c, nil
}

// Beside are the clusters that work on a replica though the plan does not have them there.
type Beside struct {
	Fixed    []string // that ballast does not move
	Drifted  []string // that the planner brings where the plan has them
	Implicit []string // the cluster that Argo CD adds by itself
	Unknown  []string // that may be there
}

// Beside leaves out what the plan has on the replica, and what a wave is moving.
func (s Standing) Beside(p plan.Plan, view *plan.View, replica int) Beside {
	var b Beside
	for _, h := range s.Homes {
		name := h.Cluster.Shard.ID
		_, known := p.Clusters[name]
		at, _, _ := view.Effective(name)
		moving := p.Rollout != nil && (Has(p.Rollout.Moves, name) || Has(p.Rollout.Was, name))
		switch works := slices.Contains(h.At, replica); {
		case known && at == replica, !works && !h.Unknown:
		case !works:
			b.Unknown = append(b.Unknown, name)
		case h.Cluster.Implicit:
			b.Implicit = append(b.Implicit, name)
		case s.Fixed[name]:
			b.Fixed = append(b.Fixed, name)
		case !known || !moving:
			b.Drifted = append(b.Drifted, name)
		}
	}
	return b
}

// Notes are in the words of the planner's for clusters that have a row.
func (b Beside) Notes(replica int) []failover.Note {
	var notes []failover.Note
	add := func(names []string, format string) {
		for _, name := range names {
			notes = append(notes, failover.Note{Kind: failover.FixedStays, Cluster: name, Replica: replica,
				Message: fmt.Sprintf(format, name, replica)})
		}
	}
	add(b.Fixed, "cluster %q stays on replica %d, for its Secret is immutable, unmanaged or not of discover.selector")
	add(b.Implicit, "cluster %q stays on replica %d, for it has no Secret")
	add(b.Unknown, "cluster %q may be on replica %d, and stays, for Argo CD's algorithm decides by its Applications")
	return notes
}
