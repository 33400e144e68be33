package page_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"ballast/planner/cycle/problem"
	"ballast/planner/measure"
	"ballast/planner/observed"
	"ballast/planner/page"
	"ballast/planner/page/chart"
	"ballast/planner/page/sample"
	"ballast/planner/page/view"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/people"
	"ballast/planner/status"
	"ballast/planner/trend"
)

var update = flag.Bool("update", false, "write the golden files anew")

func html24(t testing.TB, f page.Fleet) []byte {
	t.Helper()
	text, err := view.HTML(page.Of(f))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestThePageIsTheSameBytes: of fixed fleets, whatever the order in which maps are ranged.
func TestThePageIsTheSameBytes(t *testing.T) {
	for name, fleet := range map[string]page.Fleet{
		"fleet-24": sample.Fleet(24),
		"no-plan":  {Now: sample.Now, Unseen: []string{"cluster Secrets: the rights to read that are missing"}},
		"at-rest":  atRest(),
	} {
		t.Run(name, func(t *testing.T) {
			got := html24(t, fleet)
			for range 3 {
				if again := html24(t, fleet); !bytes.Equal(got, again) {
					t.Fatal("the same fleet makes another page")
				}
			}
			file := filepath.Join("testdata", name+".golden.html")
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-golden +got (-update writes it anew):\n%s", diff)
			}
		})
	}
}

// atRest is a fleet in which nothing is wrong and nothing waits, of which no capacity is known.
func atRest() page.Fleet {
	f := sample.Fleet(6)
	f.Document.Plan.Rollout, f.Document.Plan.Sizes, f.Kept, f.Pins = nil, nil, f.Kept[:1], nil
	f.Trend = trend.Trend{}
	f.Document.Pins = nil
	f.Status = &status.Status{Leader: "ballast-planner-0", LookedAt: sample.Now, Revision: 118,
		Conditions: []status.Condition{{Type: status.Degraded, Status: status.False, Reason: status.AsPlanned, LastTransitionTime: sample.Now.Add(-time.Hour)}}}
	return f
}

// TestWhatIsWrongComesFirst: what people are told, the worst above the rest.
func TestWhatIsWrongComesFirst(t *testing.T) {
	f := sample.Fleet(24)
	f.Document.PinProblems = []people.PinProblem{{Line: 3, Message: "no number"}}
	f.Status.Unwell = []status.Unwell{{Replica: 2, Since: sample.Now.Add(-time.Hour), Message: "replica 2 is unwell: it has no pod"}}
	var got []string
	v := page.Of(f)
	for _, w := range v.Waits {
		got = append(got, fmt.Sprintf("%s: %s", w.Level, w.What))
	}
	want := []string{
		"bad: Replica 2 is unwell",
		"bad: Cluster " + f.Status.Orphaned[0].Cluster + " has no replica",
		"warn: A pin is not read",
		"warn: Replica 1: memory 8Gi instead of 6Gi",
		"info: poll: StaleSamples",
		"info: Rollout: Moving",
		"neutral: Levelling would move 4 clusters on 3 replicas",
		"neutral: Move budget",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	wait := view.Wait{Level: view.Bad, What: "Cluster " + f.Status.Orphaned[0].Cluster + " has no replica", Why: "replica 1 had it last", Times: "for 1m 35s"}
	if diff := cmp.Diff(wait, v.Waits[1]); diff != "" {
		t.Errorf("the cluster without a replica (-want +got):\n%s", diff)
	}
	if row := v.Replicas.Rows[2]; row.Level != view.Bad || row.State != "replica 2 is unwell: it has no pod" {
		t.Errorf("replica 2 is %+v", row)
	}
}

func TestNotesSayWhatHoldsEverything(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*page.Fleet)
		want   []view.Note
	}{
		"nothing": {func(*page.Fleet) {}, nil},
		"broken glass": {func(f *page.Fleet) { f.Document.BreakGlass = true },
			[]view.Note{{Level: view.Bad, Title: "Enforcement is off", Text: "A person broke the glass: every write passes but one to the plan and what policies refuse; ballast writes nothing of Argo CD's but what brings replicas back from a stop."}}},
		"tripped": {func(f *page.Fleet) { f.Document.Tripped = "3 pods restarted" },
			[]view.Note{{Level: view.Bad, Title: "ballast stopped itself", Text: "3 pods restarted. Look into it, then: ballast resume"}}},
		"paused": {func(f *page.Fleet) { f.Document.Paused = true },
			[]view.Note{{Level: view.Warn, Title: "Paused", Text: "Nothing new is decided, and enforcement goes on. It ends by: ballast resume"}}},
		"paused by a person": {func(f *page.Fleet) { f.Document.Paused, f.Pause = true, page.Pause{By: "alice", Why: "an upgrade"} },
			[]view.Note{{Level: view.Warn, Title: "Paused", Text: "alice froze it: an upgrade. Nothing new is decided, and enforcement goes on. It ends by: ballast resume"}}},
		"paused by nobody known": {func(f *page.Fleet) { f.Document.Paused, f.Pause = true, page.Pause{Why: "an upgrade"} },
			[]view.Note{{Level: view.Warn, Title: "Paused", Text: "It was frozen: an upgrade. Nothing new is decided, and enforcement goes on. It ends by: ballast resume"}}},
		"no leader": {func(f *page.Fleet) { f.Status.LookedAt = sample.Now.Add(-6 * time.Minute) },
			[]view.Note{{Level: view.Bad, Title: "No leader looks", Text: "The last look was 6m ago, at 2026-11-20 03:06:40 UTC: see the pods of the planner."}}},
		"a leader whose clock is ahead": {func(f *page.Fleet) { f.Status.LookedAt = sample.Now.Add(6 * time.Minute) },
			[]view.Note{{Level: view.Bad, Title: "The leader's clock is ahead", Text: "It looked at 2026-11-20 03:18:40 UTC, which is in 6m by the clock here: nobody can tell how old what it says is. " +
				"Set the clocks right."}}},
		"a plan of others": {func(f *page.Fleet) { f.Document.Plan, f.Document.PlanErr = nil, configmap.ErrDigest },
			[]view.Note{{Level: view.Bad, Title: "The plan is not in force", Text: configmap.ErrDigest.Error()}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := sample.Fleet(24)
			test.change(&f)
			if diff := cmp.Diff(test.want, page.Of(f).Notes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEachClusterIsMarked: by pins, moves, faults, and what is no row or no Secret.
func TestEachClusterIsMarked(t *testing.T) {
	f := atRest()
	p := f.Document.Plan
	p.Replicas, p.Clusters = 2, map[string]plan.Row{"a": {Replica: 0, Load: "0.3"}, "b": {Replica: 1, Load: "0.1"}, "c": {Replica: 0}, "d": {Replica: 0}, "e": {Replica: 1}}
	p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: sample.Now, From: plan.Count{Replicas: 2}, Replicas: 2, Moves: map[string]int{"b": 0}}
	f.Clusters = []plan.Shard{{ID: "a", Name: "one", Server: "https://user:word@a.example"}, {ID: "b"}, {ID: "c"}, {ID: "e"}, {ID: "f"}}
	f.Pins = plan.Pins{"a": 0, "c": 1}
	f.Status.Doubled = []status.Fault{{Cluster: "e", Since: sample.Now, Owners: []int{0, 1}}}
	v := page.Of(f)
	want := []view.ClusterRow{
		{Name: "a", Called: "one", Server: "https://***@a.example", At: "0", Load: "0.3", Share: "100.0%", Marks: []view.Mark{{Kind: view.Pinned, Says: "to replica 0"}}},
		{Name: "b", At: "1", Load: "0.1", Share: "100.0%", Marks: []view.Mark{{Kind: view.Moving, Says: "replica 1 to 0"}}},
		{Name: "c", At: "1", Load: "0", Share: "0.0%", Marks: []view.Mark{{Kind: view.Pinned, Says: "to replica 1"}}},
		{Name: "d", At: "0", Load: "0", Share: "0.0%", Marks: []view.Mark{{Kind: view.Gone, Says: "its Secret is not there"}}},
		{Name: "e", At: "1", Load: "0", Share: "0.0%", Marks: []view.Mark{{Kind: view.Doubled, Says: "replicas 0, 1 have it since 2026-11-20 03:12:40 UTC"}}},
		{Name: "f", At: "-", Load: "0", Share: "-", Marks: []view.Mark{{Kind: view.Unplanned, Says: "the plan does not have it yet"}}},
	}
	if diff := cmp.Diff(want, v.Clusters.Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pinned", "moving", "doubled", "new", "gone"}, v.Clusters.Marks); diff != "" {
		t.Errorf("marks to choose from (-want +got):\n%s", diff)
	}
}

func TestOnlyTheFirstPageOfClustersIsDrawnAtOnce(t *testing.T) {
	v, later := page.Of(sample.Fleet(250)), 0
	for i, row := range v.Clusters.Rows {
		if row.Later {
			later++
		}
		if row.Later != (i >= 100) {
			t.Errorf("row %d: later is %t", i, row.Later)
		}
	}
	if later != 150 {
		t.Errorf("%d rows are drawn later", later)
	}
}

// element is a tag with the names of its attributes.
type element string

// elements are a page's, counted. It fails where one is not closed, or has an attribute that its policy forbids.
func elements(t failer, text []byte) map[element]int {
	z, found := html.NewTokenizer(bytes.NewReader(text)), map[element]int{}
	void := []string{"meta", "link", "input", "br"}
	var open []string
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) || len(open) > 0 {
				t.Fatalf("the page ends within %v: %v", open, z.Err())
			}
			return found
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			names := []string{token.Data}
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || strings.Contains(a.Val, "javascript:") {
					t.Fatalf("<%s> has %s=%q", token.Data, a.Key, a.Val)
				}
				names = append(names, a.Key)
			}
			found[element(strings.Join(names, " "))]++
			if kind == html.StartTagToken && !slices.Contains(void, token.Data) {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			token := z.Token()
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("</%s> closes %v", token.Data, open)
			}
			open = open[:len(open)-1]
		case html.CommentToken:
			t.Fatalf("the page has a comment: %q", z.Token().Data)
		}
	}
}

type failer interface {
	Fatalf(format string, args ...any)
}

// written is a fleet in which others' texts are these, wherever others write any.
func written(text func() string) page.Fleet {
	f := sample.Fleet(12)
	p := f.Document.Plan
	word := func() string { return "a" + text() }
	rows, moves := map[string]plan.Row{}, map[string]int{}
	for i, n := range slices.Sorted(maps.Keys(p.Clusters)) {
		row := p.Clusters[n]
		row.Load = "0.0833"
		row.Replica = i % 2
		now := fmt.Sprintf("%03d%s", i, word())
		rows[now], f.Clusters[i] = row, plan.Shard{ID: now, Name: word(), Server: word()}
		switch i {
		case 2:
			moves[now] = 0
			row.Replica = 1
			rows[now] = row
		case 5:
			f.Pins = plan.Pins{now: 1}
		case 7:
			f.Status.Orphaned[0].Cluster = now
		}
	}
	p.Clusters, p.Rollout.Moves, f.Document.Pins = rows, moves, f.Pins
	p.Target.Namespace, p.Target.Name, p.Mode = word(), word(), plan.Mode(word())
	p.Sizes = &plan.Sizes{Default: plan.Resources{Requests: map[string]string{word(): word()}}}
	f.Document.Paused, f.Pause = true, page.Pause{By: word(), Why: word()}
	f.Document.Tripped, f.Document.PinProblems = word(), []people.PinProblem{{Message: word()}}
	f.Unseen = []string{word()}
	for i := range f.Kept {
		f.Kept[i].By, f.Kept[i].Reason, f.Kept[i].Plan.Mode = word(), word(), plan.Mode(fmt.Sprint(i, word()))
	}
	s := f.Status
	s.Leader, s.FailoverHeld, s.Rollout.Stage, s.Rollout.Waits = word(), word(), plan.Stage(word()), word()
	for i := range s.Conditions {
		s.Conditions[i] = status.Condition{Type: status.Type(word()), Status: status.State(word()), Reason: status.ConditionReason(word()), Message: word()}
	}
	s.Unwell = []status.Unwell{{Replica: 0, Message: word()}}
	s.Problems = []problem.Problem{{Phase: problem.Phase(word()), Kind: word(), Message: word(), Keeps: true}}
	s.Blocked[0].Resource, s.Blocked[0].From, s.Blocked[0].To, s.Blocked[0].Why = word(), word(), word(), word()
	s.Budget.Message, s.Candidate.Verdict = word(), word()
	for i := range f.Pods {
		f.Pods[i].Name = word()
		f.Pods[i].Size = &observed.Size{Has: plan.Resources{Limits: map[string]string{word(): word()}}, Resize: observed.Resize(word())}
	}
	return f
}

// checkWritten: whatever others write, the page has the same elements, and no character that hides or acts.
func checkWritten(t failer, text func() string) {
	plain, err := view.HTML(page.Of(written(func() string { return "x" })))
	if err != nil {
		t.Fatalf("%v", err)
	}
	content := page.Of(written(text))
	for name, form := range map[string]func(view.View) ([]byte, error){"served": view.HTML, "alone": view.Alone} {
		got, err := form(content)
		if err != nil || !utf8.Valid(got) {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.ContainsFunc(string(got), func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
			t.Fatalf("%s: the page has a character that does not show", name)
		}
		found := elements(t, got)
		if name == "alone" {
			continue
		}
		if diff := cmp.Diff(elements(t, plain), found); diff != "" {
			t.Fatalf("the text changes the page's elements (-plain +got):\n%s", diff)
		}
	}
}

// hostile are the pieces of what people write to be read as something else.
func hostile() []string {
	return []string{"<", ">", `"`, "'", "&", "`", "=", "</title>", "</script>", "<script>alert(1)</script>", "<!--", "-->", "]]>", "javascript:", "{{.}}",
		"&lt;", "&#60;", "\x00", "\x1b[2J", "\u202e", "\u2028", "\xff\xfe", "</svg>", "<img src=x onerror=alert(1)>", "</td></tr></table>", "https://u:p@h"}
}

func TestWhatOthersWriteIsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(rapid.SampledFrom(hostile()), rapid.String())
		texts := rapid.SliceOfN(rapid.Map(rapid.SliceOfN(piece, 1, 6), func(l []string) string { return strings.Join(l, "") }), 8, 8).Draw(t, "texts")
		i := 0
		checkWritten(t, func() string { i++; return texts[i%len(texts)] })
	})
}

func FuzzPage(f *testing.F) {
	for _, piece := range hostile() {
		f.Add(piece)
	}
	f.Fuzz(func(t *testing.T, text string) { checkWritten(t, func() string { return text }) })
}

// TestAPageThatStandsAloneLoadsNothing, and lets only its own script run.
func TestAPageThatStandsAloneLoadsNothing(t *testing.T) {
	text, err := view.Alone(page.Of(sample.Fleet(24)))
	if err != nil {
		t.Fatal(err)
	}
	for _, loads := range []string{"src=", "<link", "http://www", "url(http", "@import"} {
		if bytes.Contains(text, []byte(loads)) {
			t.Errorf("it has %q", loads)
		}
	}
	for _, a := range view.Assets()[:2] {
		if !bytes.Contains(text, a.Content) {
			t.Errorf("%s is not in it as it is", a.Path)
		}
	}
}

// TestAPageHasAnEnd: however many Secrets somebody makes, and in whichever words the page is drawn.
func TestAPageHasAnEnd(t *testing.T) {
	for clusters, want := range map[int]string{
		5000: "",
		5001: "1 more have no row: these are the first 5,000 of 5,001 clusters.",
		5120: "120 more have no row: these are the first 5,000 of 5,120 clusters.",
	} {
		v := page.Of(sample.Fleet(clusters))
		if len(v.Clusters.Rows) != 5000 || v.Clusters.More != want {
			t.Errorf("of %d clusters %d have a row: %q, want %q", clusters, len(v.Clusters.Rows), v.Clusters.More, want)
		}
		if text, err := view.HTML(v); err != nil || want != "" && !strings.Contains(string(text), `<p class="quiet">`+want+"</p>") {
			t.Errorf("of %d clusters the page does not say it: %v", clusters, err)
		}
		if got := v.Facts[0]; got.Label != "Clusters" || strings.ReplaceAll(got.Value, ",", "") != fmt.Sprint(clusters) {
			t.Errorf("of %d clusters it says %+v", clusters, got)
		}
	}
}

func BenchmarkPage5000(b *testing.B) {
	f := sample.Fleet(5000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := view.HTML(page.Of(f)); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLoadOverTimeIsOfEachQuarter: as of decisions before the trend begins, then as of its levels, with a gap where nobody led.
func TestLoadOverTimeIsOfEachQuarter(t *testing.T) {
	load := func(f float64) plan.Load { l, _ := plan.NewLoad(f); return l }
	level := func(ago time.Duration, fullest, mean float64) trend.Level {
		return trend.Level{At: sample.Now.Add(-ago), Fullest: load(fullest), Mean: load(mean), Replicas: 2}
	}
	decided := func(ago time.Duration, l string) chart.Kept {
		p := plan.Plan{Revision: 3, Replicas: 2, Clusters: map[string]plan.Row{"a": {Load: l}, "b": {Replica: 1, Load: "0.2"}}}
		return chart.Kept{Plan: p, Decided: chart.Decided{At: sample.Now.Add(-ago)}}
	}
	two := []trend.Level{level(2*time.Hour, 0.5, 0.2), level(30*time.Minute, 1, 0.25), level(15*time.Minute, 0.5, 0.25)}
	for name, test := range map[string]struct {
		kept          []chart.Kept
		levels        []trend.Level
		fullest, says string
		highest       string
	}{
		"decisions alone": {[]chart.Kept{decided(time.Hour, "0.4"), decided(4*time.Hour, "0.8")}, nil,
			"M56 22H395V147H508", "went from 0.8 to 0.4, and the average from 0.5 to 0.3, as of 2 decisions.", ""},
		"levels alone": {nil, two, "M56 147H112.5M395 22H451.5V147H508",
			"went from 0.5 to 0.5, and the average from 0.2 to 0.25, as of 3 levels of a quarter of an hour and 0 decisions.",
			"The highest is of 2026-11-20 02:42:40 UTC: the fullest of 2 replicas carried 1, 4.00 of the mean."},
		"levels after decisions": {[]chart.Kept{decided(time.Hour, "0.4"), decided(4*time.Hour, "0.8")}, two,
			"M56 72H282V147H310.3M451.5 22H479.8V147H508",
			"from 0.8 to 0.5, and the average from 0.5 to 0.25, as of 3 levels of a quarter of an hour and 2 decisions.",
			"The highest is of 2026-11-20 02:42:40 UTC: the fullest of 2 replicas carried 1, 4.00 of the mean."},
		"what lies ahead is left out": {nil, append(slices.Clone(two[:1]), level(-time.Hour, 9, 9)), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := sample.Fleet(6)
			f.Kept, f.Trend = test.kept, trend.Trend{Levels: test.levels}
			over := page.Of(f).Over
			if over == nil {
				over = &chart.Series{}
			}
			if over.Fullest != test.fullest || !strings.Contains(over.Says, test.says) || over.Highest != test.highest {
				t.Errorf("the line is %q\n%s\n%s", over.Fullest, over.Says, over.Highest)
			}
			if len(over.Points) != len(test.kept) {
				t.Errorf("%d decisions are marked", len(over.Points))
			}
		})
	}
}

// TestABoxSaysWhatWasMeasured: each metric with a value, at most twelve, with four digits, as of the oldest; of no value nothing.
func TestABoxSaysWhatWasMeasured(t *testing.T) {
	at := sample.Now.Unix()
	of := func(id string, value float64, at int64) measure.LastColumn {
		return measure.LastColumn{ID: id, Values: []float64{0, value}, At: []int64{0, at}}
	}
	var many []measure.LastColumn
	wants := "; "
	for i := range 13 {
		many = append(many, of(fmt.Sprint("m", i), float64(i), at))
		if i < 12 {
			wants += fmt.Sprintf("m%d %[1]d, ", i)
		}
	}
	for name, test := range map[string]struct {
		columns []measure.LastColumn
		want    string
	}{
		"none":     {nil, ""},
		"no value": {[]measure.LastColumn{of("apps", 3, 0)}, ""},
		"one":      {[]measure.LastColumn{of("apps", 3, at)}, "; apps 3, as of 2026-11-20 03:12:40 UTC"},
		"the older counts": {[]measure.LastColumn{of("apps", 0.123456, at), of("objects", 1234567, at-60)},
			"; apps 0.1235, objects 1235000, as of 2026-11-20 03:11:40 UTC"},
		"a name of another's": {[]measure.LastColumn{of("<b>\x1b", 1e21, at)},
			"; <b>\\u001b 1000000000000000000000, as of 2026-11-20 03:12:40 UTC"},
		"thirteen":      {many, wants + "1 more, as of 2026-11-20 03:12:40 UTC"},
		"short columns": {[]measure.LastColumn{{ID: "apps", Values: []float64{1}, At: []int64{at}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := atRest()
			id := slices.Sorted(maps.Keys(f.Document.Plan.Clusters))[0]
			f.Values = measure.LastGood{IDs: []string{"", id}, Columns: test.columns}
			for _, stack := range page.Of(f).Stacks {
				for _, column := range stack.Columns {
					for _, box := range column.Boxes {
						if said, found := strings.CutPrefix(box.Says, id+": load "); found {
							_, got, _ := strings.Cut(said, ";")
							if want := strings.TrimPrefix(test.want, ";"); got != want {
								t.Errorf("it says %q, want %q", got, want)
							}
							return
						}
					}
				}
			}
			t.Error("the cluster has no box")
		})
	}
}
