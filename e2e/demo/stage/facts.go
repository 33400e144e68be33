package stage

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

// Level is how far above the ideal a replica may be and still count as level.
const Level = 1.1

// Bars shows each replica's part of the fleet's work, by who really owns what.
func (s *Stage) Bars() {
	shares, counts := s.shares()
	most := 0.0
	for _, share := range shares {
		most = max(most, share)
	}
	rows := [][]string{}
	for _, pod := range slices.Sorted(maps.Keys(shares)) {
		style := screen.Green
		if shares[pod]*float64(len(shares)) > Level {
			style = screen.Yellow
		}
		// Every bar has a colour of as many bytes, so that the columns stay aligned.
		rows = append(rows, []string{ordinal(pod), s.Out.Paint(style, screen.Bar(shares[pod], most)),
			Percent(shares[pod]), plural(counts[pod], "cluster")})
	}
	s.Out.Table(append([][]string{{"REPLICA", "SHARE OF THE WORK", "", ""}}, rows...))
	s.Out.Say("max load over ideal: %.2f", s.Imbalance())
}

// shares are each replica's part of the work and how many clusters it owns.
func (s *Stage) shares() (share map[string]float64, clusters map[string]int) {
	share, clusters = map[string]float64{}, map[string]int{}
	total := s.Site.Fleet.Total()
	for pod, work := range s.Site.Exporter.Load() {
		share[pod] = work.Share(total)
		clusters[pod] = 0
	}
	for _, pods := range s.Site.Exporter.Owners() {
		for _, pod := range pods {
			clusters[pod]++
		}
	}
	return share, clusters
}

// Imbalance is the heaviest replica's load over the mean of all.
func (s *Stage) Imbalance() float64 {
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

// OwnedOnce counts the clusters that exactly one running replica owns.
func (s *Stage) OwnedOnce() int {
	n := 0
	for _, pods := range s.Site.Exporter.Owners() {
		if len(pods) == 1 {
			n++
		}
	}
	return n
}

// OwnersAre compares the replicas' own view with the plan.
func (s *Stage) OwnersAre(p *site.Plan) error {
	for name, pods := range s.Site.Exporter.Owners() {
		row, planned := p.Clusters[name]
		if !planned && name == s.Site.Fleet.InCluster.Name {
			continue // without a Secret there is nothing to hold
		}
		if want := fleet.Workload + "-" + strconv.Itoa(row.Replica); !planned || len(pods) != 1 || pods[0] != want {
			return fmt.Errorf("cluster %q is owned by %v, want %s alone", name, pods, want)
		}
	}
	return nil
}

// Versions are the resourceVersions of everything that ballast might write, but its own.
func (s *Stage) Versions(ctx context.Context) (map[string]string, error) {
	secrets, err := s.Site.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for name, secret := range secrets {
		versions["secret "+name] = secret.ResourceVersion
	}
	sts, err := s.Site.StatefulSet(ctx)
	if err != nil {
		return nil, err
	}
	versions["stateful set "+sts.Name] = sts.ResourceVersion
	return versions, nil
}

// Untouched checks that nothing has changed since, and says so.
func (s *Stage) Untouched(ctx context.Context, what string, before map[string]string) error {
	now, err := s.Versions(ctx)
	if err != nil {
		return err
	}
	for _, object := range slices.Sorted(maps.Keys(before)) {
		if now[object] != before[object] {
			return fmt.Errorf("%s: %s has resourceVersion %q, want %q as before", what, object, now[object],
				before[object])
		}
	}
	s.Passed("%s", what)
	return nil
}

func ordinal(pod string) string { return pod[strings.LastIndex(pod, "-")+1:] }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Percent writes a part of a whole.
func Percent(share float64) string { return fmt.Sprintf("%5.1f %%", 100*share) }
