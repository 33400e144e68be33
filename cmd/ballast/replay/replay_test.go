package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/planner/replay"
	"ballast/planner/replay/trace"
)

// typed is the command as a person runs it.
func typed(t *testing.T, stdin string, args ...string) (out, notes, failure string) {
	t.Helper()
	return fixture.AsPerson(t, fixture.RootOf(NewCommand()), "", stdin, append([]string{"replay"}, args...)...)
}

// file is a file with that text.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	fixture.MustDo(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const fixed = "testdata/trace.csv"

// TestAFixedTraceIsAlwaysTheSameTable, and the same figures as JSON.
func TestAFixedTraceIsAlwaysTheSameTable(t *testing.T) {
	configs := []string{"--config", "shipped", "--config", "lpt", "--config", "legacy", "--config", "round-robin", "--config", "consistent-hashing", "--config", "full=" +
		file(t, "c.yaml", head+"partition: {capacity: '0.45'}\nevaluate: {none: {}}\nchange: {moves: {rate: []}}\n")}
	table, _, failure := typed(t, "", append([]string{fixed}, configs...)...)
	if failure != "" {
		t.Fatal(failure)
	}
	fixture.Golden(t, "table", table)
	asJSON, _, _ := typed(t, "", append([]string{fixed, "-o", "json"}, configs...)...)
	fixture.Golden(t, "json", asJSON)

	text, err := os.ReadFile(fixed)
	fixture.MustDo(t, err)
	piped, _, _ := typed(t, string(text), append([]string{"-"}, configs...)...)
	if want := strings.Replace(table, fixed, "standard input", 1); piped != want {
		t.Errorf("by standard input it is\n%s\nwant\n%s", piped, want)
	}
}

const head = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"

// TestTheFormsStandAlone: the page loads nothing and runs nothing, and what is written in a name stays a text.
func TestTheFormsStandAlone(t *testing.T) {
	name := "<b>&x"
	config := file(t, "c.yaml", head)
	for _, form := range []string{"html", "svg"} {
		out, _, failure := typed(t, "", fixed, "--config", name+"="+config, "-o", form)
		if failure != "" {
			t.Fatal(failure)
		}
		fixture.Holds(t, out, "<svg ", "&lt;b&gt;&amp;x", "7 clusters, 2026-11-20 to 2026-11-20")
		if found := regexp.MustCompile(`(?i)<b>&x|<script|<link|<img|src=|href="[^#]|url\(|@import`).FindString(out); found != "" {
			t.Errorf("%s has %q in it", form, found)
		}
	}
}

func TestMistakesAreToldWithTheirMend(t *testing.T) {
	bad := file(t, "bad.yaml", head+"mode: hold\n")
	odd := file(t, "odd.csv", "time,cluster,load\n1,a,1\n61,a,x\n121,a,-1\n")
	late := file(t, "late.csv", "time,cluster,load\n1,a,1\n61,a,1\n121,a,-1\n")
	apps := file(t, "apps.csv", "time,cluster,apps\n1,a,1\n61,a,1\n")
	there := file(t, "there.jsonl", "x")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no load":          {nil, `there is no load to replay: name a TRACE, or say --generate "" for a synthetic week, or --last 7d`},
		"two loads":        {[]string{fixed, "--generate", ""}, "TRACE, --generate and --last are three loads: choose one"},
		"another form":     {[]string{fixed, "-o", "yaml"}, `--output: "yaml" is none of table, json, html and svg`},
		"no file":          {[]string{"nowhere.csv"}, `reading the trace "nowhere.csv": open nowhere.csv: no such file`},
		"a bad trace":      {[]string{odd}, `line 3: column "load": "x" is no number; leave it empty where there is no value`},
		"bad further on":   {[]string{late}, `reading the trace "` + late + `": line 4: column "load": metric "load" of cluster "a": -1 is no measurement`},
		"a bad setting":    {[]string{"--generate", "cluster=5"}, `--generate: "cluster" is no setting of a synthetic trace: they are seed, clusters`},
		"a bad config":     {[]string{fixed, "--config", bad}, `mode: Unsupported value: "hold"`},
		"no such config":   {[]string{fixed, "--config", "lpd"}, `--config: reading "lpd", which is no name of shipped, lpt, legacy, round-robin, consistent-hashing`},
		"half a config":    {[]string{fixed, "--config", "a="}, `--config: "a=" is neither a file, nor NAME=FILE, nor one of shipped, lpt`},
		"twice":            {[]string{fixed, "--config", "lpt", "--config", "lpt"}, `--config: two are called "lpt": give each a name, as lpt-2=FILE`},
		"installed":        {[]string{fixed, "--config", "installed"}, `--config: "installed" is asked of a cluster, with --last alone; name its file instead`},
		"other metrics":    {[]string{apps}, "shipped: poll.prometheus.metrics: the configuration asks for objects, events, reconciles, and the trace has apps"},
		"no replicas":      {[]string{fixed, "--replicas", "-1"}, "--replicas: -1 is none from 1 to 1000"},
		"no range":         {[]string{"--last", "soon"}, `--last: "soon" is not a length of time: write it like 90s, 1h30m or 7d`},
		"too fine":         {[]string{"--last", "7d", "--step", "1ms"}, "--step: 1ms is none from 1s to 24h"},
		"a lone server":    {[]string{fixed, "--prometheus", "http://x"}, "--prometheus: nothing is asked of it without --last"},
		"over another one": {[]string{fixed, "--record", there}, "it is there already: name another file, or replay that one"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, failure := typed(t, "", test.args...)
			if !strings.Contains(failure, test.want) || out != "" {
				t.Errorf("it prints %q and ends with\n%s\nwant\n%s", out, failure, test.want)
			}
		})
	}
}

// TestWhatIsRecordedIsReplayedAlike, in either format.
func TestWhatIsRecordedIsReplayedAlike(t *testing.T) {
	to := filepath.Join(t.TempDir(), "trace.jsonl")
	direct, _, failure := typed(t, "", fixed, "--record", to, "--config", "shipped", "-o", "json")
	if failure != "" {
		t.Fatal(failure)
	}
	again, _, failure := typed(t, "", to, "--config", "shipped", "-o", "json")
	if failure != "" {
		t.Fatal(failure)
	}
	if want := strings.Replace(direct, fixed, to, 1); again != want {
		t.Errorf("of the record it is\n%s\nwant\n%s", again, want)
	}
}

// TestEveryConfigurationIsEnforced: one that only observes would replay as nothing.
func TestEveryConfigurationIsEnforced(t *testing.T) {
	out, _, failure := typed(t, "", "--generate", "clusters=12,days=0.5", "--replicas", "2", "-o", "json", "--config", "shipped",
		"--config", "mine="+file(t, "c.yaml", head+"mode: Observe\n"))
	if failure != "" {
		t.Fatal(failure)
	}
	var got result
	fixture.MustDo(t, json.Unmarshal([]byte(out), &got))
	shipped, mine := got.Setups[0], got.Setups[1]
	mine.Name = shipped.Name
	if a, b := mustJSON(t, shipped), mustJSON(t, mine); a != b || shipped.Rollouts == 0 {
		t.Errorf("the same configuration in mode Observe is\n%s\nwant\n%s", b, a)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	fixture.MustDo(t, err)
	return string(text)
}

// TestProgressIsToldAfterASecond, and not before.
func TestProgressIsToldAfterASecond(t *testing.T) {
	s, err := trace.ParseSynthetic("clusters=2,days=0.01,step=1m")
	fixture.MustDo(t, err)
	g, err := trace.Generate(s)
	fixture.MustDo(t, err)
	var b bytes.Buffer
	now := fixture.Noon
	clock := func() time.Time { now = now.Add(400 * time.Millisecond); return now }
	shipped, _ := replay.Known(replay.Shipped)
	if _, err := play(t.Context(), g, []replay.Setup{shipped}, 0, &teller{out: &b, now: clock}); err != nil {
		t.Fatal(err)
	}
	if want := "replayed until 2026-11-20 09:02, 21 %\n"; b.String() != want {
		t.Errorf("it says %q, want %q", b.String(), want)
	}
}

// broken is a trace that ends in a fault.
type broken struct{ *trace.Generator }

var errBroken = errors.New("the disk is gone")

func (b broken) Next() (trace.Step, error) {
	if s, err := b.Generator.Next(); !errors.Is(err, io.EOF) {
		return s, err
	}
	return trace.Step{}, errBroken
}

func TestAFaultEndsTheReplay(t *testing.T) {
	s, err := trace.ParseSynthetic("clusters=2,days=0.05")
	fixture.MustDo(t, err)
	g, err := trace.Generate(s)
	fixture.MustDo(t, err)
	shipped, _ := replay.Known(replay.Shipped)
	if _, err := play(t.Context(), broken{g}, []replay.Setup{shipped, shipped}, 0, &teller{out: io.Discard, now: time.Now}); !errors.Is(err, errBroken) || say.ExitCode(err) != 1 {
		t.Errorf("it ends with %v, want %v", err, errBroken)
	}
}

// TestAnInterruptedReplayEndsAtOnce, and not with what is ahead of the setups.
func TestAnInterruptedReplayEndsAtOnce(t *testing.T) {
	s, err := trace.ParseSynthetic("clusters=2,days=1")
	fixture.MustDo(t, err)
	g, err := trace.Generate(s)
	fixture.MustDo(t, err)
	shipped, _ := replay.Known(replay.Shipped)
	run, err := replay.NewRun(shipped, g.Header(), 0)
	fixture.MustDo(t, err)
	feed := make(chan trace.Step, 1)
	step, err := g.Next()
	fixture.MustDo(t, err)
	feed <- step
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if report, err := runs(ctx, run, "shipped", feed); err != nil || report.Cycles != 0 {
		t.Errorf("%d cycles ran after the interruption, %v", report.Cycles, err)
	}
	s.Days = 0.005 // seven steps, which all fit ahead
	short, err := trace.Generate(s)
	fixture.MustDo(t, err)
	for _, source := range []trace.Source{g, short} {
		if _, err := play(ctx, source, []replay.Setup{shipped}, 0, &teller{out: io.Discard, now: time.Now}); !errors.Is(err, context.Canceled) ||
			!strings.HasPrefix(err.Error(), "interrupted at ") {
			t.Errorf("it ends with %v", err)
		}
	}
}
