package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// TestOnlySayWritesForPeople: a printer that is added later cannot forget to clean what it prints.
func TestOnlySayWritesForPeople(t *testing.T) {
	allowed := map[string]int{
		"say.go fmt.Fprintf":            1, // say itself
		"say.go io.WriteString":         1, // cleanWriter itself
		"auditoutput.go fmt.Fprintf":    0,
		"auditoutput.go io.WriteString": 1, // cells that auditlog and columns cleaned
		"config.go io.WriteString":      1, // the default configuration, which is ours
		"planoutput.go io.WriteString":  1, // the plan document, through a cleanWriter
		"ports.go fmt.Fprintln":         1, // "ok" of the health checks
		"main.go os.Stderr":             1, // through a cleanWriter
		"root.go os.Stderr":             1, // through a cleanWriter
	}
	files, err := filepath.Glob("*.go")
	mustDo(t, err)
	got := map[string]int{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		mustDo(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch called := fmt.Sprint(s.X, ".", s.Sel.Name); called {
			case "fmt.Print", "fmt.Printf", "fmt.Println", "fmt.Fprint", "fmt.Fprintf", "fmt.Fprintln", "io.WriteString", "os.Stdout", "os.Stderr":
				got[file+" "+called]++
			}
			return true
		})
	}
	for use, n := range got {
		if n != allowed[use] {
			t.Errorf("%s stands %d times, want %d: what people see goes through say", use, n, allowed[use])
		}
	}
}

// secretText is a credential that no output may show.
const secretText = "s3cr3t-t0ken"

// hostile draws text as somebody writes it who wants a terminal to lie, or who put credentials into a URL.
func hostile(t *rapid.T) string {
	pieces := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x1b[2J", "\x1b]0;owned\x07", "\u009b1A", "\u202e", "\u200b", "\r\n", "\nNothing was changed.", "\t", "\v", "\f", "\xff", "\x7f",
		" https://user:" + secretText + "@host ", " http://h?token=" + secretText + " "}))
	return "x" + strings.Join(rapid.SliceOfN(pieces, 0, 5).Draw(t, "text"), "")
}

// fill gives every text of a value, keys of maps among them, what the function answers; lists get two members.
func fill(v reflect.Value, text func() string, depth int) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() && v.Type() == reflect.TypeFor[string]() {
			v.SetString(text())
		}
	case reflect.Pointer:
		if v.CanSet() && v.IsNil() && depth < 6 {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			fill(v.Elem(), text, depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), text, depth+1)
			}
		}
	case reflect.Slice:
		if v.CanSet() && v.Type().Elem().Kind() != reflect.Interface && depth < 6 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), text, depth+1)
			fill(v.Index(1), text, depth+1)
		}
	case reflect.Map:
		if v.CanSet() && v.Type().Key() == reflect.TypeFor[string]() && depth < 6 {
			v.Set(reflect.MakeMap(v.Type()))
			for i := range 2 {
				value := reflect.New(v.Type().Elem()).Elem()
				fill(value, text, depth+1)
				v.SetMapIndex(reflect.ValueOf(fmt.Sprint(i, text())), value)
			}
		}
	}
}

// checkOutput holds for whatever people see.
func checkOutput(t interface {
	Helper()
	Fatalf(string, ...any)
}, what, got string) {
	t.Helper()
	if at := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && (!unicode.IsPrint(r) || unicode.In(r, unicode.Cf)) }); at >= 0 {
		t.Fatalf("%s acts on a terminal at %q", what, got[at:])
	}
	if strings.Contains(got, secretText) {
		t.Fatalf("%s shows a credential:\n%s", what, got)
	}
}

// TestWhateverIsPrintedIsHarmless fills everything that a command prints with hostile texts. No line may come up that harmless
// texts do not make: else somebody's text passes for ballast's own.
func TestWhateverIsPrintedIsHarmless(t *testing.T) {
	for name, empty := range map[string]func() writer{
		"status":     func() writer { return &overview{now: noon, seesPods: true} },
		"evacuate":   func() writer { return &evacuation{now: noon} },
		"cordons":    func() writer { return &cordonList{now: noon} },
		"freeze":     func() writer { return &frozen{} },
		"frozen":     func() writer { return &frozen{Frozen: true} },
		"rollback":   func() writer { return &difference{} },
		"kept plans": func() writer { return &keptList{now: noon} },
		"cancelled":  func() writer { return &cancelled{Changed: true} },
	} {
		t.Run(name, func(t *testing.T) {
			shown := func(t *rapid.T, text func() string, output string) string {
				r := empty()
				fill(reflect.ValueOf(r), text, 0)
				var b bytes.Buffer
				o := steerOptions{output: output}
				if err := o.print(&cleanWriter{w: &b}, r); err != nil {
					t.Fatal(err)
				}
				return b.String()
			}
			rapid.Check(t, func(t *rapid.T) {
				plain := shown(t, func() string { return "x" }, "table")
				table := shown(t, func() string { return hostile(t) }, "table")
				checkOutput(t, "the table", table)
				if got, want := strings.Count(table, "\n"), strings.Count(plain, "\n"); got != want {
					t.Fatalf("it has %d lines, want %d:\n%s\nof\n%s", got, want, table, plain)
				}
				text := shown(t, func() string { return hostile(t) }, "json")
				checkOutput(t, "the JSON", text)
				if !json.Valid([]byte(text)) {
					t.Fatalf("it is no JSON:\n%s", text)
				}
			})
		})
	}
}

// The same through every step of a command, from a cluster whose Secrets, annotations, Lease and pins are hostile.
func TestStatusOfAHostileFleet(t *testing.T) {
	w := quietWorld()
	w.people = map[string]string{plan.AnnotationDecidedAt: "\x1b[31mat", plan.AnnotationDecidedBy: "\x1b]0;by\x07", plan.AnnotationReason: "\x1b[2Jreason\nNothing differs from the plan.",
		plan.AnnotationTripped: "\u202epirt", plan.AnnotationCordon: "\x1b[5m=\n", plan.AnnotationRollback: "9\nx", plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "http://u:" + secretText + "@h"}
	holder := "\x1b[31mleader"
	w.lease.Spec.HolderIdentity = &holder
	w.pins = "\"\\e[1A\\e[2Kspoof\": x\n"
	s := w.look(t)
	var table bytes.Buffer
	mustDo(t, s.write(&table))
	checkOutput(t, "the table", table.String())
	for _, want := range []string{
		`Plan revision 17, Enforce, decided \u001b[31mat by \u001b]0;by\u0007` + "\n" + `  \u001b[2Jreason Nothing differs from the plan.` + "\n",
		`Leader   \u001b[31mleader, renewed 3s ago` + "\n",
		`Tripped  ballast stopped itself: \u202epirt` + "\n",
		"Paused   nothing new is decided; enforcement goes on (http://***@h)\n",
		"Rollback to revision 9 x, as a person asked\n",
		`Pin      pins line 1: \u001b[1A\u001b[2Kspoof: a replica is a whole number, like 3` + "\n",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is missing in\n%s", want, table.String())
		}
	}
}

// hostileInputs are two Secrets of one server that differ, as in the report of this fault.
func hostileInputs(server string) cycle.Inputs {
	secret := func(name, shard string) discover.Secret {
		return discover.Secret{Name: name, Cluster: "x", Server: server, Shard: discover.ParseShard([]byte(shard)), HasData: true}
	}
	in := cycle.Inputs{Now: noon, Config: config.Default(), Discovered: discover.Input{Namespace: "argocd", Secrets: []discover.Secret{secret("x1", "0"), secret("x2", "1")}},
		Workload: discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd", Name: controllerName, Replicas: 2, ReadyReplicas: 2}}
	in.Fetched = nil
	return in
}

func TestPlanOfAHostileServer(t *testing.T) {
	for name, test := range map[string]struct{ server, want string }{
		"terminal escapes": {"https://a\x1b]0;owned\x07\x1b[2K\rNothing was changed.\u202e", `https://a\u001b]0;owned\u0007\u001b[2K Nothing was changed.\u202e`},
		"credentials":      {"https://user:" + secretText + "@host/?token=" + secretText, "https://***@host/?token=***"},
	} {
		t.Run(name, func(t *testing.T) {
			in := hostileInputs(test.server)
			out := cycle.Run(in)
			var table, text bytes.Buffer
			mustDo(t, writePlanTable(&table, in, out, true))
			mustDo(t, writePlanJSON(&cleanWriter{w: &text}, in, out))
			checkOutput(t, "the table", table.String())
			checkOutput(t, "the JSON", text.String())
			want := "  - discover: Secrets \"x1\", \"x2\" share the server " + test.want + " and differ in data.shard; Argo CD takes whichever it saw last: keep one of them, or give all the same shard\n"
			if !strings.Contains(table.String(), want) {
				t.Errorf("%q is missing in\n%s", want, table.String())
			}
		})
	}
}

// Saved inputs run again, and hold no credential; clusters keep their place in what Prometheus said.
func TestSavedInputsHoldNoCredentials(t *testing.T) {
	server := "https://user:" + secretText + "&\"@host"
	in := hostileInputs(server)
	in.Config.Poll.Prometheus.URL = "http://prom:" + secretText + "@prometheus:9090?token=" + secretText
	in.Owners.Metric, in.Owners.Err = "owners", "Post \""+server+"\": EOF"
	in.Discovered.Secrets = append(in.Discovered.Secrets, discover.Secret{Name: "y", Cluster: "y", Server: "\u202e" + secretText + "@nowhere", HasData: true})
	file := filepath.Join(t.TempDir(), "inputs.json")
	masked, err := saveInputs(file, in)
	mustDo(t, err)
	text, err := os.ReadFile(file)
	mustDo(t, err)
	checkOutput(t, "the file", string(text))
	var again cycle.Inputs
	mustDo(t, json.Unmarshal(text, &again))
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
		servers = append(servers, fmt.Sprintf(format, secretText))
	}
	return append(servers, "https://***@taken", "https://plain")
}

// oddInputs are a Secret for each of these servers, with a row of its hash in the plan.
func oddInputs() cycle.Inputs {
	in := hostileInputs("https://both")
	in.InForce = &plan.Plan{Revision: 1, Mode: plan.Observe, Replicas: 2, Clusters: map[string]plan.Row{}}
	in.Observed.Work = map[int]cycle.ServerWork{0: {}}
	for i, server := range oddServers() {
		name := fmt.Sprintf("odd%02d", i)
		in.Discovered.Secrets = append(in.Discovered.Secrets,
			discover.Secret{Name: name, Cluster: name, Server: server, HasData: true})
		in.InForce.Clusters[name] = plan.Row{Replica: i % 2, Server: plan.ServerHash(server)}
		in.Observed.Work[0][plan.NormalizeServer(server)] = change.Work{Reconciles: uint64(i)}
	}
	return in
}

// TestOddServersAreMaskedInJSON: each has a field of its own there, in every list.
func TestOddServersAreMaskedInJSON(t *testing.T) {
	in := oddInputs()
	out := cycle.Run(in)
	now := cycle.Compare(in)
	for name, print := range map[string]func(io.Writer) error{
		"plan":   func(w io.Writer) error { return writePlanJSON(w, in, out) },
		"status": func(w io.Writer) error { return sayJSON(w, overview{Replicas: now.Replicas}) },
		"steps":  func(w io.Writer) error { return sayJSON(w, []diff.Step{diff.Nudge{Server: oddServers()[0]}}) },
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			mustDo(t, print(&cleanWriter{w: &text}))
			checkOutput(t, "the JSON", text.String())
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
	mustDo(t, err)
	text, err := os.ReadFile(file)
	mustDo(t, err)
	checkOutput(t, "the file", string(text))
	var again cycle.Inputs
	mustDo(t, json.Unmarshal(text, &again))
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

func TestErrorsAreSaidLineByLine(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"one line":      {errors.New("no plan"), "ballast: no plan\n"},
		"with its mend": {errors.New("no plan\nis ballast installed?\n"), "ballast: no plan\n  is ballast installed?\n"},
		"hostile":       {fmt.Errorf("reading %w", errors.New("a\x1b[2J\nballast: all is well\r\nx http://u:p@h")), "ballast: reading a\\u001b[2J\n  ballast: all is well \n  x http://***@h\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			sayError(&b, test.err)
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"any error":   {errors.New("x"), 1},
		"one's own":   {exitError{errors.New("x"), 3}, 3},
		"wrapped":     {fmt.Errorf("y: %w", exitError{errors.New("x"), 3}), 3},
		"around one":  {exitError{fmt.Errorf("y: %w", os.ErrNotExist), 4}, 4},
		"interrupted": {fmt.Errorf("y: %w", os.ErrDeadlineExceeded), 1},
	} {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// A log line is one line, without control characters and credentials, whatever is logged.
func TestLogsAreHarmless(t *testing.T) {
	for _, format := range []string{"json", "console"} {
		t.Run(format, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var b bytes.Buffer
				log, err := (&logOptions{format: format, level: 1}).loggerTo(&b)
				if err != nil {
					t.Fatal(err)
				}
				text, before := hostile(t), 0
				for _, write := range []func(){
					func() { log.Info("m", "server", text) },
					func() { log.V(1).Info(text, "list", []string{text}, text, time.Second) },
					func() { log.WithName("n").WithValues("map", map[string]any{text: text}).Info("m") },
					func() { log.Error(errors.New(text), "m") },
					func() { log.Info("m", "any", struct{ Server string }{text}, "bytes", []byte(text)) },
				} {
					write()
					line := b.String()[before:]
					before = b.Len()
					line = strings.ReplaceAll(line, "\t", " ")
					checkOutput(t, "the line", line)
					if n := strings.Count(line, "\n"); n != 1 {
						t.Fatalf("it has %d lines:\n%s", n, line)
					}
				}
			})
		})
	}
}

func TestACleanWriterKeepsCharactersWhole(t *testing.T) {
	const text = "größe █ \x1b[2J 集群\tß\n"
	for size := 1; size < 8; size++ {
		var b bytes.Buffer
		w := &cleanWriter{w: &b}
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if n, err := w.Write(rest[:min(size, len(rest))]); err != nil || n != min(size, len(rest)) {
				t.Fatalf("wrote %d: %v", n, err)
			}
		}
		if want := "größe █ \\u001b[2J 集群\tß\n"; b.String() != want {
			t.Errorf("in pieces of %d bytes: %q, want %q", size, b.String(), want)
		}
	}
}

// Every command's output ends in a cleanWriter, that of one which is added later, too.
func TestEveryCommandWritesThroughTheLastGate(t *testing.T) {
	var out, errs bytes.Buffer
	root := newRootCommand()
	root.SetOut(&out)
	root.SetErr(&errs)
	root.AddCommand(&cobra.Command{Use: "later", RunE: func(cmd *cobra.Command, _ []string) error {
		_, err := cmd.OutOrStdout().Write([]byte("\x1b[2J https://u:" + secretText + "@h\n"))
		cmd.PrintErrln("\u202e")
		return err
	}})
	root.SetArgs([]string{"later"})
	mustDo(t, root.Execute())
	if diff := cmp.Diff([]string{`\u001b[2J https://***@h` + "\n", `\u202e` + "\n"}, []string{out.String(), errs.String()}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range root.Commands() {
		if c.PersistentPreRun != nil || c.PersistentPreRunE != nil {
			t.Errorf("%s has a PersistentPreRun of its own, which keeps the root's from running", c.Name())
		}
	}
}

// TestYAMLSaysWhatJSONSays, without a server's credentials.
func TestYAMLSaysWhatJSONSays(t *testing.T) {
	result := struct {
		Revision int64             `json:"revision"`
		Moves    []string          `json:"moves"`
		Server   string            `json:"server"`
		Pins     map[string]int    `json:"pins"`
		Words    map[string]string `json:"words"`
	}{17, []string{}, "https://admin:s3cr3t@a.example.org", map[string]int{"dev": 2}, map[string]string{"yes": "no: \"maybe\"", "control": "\x1b[2J"}}
	var y, j bytes.Buffer
	mustDo(t, sayAs(asYAML, &y, result))
	mustDo(t, sayAs(asJSON, &j, result))
	const want = `moves: []
pins:
  dev: 2
revision: 17
server: https://***@a.example.org
words:
  control: "\e[2J"
  "yes": 'no: "maybe"'
`
	if diff := cmp.Diff(want, y.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := yaml.YAMLToJSON(y.Bytes())
	mustDo(t, err)
	var fromYAML, fromJSON any
	mustDo(t, json.Unmarshal(again, &fromYAML))
	mustDo(t, json.Unmarshal(j.Bytes(), &fromJSON))
	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Errorf("YAML says something else (-JSON +YAML):\n%s", diff)
	}
}
