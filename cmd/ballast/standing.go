package main

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

	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/discover"
	"ballast/planner/failover"
	"ballast/planner/plan"
)

// standing is what people and Secrets say beside the plan's rows.
type standing struct {
	pins   plan.Pins       // nil: only those of the plan ConfigMap are known
	fixed  map[string]bool // clusters that ballast does not move: of an immutable, unmanaged or not selected Secret
	homes  []cycle.Home
	unseen string // what could not be read, so that a cluster may be where none shows

	secrets  *discover.Input      // nil: they could not be read, and the plan's rows stand for them
	workload discover.Workload    // where it was read
	config   config.PlannerConfig // the planner's, else the defaults
}

// inputs are what the planner's own judgement takes to say what will be.
func (s standing) inputs(doc plan.Document, now time.Time) cycle.Inputs {
	in := cycle.Inputs{Now: now, Config: s.config, InForce: doc.Plan, Pins: s.pins, BreakGlass: doc.BreakGlass, Cordon: doc.Cordon, Workload: s.workload}
	if in.Pins == nil {
		in.Pins = doc.Pins
	}
	if s.secrets != nil {
		in.Discovered = *s.secrets
		in.Discovered.AcceptDiscovery = doc.AcceptDiscovery
		return in
	}
	in.Discovered, in.Pins = cycle.RowsAsSecrets(*doc.Plan), maps.Clone(in.Pins)
	for i, secret := range in.Discovered.Secrets {
		in.Discovered.Secrets[i].Immutable = s.fixed[secret.Name]
		if _, pinned := in.Pins[secret.Name]; !pinned && doc.Plan.Clusters[secret.Name].Pinned {
			if in.Pins == nil {
				in.Pins = plan.Pins{}
			}
			in.Pins[secret.Name] = doc.Plan.Clusters[secret.Name].Replica
		}
	}
	return in
}

// stands reads what counts for moves. Without the right to read Secrets it goes by the plan alone, and notes that.
func (m *planMap) stands(ctx context.Context, doc plan.Document, notes io.Writer) (standing, error) {
	s, _, err := m.readSecrets(ctx, doc, notes)
	return s, err
}

// standsWhere reads also where Argo CD has each cluster, which takes the workload. The document has a plan.
func (m *planMap) standsWhere(ctx context.Context, doc plan.Document, notes io.Writer) (standing, error) {
	s, all, err := m.readSecrets(ctx, doc, notes)
	if err != nil || s.unseen != "" {
		return s, err
	}
	_, w, err := discover.FindTarget(ctx, m, doc.Plan.Target, doc.Plan)
	if apierrors.IsForbidden(err) {
		s.unseen = "the workload's settings, by which Argo CD has a cluster without a shard on a replica: list on statefulsets or deployments is needed"
		return s, nil
	}
	if err != nil {
		return standing{}, err
	}
	s.homes, s.workload = cycle.Homes(all, w), w
	return s, nil
}

// readSecrets reads all of Argo CD's cluster Secrets, and tells those that are ballast's.
func (m *planMap) readSecrets(ctx context.Context, doc plan.Document, notes io.Writer) (standing, discover.Input, error) {
	argos, err := discover.Selector(config.Default().Discover.Selector)
	if err != nil {
		return standing{}, discover.Input{}, err
	}
	all, err := discover.ReadInput(ctx, m, m.key.Namespace, argos, discover.Known{})
	if apierrors.IsForbidden(err) {
		say(notes, "note: without the right to list Secrets and read Argo CD's settings, clusters whose Secret is immutable, unmanaged or not selected "+
			"are not known, and counted as any other\n")
		return standing{pins: doc.Pins, config: config.Default(), unseen: "the cluster Secrets and Argo CD's settings: list on secrets and get on configmaps is needed"}, all, nil
	}
	if err != nil {
		return standing{}, all, err
	}
	settings, err := m.settings(ctx, notes)
	if err != nil {
		return standing{}, all, err
	}
	selector, err := discover.Selector(settings.Discover.Selector)
	if err != nil {
		return standing{}, all, err
	}
	ours := all
	if selector.String() != argos.String() {
		if ours, err = discover.ReadInput(ctx, m, m.key.Namespace, selector, discover.Known{}); err != nil {
			return standing{}, all, err
		}
	}
	now := cycle.Inputs{Discovered: ours, InForce: doc.Plan, Pins: doc.Pins, BreakGlass: doc.BreakGlass}
	fixed := fixedOf(all, ours)
	return standing{pins: cycle.Compare(now).Pins, fixed: fixed, secrets: withOthers(ours, all, doc.Plan), config: settings}, all, nil
}

// withOthers adds what has a row all the same: Secrets that are not selected, as ones that nobody may write, and Secrets
// that are gone, which may come back until their rows are forgotten.
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
		if !seen[s.Name] && contains(p.Clusters, s.Name) {
			seen[s.Name] = true
			ours.Secrets = append(ours.Secrets, s)
		}
	}
	for _, s := range all.Secrets {
		s.Immutable = true
		add(s)
	}
	for _, s := range cycle.RowsAsSecrets(*p).Secrets {
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
func (m *planMap) settings(ctx context.Context, notes io.Writer) (config.PlannerConfig, error) {
	otherwise := config.Default()
	if m.config == "" {
		return otherwise, nil
	}
	var cm corev1.ConfigMap
	switch err := m.Get(ctx, client.ObjectKey{Namespace: m.key.Namespace, Name: m.config}, &cm); {
	case apierrors.IsNotFound(err):
		return otherwise, nil // an installation that has it in another place, or not at all
	case apierrors.IsForbidden(err):
		say(notes, "note: without the right to read ConfigMap %q, its discover.selector is not known, and every cluster Secret is counted as ballast's\n", m.config)
		return otherwise, nil
	case err != nil:
		return otherwise, fmt.Errorf("reading ConfigMap %q: %w", m.config, err)
	}
	c, err := config.Parse([]byte(cm.Data["config.yaml"]))
	if err != nil {
		say(notes, "note: ConfigMap %q is not read, and every cluster Secret is counted as ballast's: %s\n", m.config, oneLine(err.Error()))
		return otherwise, nil
	}
	return c, nil
}

// beside are the clusters that work on a replica though the plan does not have them there.
type beside struct {
	fixed    []string // that ballast does not move
	drifted  []string // that the planner brings where the plan has them
	implicit []string // the cluster that Argo CD adds by itself
	unknown  []string // that may be there
}

// beside leaves out what the plan has on the replica, and what a wave is moving.
func (s standing) beside(p plan.Plan, view *plan.View, replica int) beside {
	var b beside
	for _, h := range s.homes {
		name := h.Cluster.Shard.ID
		_, known := p.Clusters[name]
		at, _, _ := view.Effective(name)
		moving := p.Rollout != nil && (contains(p.Rollout.Moves, name) || contains(p.Rollout.Was, name))
		switch works := slices.Contains(h.At, replica); {
		case known && at == replica, !works && !h.Unknown:
		case !works:
			b.unknown = append(b.unknown, name)
		case h.Cluster.Implicit:
			b.implicit = append(b.implicit, name)
		case s.fixed[name]:
			b.fixed = append(b.fixed, name)
		case !known || !moving:
			b.drifted = append(b.drifted, name)
		}
	}
	return b
}

// notes are in the words of the planner's for clusters that have a row.
func (b beside) notes(replica int) []failover.Note {
	var notes []failover.Note
	add := func(names []string, format string) {
		for _, name := range names {
			notes = append(notes, failover.Note{Kind: failover.FixedStays, Cluster: name, Replica: replica, Message: fmt.Sprintf(format, name, replica)})
		}
	}
	add(b.fixed, "cluster %q stays on replica %d, for its Secret is immutable, unmanaged or not of discover.selector")
	add(b.implicit, "cluster %q stays on replica %d, for it has no Secret")
	add(b.unknown, "cluster %q may be on replica %d, and stays, for Argo CD's algorithm decides by its Applications")
	return notes
}
