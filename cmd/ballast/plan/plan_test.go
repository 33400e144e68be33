package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/preview"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

func TestPlanSaysWhatItWouldTake(t *testing.T) {
	three, sixteen, four := plan.Count{Replicas: 3, ControllerReplicas: 3}, plan.Count{Replicas: 3, ControllerReplicas: 16}, plan.Count{Replicas: 4, ControllerReplicas: 4}
	live := func(change func(*preview.Forecast)) preview.Forecast {
		a := preview.Forecast{Mode: plan.ModeLive, From: sixteen, To: sixteen, Moves: 17, PerWave: 5, Waves: 4, Limited: true, Done: fixture.Noon}
		change(&a)
		return a
	}
	for want, a := range map[string]preview.Forecast{
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it; the move budget has room for all of it now.\n":          live(func(*preview.Forecast) {}),
		"Rollout live: at least 4 waves of at most 5 clusters, and nothing restarts for it; by the move budget it takes 1h20m at least.\n": live(func(a *preview.Forecast) { a.Done = fixture.Noon.Add(80 * time.Minute) }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it.\n":                                                      live(func(a *preview.Forecast) { a.Limited = false }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it; the move budget never has room for it.\n":               live(func(a *preview.Forecast) { a.Done = time.Time{} }),
		"Rollout live: 3 -> 4 replicas, 1 wave of at most 1 cluster, and nothing restarts for it.\n": live(func(a *preview.Forecast) {
			a.To.Replicas, a.Moves, a.Waves, a.PerWave, a.Limited = 4, 1, 1, 1, false
		}),
		"Rollout live: 3 -> 4 replicas, 4 waves of at most 5 clusters, and every pod restarts.\n":                                                            live(func(a *preview.Forecast) { a.To.Replicas, a.Restarts, a.Limited = 4, true, false }),
		"Rollout live: 4 waves of at most 5 clusters, 3 -> 2 replicas, and nothing restarts for it.\n":                                                       live(func(a *preview.Forecast) { a.To.Replicas, a.Limited = 2, false }),
		"Rollout live: 3 -> 2 replicas, and nothing restarts for it.\n":                                                                                      live(func(a *preview.Forecast) { a.To.Replicas, a.Moves, a.Waves = 2, 0, 0 }),
		"Rollout live: nothing moves.\n  Before that, once and for all: ARGOCD_CONTROLLER_REPLICAS becomes 16, which restarts the application-controller.\n": live(func(a *preview.Forecast) { a.Moves, a.Waves, a.Once = 0, 0, true }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it.\n  It waits: Secret \"a\" carries no shard.\n":                            live(func(a *preview.Forecast) { a.Limited, a.Missing = false, []string{`Secret "a" carries no shard`} }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it.\n  It waits: b; and 2 more like that.\n":                                  live(func(a *preview.Forecast) { a.Limited, a.Missing = false, []string{"b", "c", "d"} }),
		"Rollout x0y: every replica stops, 17 clusters move at once, 4 replicas come back.\n":                                                                {Mode: plan.ModeX0Y, From: three, To: four, Moves: 17, Restarts: true},
		"Rollout x0y: every replica stops, no cluster moves, 4 replicas come back.\n":                                                                        {Mode: plan.ModeX0Y, From: three, To: four, Restarts: true},
		"Rollout default: 3 -> 4 replicas, 17 clusters move at once, and every pod restarts.\n":                                                              {Mode: plan.ModeDefault, From: three, To: four, Moves: 17, Restarts: true},
		"Rollout default: 1 cluster moves, and nothing restarts for it.\n":                                                                                   {Mode: plan.ModeDefault, From: three, To: three, Moves: 1},
	} {
		var b bytes.Buffer
		writeAhead(&b, a, fixture.Noon)
		if diff := cmp.Diff("\n"+want, b.String()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", a, diff)
		}
	}
}

func TestPlanGolden(t *testing.T) {
	for name, change := range map[string]func(*input.Inputs){
		"ahead": func(in *input.Inputs) { in.Config.Mode = plan.Observe },
		"under-way": func(in *input.Inputs) {
			in.InForce.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: in.Now, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 4, ControllerReplicas: 16, Wave: 1, Waves: 3}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := fixture.SeenCycle(t, "elected-move")
			change(&in)
			var table, text bytes.Buffer
			out := cycle.Run(in)
			fixture.MustDo(t, writePlanTable(&table, in, out, false))
			fixture.MustDo(t, writePlanJSON(&text, in, out))
			var result struct {
				Ahead json.RawMessage `json:"ahead"`
			}
			fixture.MustDo(t, json.Unmarshal(text.Bytes(), &result))
			fixture.Golden(t, name, table.String()+"--- json, ahead\n"+strings.TrimSpace(string(result.Ahead))+"\n")
		})
	}
}

// TestALongPlanGolden: the table names twenty moves and says how many more there are, wide has each, and json is whole.
func TestALongPlanGolden(t *testing.T) {
	in := fixture.SeenCycle(t, "elected-move")
	in.Config.Mode = plan.Observe
	in.Config.Partition = config.Partition{LPT: &config.LPT{}, Replicas: &config.Replicas{Fixed: 16}}
	for name, row := range in.InForce.Clusters {
		row.Replica = 0
		in.InForce.Clusters[name] = row
	}
	for i := range in.Discovered.Secrets {
		in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid}
	}
	out := cycle.Run(in)
	moves := out.Candidate.Moves
	if len(moves) <= someMoves {
		t.Fatalf("%d moves, want more than %d", len(moves), someMoves)
	}
	more := fmt.Sprintf("... and %d more", len(moves)-someMoves)
	for form, golden := range map[string]string{"table": "long", "wide": "wide", "json": "json"} {
		var text bytes.Buffer
		fixture.MustDo(t, (&options{output: form}).write(&text, in, out))
		fixture.Golden(t, golden, text.String())
		if cut := strings.Contains(text.String(), more); cut != (form == "table") {
			t.Errorf("%s: %q is there: %t", form, more, cut)
		}
		for _, m := range moves {
			if form == "wide" && !strings.Contains(text.String(), "\n  "+m.Cluster+" ") {
				t.Errorf("wide leaves %s out", m.Cluster)
			}
		}
	}
}

// TestWhatItGainsAndCostsIsTold also where moves pay and nothing may begin: in the table, in json, and on the page.
func TestWhatItGainsAndCostsIsTold(t *testing.T) {
	text, err := os.ReadFile(fixture.Checkout(t, "docs", "examples", "cycle.json"))
	fixture.MustDo(t, err)
	var in input.Inputs
	fixture.MustDo(t, json.Unmarshal(text, &in))
	in.Config.Mode = plan.Observe
	in.Memory.Savings = evaluate.Savings{At: in.Now, Of: map[int]float64{0: 720}}
	out := cycle.Run(in)
	const begins, says = "nothing begins while ",
		"mends 0.179 of overload, would have saved 0.121 load hours of overload so far, and costs 0.0606"
	if !strings.HasPrefix(out.Candidate.Verdict, begins) {
		t.Fatalf("the verdict is %q, want %q", out.Candidate.Verdict, begins)
	}
	for form, want := range map[string]string{"table": "  Gains and costs: " + says + ".\n", "html": says, "json": `"worth": {`} {
		var b bytes.Buffer
		fixture.MustDo(t, (&options{output: form}).write(&b, in, out))
		fixture.Holds(t, b.String(), want)
	}
}

// TestNoVerdictSaysTwiceWhatIsSaved: where moves wait until they pay the verdict has both sides, and the line after it the rest.
func TestNoVerdictSaysTwiceWhatIsSaved(t *testing.T) {
	text, err := os.ReadFile(fixture.Checkout(t, "docs", "examples", "cycle.json"))
	fixture.MustDo(t, err)
	var in input.Inputs
	fixture.MustDo(t, json.Unmarshal(text, &in))
	out := cycle.Run(in)
	const both = "would have saved 0 load hours of overload so far, and costs 0.0606"
	if want := "waits until it pays: it " + both; out.Candidate.Verdict != want {
		t.Fatalf("the verdict is %q, want %q", out.Candidate.Verdict, want)
	}
	for form, want := range map[string]string{"table": "  Gains and costs: mends 0.179 of overload.\n", "html": "mends 0.179 of overload"} {
		var b bytes.Buffer
		fixture.MustDo(t, (&options{output: form}).write(&b, in, out))
		fixture.Holds(t, b.String(), want)
		if n := strings.Count(b.String(), both); n != 1 {
			t.Errorf("%s says it %d times", form, n)
		}
	}
}

// TestThePlanDocumentGolden: what -o yaml prints is the document that would be written, before and after there is one.
func TestThePlanDocumentGolden(t *testing.T) {
	var all strings.Builder
	for _, name := range []string{"elected-move", "first-plan-of-legacy"} {
		in := fixture.SeenCycle(t, name)
		var text bytes.Buffer
		fixture.MustDo(t, (&options{output: "yaml"}).write(&text, in, cycle.Run(in)))
		if _, err := codec.Decode(text.String()); err != nil {
			t.Errorf("%s: it is no plan: %v", name, err)
		}
		all.WriteString("--- " + name + "\n" + text.String())
	}
	fixture.Golden(t, "document", all.String())
}

// TestThePageOfAPlanSaysWhatTheTableDoes: as one file that loads nothing, with each move where it is from and where it goes.
func TestThePageOfAPlanSaysWhatTheTableDoes(t *testing.T) {
	in := fixture.SeenCycle(t, "elected-move")
	in.Config.Mode = plan.Observe
	out := cycle.Run(in)
	var text bytes.Buffer
	fixture.MustDo(t, writePlanHTML(&text, in, out))
	fixture.Holds(t, text.String(), "What each replica carries now", "What each would carry", "Argo CD&#39;s legacy", "Nothing was changed.")
	if len(out.Candidate.Moves) == 0 {
		t.Fatal("nothing moves")
	}
	for _, m := range out.Candidate.Moves {
		fixture.Holds(t, text.String(), fmt.Sprintf(`<th scope="row">%s</th>`, m.Cluster), fmt.Sprintf(`<span class="mark moving">moving</span> replica %d to %d: %s `, m.From, m.To, m.Reason),
			fmt.Sprintf("replica %d · %s: load ", m.From, m.Cluster), fmt.Sprintf("replica %d · %s: load ", m.To, m.Cluster))
	}
	for _, loads := range []string{" src=", "<link", "@import"} {
		if strings.Contains(text.String(), loads) {
			t.Errorf("the file has %q", loads)
		}
	}
}
