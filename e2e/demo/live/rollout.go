// Package live is the chapters of `make demo` with Argo CD's own application-controllers, on a control plane of their
// own.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ballast/e2e/assets"
	"ballast/e2e/demo/stage"
	"ballast/e2e/fleet"
	"ballast/e2e/gaps"
	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
)

// The second control plane of the demo: what it takes to show a rollout, and no more.
const (
	liveClusters = 12
	liveBefore   = 2
	liveAfter    = 3
	liveEnv      = "16"
)

// The bars of a live rollout: for how long a moved cluster may be without an owner.
const (
	longestGap = 2 * time.Second
	medianGap  = time.Second
)

// Live is the second control plane of the demo, beside the stage of the first; none before Rollout.
type Live struct {
	*stage.Stage
	second *gaps.Site
}

// Rollout is step 8: how long a cluster is without an owner while a replica is added.
func (s *Live) Rollout(ctx context.Context) error {
	var argocd assets.ArgoCD
	err := s.Building("looking for Argo CD's application-controller in the build cache", func(says io.Writer) (err error) {
		argocd, err = assets.BuildArgoCD(ctx, says)
		return err
	})
	if err != nil {
		return err
	}
	if s.second, err = s.start(ctx, argocd); err != nil {
		return err
	}
	if err := s.adopt(ctx, s.second); err != nil {
		return err
	}
	return s.grow(ctx, s.second)
}

// Stop ends its processes.
func (s *Live) Stop() {
	if s.second != nil {
		s.second.Stop()
	}
}

// start brings up a second control plane beside the first.
func (s *Live) start(ctx context.Context, argocd assets.ArgoCD) (w *gaps.Site, err error) {
	dir := filepath.Join(s.Dir, "live")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the second plane's folder: %w", err)
	}
	log, err := os.Create(filepath.Join(s.Dir, "live.log"))
	if err != nil {
		return nil, fmt.Errorf("making the second plane's log: %w", err)
	}
	err = s.Out.Busy(fmt.Sprintf("another control plane, %d application-controllers of Argo CD v3.2.11, %d clusters", liveBefore, liveClusters), func() error {
		w, err = gaps.Start(context.WithoutCancel(ctx),
			gaps.Options{Binaries: s.Binaries, ArgoCD: argocd, Ballast: s.Ballast(),
				Replicas: liveBefore, ControllerReplicas: liveBefore, Clusters: liveClusters,
				Requests: requests(liveApps),
				Dir:      dir, Log: log})
		return err
	})
	if err != nil {
		return w, err
	}
	return w, s.Out.Busy("its cert-manager and Prometheus", func() error {
		return errors.Join(w.Plane.StartCertManager(ctx), w.Monitor(ctx))
	})
}

// liveConfig asks for that many replicas; a cluster's load is its Applications, of which each has one.
func liveConfig(w *gaps.Site, replicas int) map[string]any {
	c := w.Config("Enforce")
	c["rollout"] = map[string]any{"live": map[string]any{}}
	c["partition"] = map[string]any{"lpt": map[string]any{}, "replicas": replicas}
	c["normalize"] = map[string]any{"none": map[string]any{}}
	c["index"] = map[string]any{"pNorm": map[string]any{"weights": map[string]any{"apps": "1"}}}
	c["evaluate"] = map[string]any{"none": map[string]any{}}
	c["poll"].(map[string]any)["prometheus"].(map[string]any)["metrics"] = []any{map[string]any{
		"id": "apps", "noData": "0", "match": map[string]any{"label": "dest_server"},
		"query": `count by (dest_server) (group by (dest_server,name) (last_over_time(argocd_app_info{ {{.pods}},dest_server!="" }[10m])))`,
	}}
	return c
}

// adopt installs ballast: the one restart, in which no cluster changes its owner.
func (s *Live) adopt(ctx context.Context, w *gaps.Site) error {
	from := time.Now()
	before, err := liveOwners(w)
	if err != nil {
		return err
	}
	s.Out.Say("ballast is installed, with rollout: {live: {}} and %d replicas", liveBefore)
	if err := s.Out.Busy("ballast from its manifests", func() error { return w.InstallBallast(ctx, liveConfig(w, liveBefore)) }); err != nil {
		return err
	}
	err = s.Holds(ctx, 3*time.Minute, fmt.Sprintf("the one restart: %s is %s from now on", fleet.ReplicasEnv, liveEnv), func(ctx context.Context) error {
		sts, err := w.StatefulSet(ctx)
		if err != nil {
			return err
		}
		if got := site.EnvReplicas(sts); got != liveEnv {
			return fmt.Errorf("%s is %q, want %q", fleet.ReplicasEnv, got, liveEnv)
		}
		return settledLive(ctx, w, from, liveBefore)
	})
	if err != nil {
		return err
	}
	return s.Holds(ctx, time.Minute, "every cluster has the owner that it had", func(context.Context) error {
		after, err := liveOwners(w)
		if err != nil {
			return err
		}
		if !maps.Equal(before, after) {
			return fmt.Errorf("owners: %v, want %v", after, before)
		}
		return nil
	})
}

// settledLive is nil when that many replicas run and nothing is under way.
func settledLive(ctx context.Context, w *gaps.Site, since time.Time, replicas int) error {
	p, err := w.Plan(ctx)
	switch {
	case err != nil:
		return err
	case p == nil:
		return errors.New("there is no plan yet")
	case p.Rollout != nil:
		return fmt.Errorf("stage %s is under way", p.Rollout.Stage)
	case p.Replicas != replicas:
		return fmt.Errorf("the plan is for %d replicas, want %d", p.Replicas, replicas)
	}
	return errors.Join(w.Settled(ctx, since), w.Ready(ctx, replicas))
}

func liveOwners(w *gaps.Site) (map[string]string, error) {
	now := time.Now()
	tl, err := w.Timeline(now, now)
	if err != nil {
		return nil, err
	}
	owners := map[string]string{}
	for _, c := range w.Clusters {
		if owners[c.Name], err = tl.Owner(c); err != nil {
			return nil, err
		}
	}
	return owners, nil
}

// grow adds a replica, and measures in the controllers' own logs.
func (s *Live) grow(ctx context.Context, w *gaps.Site) error {
	before, err := liveOwners(w)
	if err != nil {
		return err
	}
	asked := time.Now()
	s.Out.Say("partition.replicas: %d instead of %d", liveAfter, liveBefore)
	if err := w.Configure(ctx, liveConfig(w, liveAfter)); err != nil {
		return err
	}
	if err := s.Holds(ctx, 5*time.Minute, fmt.Sprintf("there are %d replicas, and all waves are done", liveAfter), func(ctx context.Context) error {
		return settledLive(ctx, w, asked, liveAfter)
	}); err != nil {
		return err
	}
	after, err := liveOwners(w)
	if err != nil {
		return err
	}
	tl, err := w.Timeline(asked, time.Now())
	if err != nil {
		return err
	}
	return s.measured(tl, before, after)
}

func (s *Live) measured(tl timeline.Timeline, before, after map[string]string) error {
	var without []time.Duration
	rows := [][]string{{"CLUSTER", "FROM", "TO", "WITHOUT AN OWNER"}}
	for _, a := range tl.Accounts() {
		moved := before[a.Cluster] != after[a.Cluster]
		switch {
		case !moved && a.Touched:
			return fmt.Errorf("cluster %q did not move and was touched: %+v", a.Cluster, a)
		case len(a.Doubled) > 0 && a.Doubled[0].Length() > time.Second:
			return fmt.Errorf("cluster %q had two owners for %s", a.Cluster, a.Doubled[0].Length())
		case moved && len(a.Moves) != 1:
			return fmt.Errorf("cluster %q moved %d times, want once", a.Cluster, len(a.Moves))
		case moved:
			without = append(without, a.Moves[0].Gap)
			rows = append(rows, []string{a.Cluster, a.Moves[0].From, a.Moves[0].To,
				a.Moves[0].Gap.Round(time.Millisecond).String()})
		}
	}
	s.Out.Table(rows)
	switch {
	case len(without) == 0:
		return errors.New("no cluster moved to the new replica")
	case timeline.Longest(without) > longestGap, timeline.Median(without) > medianGap:
		return fmt.Errorf("clusters were without an owner for %s at the median and %s at most, want at most %s and %s",
			timeline.Median(without), timeline.Longest(without), medianGap, longestGap)
	case len(tl.Restarts()) > 0:
		return fmt.Errorf("pods restarted: %v", tl.Restarts())
	}
	slices.Sort(without)
	s.Passed("%d clusters moved, each without an owner for %s at the median, %s at most", len(without),
		timeline.Median(without).Round(time.Millisecond), timeline.Longest(without).Round(time.Millisecond))
	s.Passed("%d clusters did not move and noticed nothing; no replica restarted", len(after)-len(without))
	return nil
}
