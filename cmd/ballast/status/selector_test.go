package status

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/diff"
)

// beside is a fleet of which one cluster Secret is another team's, and carries another shard than its row.
func beside(selector string) *fixture.World {
	w := fixture.QuietWorld()
	w.Config += selector
	w.Teams, w.Shards = map[string]string{"dev": "theirs"}, map[string]int{"dev": 1, "lab": 1}
	return w
}

// notTheirs selects every cluster Secret but those of that team.
const notTheirs = `discover: {selector: {matchLabels: {argocd.argoproj.io/secret-type: cluster}, ` +
	`matchExpressions: [{key: team, operator: NotIn, values: [theirs]}]}}` + "\n"

// TestStatusKnowsTheSelectedClustersAlone: of a Secret that discover.selector leaves out nothing is to be changed, whatever its row says.
func TestStatusKnowsTheSelectedClustersAlone(t *testing.T) {
	for selector, want := range map[string][]string{notTheirs: {"lab"}, "": {"dev", "lab"}} {
		differ := []string{}
		for _, step := range look(t, beside(selector)).Drift {
			if s, ok := step.(diff.PatchShard); ok {
				differ = append(differ, s.Secret)
			}
		}
		if d := cmp.Diff(want, differ); d != "" {
			t.Errorf("selector %q: Secrets that differ from the plan (-want +got):\n%s", selector, d)
		}
	}
}

func TestThePageHasTheSelectedClustersAlone(t *testing.T) {
	for selector, want := range map[string]bool{notTheirs: false, "": true} {
		o := &options{plan: "ballast-plan", config: "ballast-config", address: "127.0.0.1:0", now: func() time.Time { return fixture.Noon }}
		o.cluster.Namespace = "argocd"
		ctx, interrupt := context.WithCancel(t.Context())
		out, in := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- o.serveFleet(ctx, beside(selector).Client(t), in) }()
		said, err := bufio.NewReader(out).ReadString('\n')
		fixture.MustDo(t, err)
		answer, err := http.Get(strings.TrimPrefix(strings.TrimSuffix(said, " until this command is interrupted.\n"), "The page of the fleet is at "))
		fixture.MustDo(t, err)
		text, err := io.ReadAll(answer.Body)
		fixture.MustDo(t, err)
		fixture.Holds(t, string(text), "https://prod-eu")
		if shown := strings.Contains(string(text), "https://dev"); shown != want {
			t.Errorf("selector %q: the page shows the other team's cluster: %t, want %t", selector, shown, want)
		}
		interrupt()
		if err := <-ended; err != nil {
			t.Errorf("it ends with %v", err)
		}
	}
}
