package web

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/ownership/podlist"
	"ballast/planner/page"
	"ballast/planner/page/chart"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/status"
	"ballast/planner/store"
	"ballast/planner/store/history"
	"ballast/planner/trend"
)

// Source is where a fleet is looked at. Live reads ConfigMaps and pods; Secrets reads those of clusters, which a
// planner has in its cache.
type Source struct {
	Live    client.Client
	Secrets client.Reader
	Config  func(context.Context) (config.PlannerConfig, []string) // with what could not be read of it
	Now     func() time.Time

	plans map[string]plan.Plan // of the history, by their texts' digests: each is decoded once
}

// Look reads what a page shows. Only one look at a time may be under way. What of it cannot be read is said on the
// page; an error is a plan ConfigMap that cannot be read at all.
func (s *Source) Look(ctx context.Context) (page.Fleet, error) {
	c, unseen := s.Config(ctx)
	f := page.Fleet{Now: s.Now().UTC().Truncate(time.Second), Unseen: unseen}
	note := func(what string, err error) {
		switch {
		case apierrors.IsForbidden(err):
			f.Unseen = append(f.Unseen, what+": the rights to read that are missing")
		case err != nil:
			f.Unseen = append(f.Unseen, what+": "+err.Error())
		}
	}
	kept := store.New(store.Options{Client: s.Live, Reader: s.Live, Namespace: c.Target.Namespace,
		Plan: c.Plan.ConfigMap, History: c.Plan.History})
	stands, err := kept.Read(ctx)
	if err != nil {
		return f, err
	}
	f.Document, f.Pins = stands.Document, stands.Document.Pins
	f.Decided = chart.Decided{At: stands.Meta.DecidedAt, By: stands.Meta.DecidedBy, Reason: stands.Meta.Reason}
	if cm := stands.ConfigMap(); cm != nil {
		f.Pause = page.Pause{By: cm.Annotations[plan.AnnotationPausedBy],
			Why: cm.Annotations[plan.AnnotationPausedReason]}
	}
	f.Status, err = kept.ReadStatus(ctx)
	note("what the leader says (ConfigMap "+status.Name(c.Plan.ConfigMap)+")", err)
	history, problems, err := kept.ReadHistory(ctx)
	note("the history (ConfigMap "+c.Plan.History+")", err)
	for _, p := range problems {
		f.Unseen = append(f.Unseen, fmt.Sprintf("the history (ConfigMap %s): %s", c.Plan.History, p))
	}
	f.Kept = s.kept(history.Plans, f)
	if part, there := history.Parts[trend.HistoryPart]; there {
		note("the load over time (ConfigMap "+c.Plan.History+")", f.Trend.UnmarshalBinary(part))
	}
	saved, _ := memory.OfSaved(history.Parts) // what cannot be read of it only means that fewer Secrets are known
	f.Values, err = memory.Measured(history.Parts)
	note("what was measured (ConfigMap "+c.Plan.History+")", err)
	note("cluster Secrets", s.clusters(ctx, c, saved.Known, &f))
	if p := f.Document.Plan; p != nil {
		pods, err := podlist.List(ctx, s.Live, p.Target, "", f.Now)
		note("the application-controller's pods", err)
		for _, pod := range pods.Pods {
			f.Pods = append(f.Pods, pod.Pod)
		}
	}
	return f, nil
}

// clusters reads the cluster Secrets, and of each its name, the cluster's name, its server and its pin.
func (s *Source) clusters(ctx context.Context, c config.PlannerConfig, known discover.Known, f *page.Fleet) error {
	selector, err := discover.Selector(c.Discover.Selector)
	if err != nil {
		return err
	}
	in, err := secrets.ReadInput(ctx, s.Secrets, c.Target.Namespace, selector, known, c.Partition.LabelKeys()...)
	if err != nil {
		return err
	}
	fleet := discover.All(in, f.Now)
	f.Clusters, f.Apart = []plan.Shard{}, map[string]string{}
	for _, cluster := range fleet.Clusters {
		f.Clusters = append(f.Clusters, cluster.Shard)
		switch {
		case cluster.Implicit:
			f.Apart[cluster.Shard.ID] = "it has no Secret, and stays where Argo CD keeps it"
		case cluster.Unmanaged:
			f.Apart[cluster.Shard.ID] = "a person opted it out: " + plan.AnnotationUnmanaged
		}
	}
	f.Pins = standing.Pins(f.Document.Pins, fleet.Clusters)
	return nil
}

// kept are the plans of the history, with the one in force before them, which the history has a little later.
func (s *Source) kept(records []history.Record, f page.Fleet) []chart.Kept {
	var list []chart.Kept
	if p := f.Document.Plan; p != nil && (len(records) == 0 || records[0].Revision < p.Revision) {
		list = append(list, chart.Kept{Plan: *p, Decided: f.Decided})
	}
	decoded := map[string]plan.Plan{}
	for _, r := range records {
		digest := plan.Digest(r.Text)
		p, known := s.plans[digest]
		if !known {
			var err error
			if p, err = codec.Decode(r.Text); err != nil {
				continue // the history's reader has said so
			}
		}
		decoded[digest] = p
		list = append(list, chart.Kept{Plan: p, Decided: chart.Decided{At: r.Meta.DecidedAt, By: r.Meta.DecidedBy,
			Reason: r.Meta.Reason}})
	}
	s.plans = decoded
	return list
}
