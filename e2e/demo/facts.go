package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ballast/e2e/demo/screen"
	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// level is how far above the ideal a replica may be and still count as level.
const level = 1.1

// bars shows each replica's part of the fleet's work, by who really owns what.
func (s *story) bars() {
	shares, counts := s.shares()
	most := 0.0
	for _, share := range shares {
		most = max(most, share)
	}
	rows := [][]string{}
	for _, pod := range slices.Sorted(maps.Keys(shares)) {
		style := screen.Green
		if shares[pod]*float64(len(shares)) > level {
			style = screen.Yellow
		}
		// Every bar has a colour of as many bytes, so that the columns stay aligned.
		rows = append(rows, []string{ordinal(pod), s.out.Paint(style, screen.Bar(shares[pod], most)), percent(shares[pod]), plural(counts[pod], "cluster")})
	}
	s.out.Table(append([][]string{{"REPLICA", "SHARE OF THE WORK", "", ""}}, rows...))
	s.out.Say("max load over ideal: %.2f", s.imbalance())
}

// shares are each replica's part of the work and how many clusters it owns.
func (s *story) shares() (share map[string]float64, clusters map[string]int) {
	share, clusters = map[string]float64{}, map[string]int{}
	total := s.site.Fleet.Total()
	for pod, work := range s.site.Exporter.Load() {
		share[pod] = work.Share(total)
		clusters[pod] = 0
	}
	for _, pods := range s.site.Exporter.Owners() {
		for _, pod := range pods {
			clusters[pod]++
		}
	}
	return share, clusters
}

// imbalance is the heaviest replica's load over the mean of all.
func (s *story) imbalance() float64 {
	shares, _ := s.shares()
	most, sum := 0.0, 0.0
	for _, share := range shares {
		most, sum = max(most, share), sum+share
	}
	if sum == 0 {
		return 0
	}
	return most * float64(len(shares)) / sum
}

// ownedOnce counts the clusters that exactly one running replica owns.
func (s *story) ownedOnce() int {
	n := 0
	for _, pods := range s.site.Exporter.Owners() {
		if len(pods) == 1 {
			n++
		}
	}
	return n
}

// ownersAre compares the replicas' own view with the plan.
func (s *story) ownersAre(p *site.Plan) error {
	for name, pods := range s.site.Exporter.Owners() {
		row, planned := p.Clusters[name]
		if !planned && name == s.site.Fleet.InCluster.Name {
			continue // without a Secret there is nothing to hold
		}
		if want := fleet.Workload + "-" + strconv.Itoa(row.Replica); !planned || len(pods) != 1 || pods[0] != want {
			return fmt.Errorf("cluster %q is owned by %v, want %s alone", name, pods, want)
		}
	}
	return nil
}

// versions are the resourceVersions of everything that ballast might write, but its own.
func (s *story) versions(ctx context.Context) (map[string]string, error) {
	secrets, err := s.site.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for name, secret := range secrets {
		versions["secret "+name] = secret.ResourceVersion
	}
	sts, err := s.site.StatefulSet(ctx)
	if err != nil {
		return nil, err
	}
	versions["stateful set "+sts.Name] = sts.ResourceVersion
	return versions, nil
}

// untouched checks that nothing has changed since, and says so.
func (s *story) untouched(ctx context.Context, what string, before map[string]string) error {
	now, err := s.versions(ctx)
	if err != nil {
		return err
	}
	for _, object := range slices.Sorted(maps.Keys(before)) {
		if now[object] != before[object] {
			return fmt.Errorf("%s: %s has resourceVersion %q, want %q as before", what, object, now[object], before[object])
		}
	}
	s.passed("%s", what)
	return nil
}

func ordinal(pod string) string { return pod[strings.LastIndex(pod, "-")+1:] }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
