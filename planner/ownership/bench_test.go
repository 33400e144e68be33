package ownership

import (
	"encoding/json"
	"fmt"
	"testing"

	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
)

// BenchmarkJudge joins and judges a fleet of 5,000 clusters on 16 pods, and says how large the memory of it is.
func BenchmarkJudge(b *testing.B) {
	const clusters, pods = 5000, 16
	var in discover.Input
	reports := make([]scrape.PodReport, pods)
	for i := range reports {
		reports[i] = answer(i, map[string]scrape.ServerReport{})
	}
	rows, apps := map[string]int{}, Applications{}
	for i := range clusters {
		name := fmt.Sprintf("prod-eu-central-%04d", i)
		server := "https://api." + name + ".example.com:6443"
		in.Secrets = append(in.Secrets, secret(name, server))
		reports[i%pods].Servers[server] = scrape.ServerReport{Apps: 4, Cached: true, CacheAge: 12, Connected: true}
		rows[name], apps[server] = i%pods, 4
	}
	fleet := fleetOf(b, in)
	intended := func(name string) (int, bool) { replica, found := rows[name]; return replica, found }
	var memory Memory
	b.ReportAllocs()
	for b.Loop() {
		memory, _ = Judge(memory, Join(reports, fleet, apps), intended, noon(), Grace{})
	}
	text, err := json.Marshal(memory)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(text)), "memory-bytes")
}
