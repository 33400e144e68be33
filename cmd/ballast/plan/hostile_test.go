package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/status/overview"
	"ballast/planner/change/harm"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/compare"
	"ballast/planner/cycle/input"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// hostileInputs are two Secrets of one server that differ, as in the report of this fault.
func hostileInputs(server string) input.Inputs {
	secret := func(name, shard string) discover.Secret {
		return discover.Secret{Name: name, Cluster: "x", Server: server, Shard: discover.ParseShard([]byte(shard)), HasData: true}
	}
	in := input.Inputs{Now: fixture.Noon, Config: config.Default(), Discovered: discover.Input{Namespace: "argocd", Secrets: []discover.Secret{secret("x1", "0"), secret("x2", "1")}},
		Workload: discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd", Name: fixture.ControllerName, Replicas: 2, ReadyReplicas: 2}}
	in.Fetched = nil
	return in
}

func TestPlanOfAHostileServer(t *testing.T) {
	for name, test := range map[string]struct{ server, want string }{
		"terminal escapes": {"https://a\x1b]0;owned\x07\x1b[2K\rNothing was changed.\u202e", `https://a\u001b]0;owned\u0007\u001b[2K Nothing was changed.\u202e`},
		"credentials":      {"https://user:" + fixture.SecretText + "@host/?token=" + fixture.SecretText, "https://***@host/?token=***"},
	} {
		t.Run(name, func(t *testing.T) {
			in := hostileInputs(test.server)
			out := cycle.Run(in)
			var table, text bytes.Buffer
			fixture.MustDo(t, writePlanTable(&table, in, out, true))
			fixture.MustDo(t, writePlanJSON(say.Clean(&text), in, out))
			fixture.CheckOutput(t, "the table", table.String())
			fixture.CheckOutput(t, "the JSON", text.String())
			want := "  - discover: Secrets \"x1\", \"x2\" share the server " + test.want + " and differ in data.shard; Argo CD takes whichever it saw last: give all the same shard, or delete all but one and " +
				"change the shard of that one afterwards (a pin and back): until then Argo CD has it on replica 0\n"
			if !strings.Contains(table.String(), want) {
				t.Errorf("%q is missing in\n%s", want, table.String())
			}
		})
	}
}

// Saved inputs run again, and hold no credential; clusters keep their place in what Prometheus said.
func TestSavedInputsHoldNoCredentials(t *testing.T) {
	server := "https://user:" + fixture.SecretText + "&\"@host"
	in := hostileInputs(server)
	in.Config.Poll.Prometheus.URL = "http://prom:" + fixture.SecretText + "@prometheus:9090?token=" + fixture.SecretText
	in.Owners.Metric, in.Owners.Err = "owners", "Post \""+server+"\": EOF"
	in.Discovered.Secrets = append(in.Discovered.Secrets, discover.Secret{Name: "y", Cluster: "y", Server: "\u202e" + fixture.SecretText + "@nowhere", HasData: true})
	file := filepath.Join(t.TempDir(), "inputs.json")
	masked, err := saveInputs(file, in)
	fixture.MustDo(t, err)
	text, err := os.ReadFile(file)
	fixture.MustDo(t, err)
	fixture.CheckOutput(t, "the file", string(text))
	var again input.Inputs
	fixture.MustDo(t, json.Unmarshal(text, &again))
	got := []string{again.Config.Poll.Prometheus.URL, again.Owners.Err}
	for _, s := range again.Discovered.Secrets {
		got = append(got, s.Server)
	}
	want := []string{"http://***@prometheus:9090?token=***", `Post "https://***@host": EOF`, "https://***@host", "https://***@host", "***@nowhere"}
	if diff := cmp.Diff(want, got); diff != "" || masked != 3 {
		t.Errorf("%d are masked (-want +got):\n%s", masked, diff)
	}
}

// oddServers are URLs whose credentials only their place in the text tells.
func oddServers() []string {
	var servers []string
	for _, format := range []string{
		"user:%s@h", "https:/user:%s@h", `https:\\user:%s@h`, "https:// u:%s@h", "https://us er:%s@h",
		"https://h?tok%%65n=%s", "https://h?to\u200bken=%s", "https://h?a=b%%26token=%s",
		"https://u:%s@host", "https://v:%s@host/", "https://u:%s@taken-by-another", "https://u:%s@taken",
	} {
		servers = append(servers, fmt.Sprintf(format, fixture.SecretText))
	}
	return append(servers, "https://***@taken", "https://plain")
}

// oddInputs are a Secret for each of these servers, with a row of its hash in the plan.
func oddInputs() input.Inputs {
	in := hostileInputs("https://both")
	in.InForce = &plan.Plan{Revision: 1, Mode: plan.Observe, Replicas: 2, Clusters: map[string]plan.Row{}}
	in.Observed.Work = map[int]input.ServerWork{0: {}}
	for i, server := range oddServers() {
		name := fmt.Sprintf("odd%02d", i)
		in.Discovered.Secrets = append(in.Discovered.Secrets,
			discover.Secret{Name: name, Cluster: name, Server: server, HasData: true})
		in.InForce.Clusters[name] = plan.Row{Replica: i % 2, Server: plan.ServerHash(server)}
		in.Observed.Work[0][plan.NormalizeServer(server)] = harm.Work{Reconciles: uint64(i)}
	}
	return in
}

// TestOddServersAreMaskedInJSON: each has a field of its own there, in every list.
func TestOddServersAreMaskedInJSON(t *testing.T) {
	in := oddInputs()
	out := cycle.Run(in)
	now := compare.InForce(in)
	for name, print := range map[string]func(io.Writer) error{
		"plan":   func(w io.Writer) error { return writePlanJSON(w, in, out) },
		"status": func(w io.Writer) error { return say.JSON(w, overview.Overview{Replicas: now.Replicas}) },
		"steps":  func(w io.Writer) error { return say.JSON(w, []diff.Step{diff.Nudge{Server: oddServers()[0]}}) },
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			fixture.MustDo(t, print(say.Clean(&text)))
			fixture.CheckOutput(t, "the JSON", text.String())
			if got := strings.Count(text.String(), `"server": "***@h"`); got == 0 || !json.Valid(text.Bytes()) {
				t.Errorf("%d servers are masked in\n%s", got, text.String())
			}
		})
	}
}

// TestSavedInputsRunAgain: servers that differed still do, and what was the same server's still is.
func TestSavedInputsRunAgain(t *testing.T) {
	in := oddInputs()
	file := filepath.Join(t.TempDir(), "inputs.json")
	masked, err := saveInputs(file, in)
	fixture.MustDo(t, err)
	text, err := os.ReadFile(file)
	fixture.MustDo(t, err)
	fixture.CheckOutput(t, "the file", string(text))
	var again input.Inputs
	fixture.MustDo(t, json.Unmarshal(text, &again))
	var got []string
	for i, s := range again.Discovered.Secrets[2:] {
		got = append(got, s.Server)
		if row := again.InForce.Clusters[s.Name]; row.Server != plan.ServerHash(s.Server) {
			t.Errorf("the row of %s has the hash %s, its server %s", s.Server, row.Server, plan.ServerHash(s.Server))
		}
		if work := again.Observed.Work[0][plan.NormalizeServer(s.Server)]; work.Reconciles != uint64(i) {
			t.Errorf("%s has the work of another: %v", s.Server, work)
		}
	}
	want := []string{
		"***@h", "***@h#2", "***@h#3", "https://***@h", "https://***@h#2",
		"https://h?tok%65n=***", "https://h?to\u200bken=***", "https://h?a=***",
		"https://***@host", "https://***@host#2/", "https://***@taken-by-another", "https://***@taken#2",
		"https://***@taken", "https://plain",
	}
	if diff := cmp.Diff(want, got); diff != "" || masked != 12 {
		t.Errorf("%d are masked (-want +got):\n%s", masked, diff)
	}
	was, is := cycle.Run(in), cycle.Run(again)
	if diff := cmp.Diff(decisions(was), decisions(is)); diff != "" || len(is.Next.Clusters) == 0 {
		t.Errorf("it decides otherwise on %d clusters (-then +again):\n%s", len(is.Next.Clusters), diff)
	}
}

// decisions are what a cycle says that has no server in it.
func decisions(out cycle.Outcome) map[string]any {
	rows := map[string]int{}
	for name, row := range out.Next.Clusters {
		rows[name] = row.Replica
	}
	var kinds []string
	for _, p := range out.Problems {
		kinds = append(kinds, string(p.Phase)+" "+p.Kind+" "+p.Subject)
	}
	return map[string]any{"rows": rows, "replicas": out.Next.Replicas, "changed": out.Changed, "reason": out.Reason, "problems": kinds}
}

func TestSavedInputsThatCannotBeMaskedAreNotSaved(t *testing.T) {
	in := hostileInputs("n@")
	in.Tripped = "a\n@"
	file := filepath.Join(t.TempDir(), "inputs.json")
	if _, err := saveInputs(file, in); err == nil {
		t.Error("they are saved")
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file stands: %v", err)
	}
}
