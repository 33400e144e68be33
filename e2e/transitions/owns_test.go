package transitions

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"ballast/e2e/gaps"
	"ballast/planner/sim"
)

// TestTheSimulatorsOwnersAreArgoCDs holds the rule by which package sim's pods own clusters to Argo CD's own package.
func TestTheSimulatorsOwnersAreArgoCDs(t *testing.T) {
	v := startViews(t)
	rapid.Check(t, func(t *rapid.T) {
		env, ordinal := rapid.IntRange(0, 20).Draw(t, "env"), rapid.IntRange(0, 22).Draw(t, "ordinal")
		start := gaps.ViewStart{Shard: strconv.Itoa(ordinal), Algorithm: "legacy"}
		if env > 0 || rapid.Bool().Draw(t, "env is there") {
			start.Replicas = strconv.Itoa(env)
		}
		var urls []string
		want := map[string][]int{}
		for i, shard := range rapid.SliceOfN(rapid.IntRange(0, 25), 1, 8).Draw(t, "shards") {
			url, text := fmt.Sprintf("https://c%02d:6443", i), strconv.Itoa(shard)
			start.Secrets = append(start.Secrets, gaps.ViewSecret{UID: "uid-" + url, Name: fmt.Sprintf("c%02d", i), Server: url, Shard: &text})
			urls, want[url] = append(urls, url), nil
			if sim.Owns(ordinal, env, shard) {
				want[url] = []int{ordinal}
			}
		}
		q := question{what: fmt.Sprintf("pod %d starts with env %q", ordinal, start.Replicas), urls: urls}
		if err := v.ask(q, []gaps.Step{{Do: gaps.DoReset}, {Do: gaps.DoStart, Pod: strconv.Itoa(ordinal), Start: &start}}); err != nil {
			t.Fatal(err)
		}
		_, got, err := v.answer()
		if err != nil {
			t.Fatal(err)
		}
		for i, url := range urls {
			if !slices.Equal(got[url], want[url]) {
				t.Fatalf("%s, with shard %s: to Argo CD %v own it, to package sim %v", q.what, *start.Secrets[i].Shard, got[url], want[url])
			}
		}
	})
}
