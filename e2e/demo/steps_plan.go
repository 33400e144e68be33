package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/e2e/demo/screen"
	"ballast/e2e/demo/stage"
	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// aFleet is step 1: the fleet stands, and Prometheus knows its past.
func (s *story) aFleet(ctx context.Context) error {
	f := s.Site.Fleet
	total := f.Total()
	s.Out.Say("%d cluster Secrets and an implicit in-cluster; %d Applications, %d objects, %d events a minute.",
		len(f.Clusters), total.Apps, total.Objects, total.EventsPerMinute)
	heaviest := slices.SortedFunc(slices.Values(f.Clusters), func(a, b fleet.Cluster) int {
		return cmp.Or(cmp.Compare(b.Work.Share(total), a.Work.Share(total)), cmp.Compare(a.Name, b.Name))
	})
	rows := [][]string{{"CLUSTER", "APPS", "OBJECTS", "EVENTS/MIN", "SHARE OF THE WORK", ""}}
	for i, c := range heaviest {
		if i == 5 {
			rows = append(rows, []string{"...", "", "", "", "", ""})
		}
		if i < 5 || i >= len(heaviest)-2 {
			share := c.Work.Share(total)
			rows = append(rows, []string{c.Name, strconv.Itoa(c.Work.Apps), strconv.Itoa(c.Work.Objects),
				strconv.Itoa(c.Work.EventsPerMinute), stage.Percent(share),
				screen.Bar(share, heaviest[0].Work.Share(total))})
		}
	}
	s.Out.Table(rows)
	if err := s.Holds(ctx, 10*time.Second, fmt.Sprintf("%s has %d replicas, all ready", fleet.Workload, f.Replicas), func(ctx context.Context) error {
		return s.Site.Ready(ctx, f.Replicas)
	}); err != nil {
		return err
	}
	if err := s.Holds(ctx, 10*time.Second, fmt.Sprintf("%d cluster Secrets, none with a shard", len(f.Clusters)), s.noShards); err != nil {
		return err
	}
	return s.Holds(ctx, 20*time.Second, "Prometheus knows three hours of every cluster that has an Application",
		s.knowsThePast)
}

func (s *story) noShards(ctx context.Context) error {
	shards, err := s.Site.Shards(ctx)
	if err != nil {
		return err
	}
	for name, shard := range shards {
		if shard != "" {
			return fmt.Errorf("secret %q has shard %q, want none", name, shard)
		}
	}
	return stage.Equal("cluster Secrets", len(s.Site.Fleet.Clusters), len(shards))
}

// knowsThePast compares a range query over the whole past with the fleet's own figures.
func (s *story) knowsThePast(ctx context.Context) error {
	events, err := s.Site.Query(ctx, "server", `60 * quantile_over_time(0.5, (sum by (server) (rate(argocd_cluster_events_total[10m])))[3h:5m])`)
	if err != nil {
		return err
	}
	for _, c := range append(slices.Clone(s.Site.Fleet.Clusters), s.Site.Fleet.InCluster) {
		server := strings.TrimRight(c.Server, "/")
		if got := events[server]; int(got+0.5) != c.Work.EventsPerMinute {
			return fmt.Errorf("cluster %q has %.1f events a minute in Prometheus, want %d", c.Name, got,
				c.Work.EventsPerMinute)
		}
	}
	return nil
}

// takesHold is step 2.
func (s *story) takesHold(ctx context.Context) error {
	for _, part := range []func(context.Context) error{s.before, s.examine, s.preview, s.observe, s.enforce} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// before shows how the hash of Argo CD spreads the fleet.
func (s *story) before(context.Context) error {
	s.Out.Say("Argo CD gives a cluster to the replica that a hash of its Secret's UID names:")
	s.Bars()
	return stage.Equal("clusters with exactly one owner", len(s.Site.Fleet.Clusters)+1, s.OwnedOnce())
}

// examine asks whether the installation has what ballast relies on.
func (s *story) examine(ctx context.Context) error {
	args := []string{"doctor", "--prometheus=" + s.Site.Prometheus}
	s.Out.Print("")
	s.Out.Say("bob asks whether this installation has what ballast relies on.")
	s.Out.Command("ballast " + stage.Quote(args))
	stdout, stderr, err := s.Site.RunBallast(ctx, s.Bob, args...)
	s.Out.Seen(stderr + stdout)
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`(?m)^OK +scrapes +every \d+ s`).MatchString(stdout) {
		return errors.New("it does not say how often the pods are scraped")
	}
	s.Passed("ballast doctor finds no fault, and knows how often the pods are scraped")
	return nil
}

// preview asks ballast, not yet installed, with read-only rights.
func (s *story) preview(ctx context.Context) error {
	from := "--prometheus=" + s.Site.Prometheus
	s.Out.Print("")
	s.Out.Say("bob, who may only read, asks what ballast would change. Nothing is installed yet.")
	s.Out.Command("ballast " + stage.Quote([]string{"plan", from}))
	before, err := s.Versions(ctx)
	if err != nil {
		return err
	}
	stdout, stderr, _, err := s.Site.Plans(ctx, s.Bob, from)
	s.Out.Seen(stderr + stdout)
	if err != nil {
		return err
	}
	if err := s.Untouched(ctx, "ballast plan changed nothing", before); err != nil {
		return err
	}
	return s.compare(ctx)
}

// would is what ballast plan -o json says of a partition.
type would struct {
	Now       []carrying
	Candidate struct {
		Moves    []struct{ Cluster string }
		Replicas []carrying
	}
}

type carrying struct{ TotalLoad string }

// makespan is the fullest replica's load over the mean.
func makespan(replicas []carrying) float64 {
	most, total := 0.0, 0.0
	for _, r := range replicas {
		load, _ := strconv.ParseFloat(r.TotalLoad, 64)
		most, total = max(most, load), total+load
	}
	return most * float64(len(replicas)) / max(total, 1e-9)
}

// levelAlready is the makespan up to which the shipped partition leaves a fleet alone: docs/planning.md, "What high
// means". The hash of UIDs that are drawn anew in each run gives such a fleet now and then.
const levelAlready = 1.174

// compare shows the shipped partition beside one that deals the fleet anew.
func (s *story) compare(ctx context.Context) error {
	file := filepath.Join(s.Dir, "lpt.yaml")
	text := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\npartition: {lpt: {}}\nevaluate: {mostWanted: {}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	sticky, err := s.asks(ctx)
	if err != nil {
		return err
	}
	lpt, err := s.asks(ctx, "--config="+file)
	if err != nil {
		return err
	}
	s.Out.Print("")
	row := func(what string, w []carrying, moves string) []string {
		return []string{what, fmt.Sprintf("%.2f", makespan(w)), moves}
	}
	s.Out.Table([][]string{{"PARTITION", "FULLEST OVER MEAN", "CLUSTERS THAT MOVE"}, row("before", sticky.Now, "-"),
		row("lpt would", lpt.Candidate.Replicas, strconv.Itoa(len(lpt.Candidate.Moves))),
		row("sticky will", sticky.Candidate.Replicas, strconv.Itoa(len(sticky.Candidate.Moves)))})
	return s.Holds(ctx, 0, "sticky, which is shipped, levels the fleet with fewer than half of lpt's moves",
		func(context.Context) error {
			few, many := len(sticky.Candidate.Moves), len(lpt.Candidate.Moves)
			after, before := makespan(sticky.Candidate.Replicas), makespan(sticky.Now)
			left := few == 0 && before <= levelAlready
			if levelled := few > 0 && after < before; 2*few >= many || !levelled && !left {
				return fmt.Errorf("sticky moves %d and lpt %d; %.2f instead of %.2f", few, many, after, before)
			}
			return nil
		})
}

func (s *story) asks(ctx context.Context, more ...string) (w would, err error) {
	stdout, stderr, _, err := s.Site.Plans(ctx, s.Bob,
		append([]string{"--prometheus=" + s.Site.Prometheus, "-o=json"}, more...)...)
	if err != nil {
		return w, fmt.Errorf("%w: %s", err, stderr)
	}
	return w, json.Unmarshal([]byte(stdout), &w)
}

// observe installs ballast as it ships: it writes its plan and touches nothing.
func (s *story) observe(ctx context.Context) error {
	s.Out.Print("")
	s.Out.Say("Installed as it ships, ballast observes: the first plan is the fleet as it is.")
	before, err := s.Versions(ctx)
	if err != nil {
		return err
	}
	s.Out.Command("kubectl apply -k overlay   # manifests/overlays/cert-manager, Prometheus's address, interval 10s")
	if err := s.Out.Busy("two planners, two webhooks, their certificates", func() error {
		return s.Site.InstallBallast(ctx, s.Site.Config("Observe"))
	}); err != nil {
		return err
	}
	if err := s.Holds(ctx, 40*time.Second, "the plan ConfigMap holds revision 1: every cluster where Argo CD has it", s.firstPlan); err != nil {
		return err
	}
	return s.Untouched(ctx, "no Secret and no replica was touched", before)
}

func (s *story) firstPlan(ctx context.Context) error {
	p, err := s.Plan(ctx)
	if err != nil {
		return err
	}
	if p.Mode != "Observe" {
		return fmt.Errorf("the plan's mode is %q, want Observe", p.Mode)
	}
	if p.Revision != 1 {
		return fmt.Errorf("the plan has revision %d, want 1", p.Revision)
	}
	return s.OwnersAre(p)
}

// enforce turns the mode, as a person does in the configuration.
func (s *story) enforce(ctx context.Context) error {
	s.Out.Command("kubectl apply -k overlay   # mode: Enforce")
	if err := s.Site.Configure(ctx, s.Site.Config("Enforce")); err != nil {
		return err
	}
	configured := time.Now()
	rows := [][]string{{"REVISION", "STAGE", "WHY"}}
	last := 1
	err := s.Holds(ctx, 90*time.Second, "the plan is in force: shards, replicas and env agree with it", func(ctx context.Context) error {
		p, err := s.Plan(ctx)
		if err != nil {
			return err
		}
		if p.Revision > last {
			rows = append(rows, []string{strconv.Itoa(p.Revision), cmp.Or(p.Annotation("stage"), "-"),
				p.Annotation("reason")})
			last = p.Revision
		}
		return errors.Join(s.settled(ctx, p), s.Site.Settled(ctx, configured))
	})
	if err != nil {
		return err
	}
	s.Out.Table(rows)
	p, err := s.Plan(ctx)
	if err != nil {
		return err
	}
	s.Bars()
	if err := s.Holds(ctx, 30*time.Second, "Argo CD's replicas own exactly what the plan says, each cluster once", func(context.Context) error { return s.OwnersAre(p) }); err != nil {
		return err
	}
	if got := s.Imbalance(); got > stage.Level {
		return fmt.Errorf("the heaviest replica has %.2f times the ideal load, want at most %.2f", got, stage.Level)
	}
	s.Passed("the heaviest replica has %.2f times the ideal load", s.Imbalance())
	return nil
}

// settled is a plan that is balanced and that everything agrees with.
func (s *story) settled(ctx context.Context, p *site.Plan) error {
	switch {
	case p.Mode != "Enforce":
		return fmt.Errorf("the plan's mode is %q, want Enforce", p.Mode)
	case p.Rollout != nil:
		return fmt.Errorf("the rollout is at stage %q, want it finished", p.Rollout.Stage)
	case p.Revision < 2:
		return fmt.Errorf("the plan has revision %d, want a later one than the first", p.Revision)
	}
	return errors.Join(s.Agrees(ctx, p), s.Site.Ready(ctx, p.Replicas))
}
