package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/webhook/auditlog"
)

// recorded is what a real API server logged (webhook/auditlog's test on one), with some mishaps after it.
const recorded = "testdata/audit.log"

// runAudit runs `ballast audit` at a fixed time and returns what it wrote, its notes and its error's text.
func runAudit(t *testing.T, stdin io.Reader, args ...string) (out, notes, failure string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := NewCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetIn(stdin)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		failure = err.Error()
	}
	return stdout.String(), stderr.String(), failure
}

func TestAuditGolden(t *testing.T) {
	for name, args := range map[string][]string{
		"table":     {recorded},
		"all":       {"--all", "--namespace", "argocd", recorded},
		"json":      {"-o", "json", recorded},
		"totals":    {"-o", "totals", recorded},
		"filtered":  {"--user", "alice", "--object", "secret/*", "--reason", "!FailedOpen", recorded},
		"one-night": {"--since", "2026-11-21T00:00:00Z", "--until", "2026-11-21T08:00:02Z", recorded},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, failure := runAudit(t, strings.NewReader(""), args...)
			if failure != "" {
				t.Fatal(failure)
			}
			got := out + "--- notes\n" + notes
			fixture.Golden(t, name, got)
			for _, leak := range []string{"canary", "eyJ", "\x1b"} {
				if strings.Contains(got, leak) {
					t.Errorf("the output holds %q", leak)
				}
			}
		})
	}
}

// edit is an audit event of alice's.
func edit(id, at, name string) string {
	return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"` + id + `","stage":"ResponseComplete","requestURI":"/","verb":"patch","user":{"username":"alice"},` +
		`"objectRef":{"resource":"secrets","namespace":"argocd","name":"` + name + `"},"responseStatus":{"code":200},"requestReceivedTimestamp":"` + at + `",` +
		`"annotations":{"clusters.ballast.argoproj.io/reason":"Restored","clusters.ballast.argoproj.io/revision":"7","clusters.ballast.argoproj.io/requested":"shard=1","clusters.ballast.argoproj.io/enforced":"shard=3"}}` + "\n"
}

// writesOf reads JSON output.
func writesOf(t *testing.T, out string) []auditlog.Write {
	t.Helper()
	var list []auditlog.Write
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var w auditlog.Write
		err := d.Decode(&w)
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, w)
	}
}

// names are the objects that JSON output names, in its order.
func names(t *testing.T, out string) []string {
	t.Helper()
	var list []string
	for _, w := range writesOf(t, out) {
		list = append(list, w.Name)
	}
	return list
}

func TestAuditReadsWhatItIsGiven(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	zipped := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := io.WriteString(z, text); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const at = "2026-08-01T12:00:00Z"
	old, last := edit("1", at, "old"), edit("2", at, "last")
	plain, rotated := file("audit.log", last), file("audit-1.log.gz", zipped(old))
	torn := file("torn.gz", zipped(strings.Repeat(old, 100))[:60])
	for name, c := range map[string]struct {
		stdin   string
		args    []string
		want    []string
		notes   string
		failure string
	}{
		"standard input":            {last, nil, []string{"last"}, "", ""},
		"standard input by name":    {last, []string{"-"}, []string{"last"}, "", ""},
		"a zipped standard input":   {zipped(last), nil, []string{"last"}, "", ""},
		"nothing":                   {"", nil, nil, "", ""},
		"rotated files":             {"", []string{rotated, plain}, []string{"old", "last"}, "", ""},
		"a file given twice":        {"", []string{plain, rotated, plain}, []string{"last", "old"}, "", ""},
		"files and standard input":  {old, []string{plain, "-"}, []string{"last", "old"}, "", ""},
		"what is no audit log":      {"a\nb\n", nil, nil, "none of 2 lines is an audit event: is this an API server's audit log?\neach of 2 lines could not be read as an audit event; the first is line 1 of standard input\n", ""},
		"a line being written":      {last + old[:50], nil, []string{"last"}, "line 2 of standard input has no end yet and was left out\n", ""},
		"a line of 13 MiB":          {strings.Repeat("x", 13<<20) + "\n" + last, nil, []string{"last"}, "line 1 of standard input is longer than 12 MiB and was left out\n", ""},
		"a missing file and others": {"", []string{filepath.Join(dir, "missing"), plain}, []string{"last"}, "", "opening an audit log: open {dir}/missing: no such file or directory"},
		"a directory and others":    {"", []string{dir, plain}, []string{"last"}, "", `reading "{dir}": read {dir}: is a directory`},
		"a torn file and others":    {"", []string{torn, plain}, []string{"last"}, "", `reading "{dir}/torn.gz": unexpected EOF`},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, failure := runAudit(t, strings.NewReader(c.stdin), append([]string{"-o", "json"}, c.args...)...)
			if diff := cmp.Diff(c.want, names(t, out)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if notes != c.notes {
				t.Errorf("notes %q, want %q", notes, c.notes)
			}
			if want := strings.ReplaceAll(c.failure, "{dir}", dir); failure != want {
				t.Errorf("it fails with %q, want %q", failure, want)
			}
		})
	}
}

// TestAuditKnowsThePlanner by its name alone, and a renamed one by the flag.
func TestAuditKnowsThePlanner(t *testing.T) {
	var log strings.Builder
	for i, user := range []string{"ballast-planner", "eve-ballast-planner", "my-argo-ballast-planner"} {
		line := strings.NewReplacer(`"alice"`, `"system:serviceaccount:argocd:`+user+`"`, "secrets", "configmaps", `"clusters.`, `"x.`).Replace(edit(fmt.Sprint(i), "2026-08-01T12:00:00Z", "ballast-history"))
		log.WriteString(line)
	}
	for name, c := range map[string]struct{ args, want []string }{
		"the shipped one":   {nil, []string{"eve-ballast-planner", "my-argo-ballast-planner"}},
		"a renamed one":     {[]string{"--planner-user", "system:serviceaccount:argocd:my-argo-ballast-planner"}, []string{"ballast-planner", "eve-ballast-planner"}},
		"one and the other": {[]string{"--planner-user", "system:serviceaccount:argocd:my-argo-ballast-planner", "--planner-user", "system:serviceaccount:argocd:ballast-planner"}, []string{"eve-ballast-planner"}},
	} {
		out, _, failure := runAudit(t, strings.NewReader(log.String()), append([]string{"-o", "json"}, c.args...)...)
		var got []string
		for _, o := range writesOf(t, out) {
			got = append(got, strings.TrimPrefix(o.User, "system:serviceaccount:argocd:"))
		}
		if diff := cmp.Diff(c.want, got); diff != "" || failure != "" {
			t.Errorf("%s: %s shown (-want +got):\n%s", name, failure, diff)
		}
	}
}

func TestAuditRefusesWhatItCannotDo(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown output":  {[]string{"-o", "yaml"}, `--output: "yaml" is not table, json or totals`},
		"an unknown reason":  {[]string{"--reason", "Restore"}, `--reason: "Restore" is none of ` + strings.Join(auditlog.Reasons(), ", ")},
		"a time of no form":  {[]string{"--since", "yesterday"}, `--since: "yesterday" is neither a time (2026-08-01T12:00:00Z) nor how long ago (90m, 24h)`},
		"a time that is not": {[]string{"--until", "-1h"}, `--until: "-1h" is neither a time (2026-08-01T12:00:00Z) nor how long ago (90m, 24h)`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, failure := runAudit(t, strings.NewReader(""), c.args...); failure != c.want {
				t.Errorf("it fails with %q, want %q", failure, c.want)
			}
		})
	}
}

func TestAuditCountsTimeBackFromNow(t *testing.T) {
	o := &options{output: "json", since: "90m", until: "30m", now: func() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }}
	var out, notes bytes.Buffer
	log := edit("1", "2026-08-01T10:29:59Z", "before") + edit("2", "2026-08-01T10:30:00Z", "first") + edit("3", "2026-08-01T11:29:59Z", "last") + edit("4", "2026-08-01T11:30:00Z", "after")
	if err := o.run(strings.NewReader(log), &out, &notes, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"first", "last"}, names(t, out.String())); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// TestAuditFollowsALog: what a pipe has brought is shown before more is waited for.
func TestAuditFollowsALog(t *testing.T) {
	in, feed := io.Pipe()
	shown, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		o := &options{output: "json", now: time.Now}
		ended <- o.run(in, out, io.Discard, nil)
		out.Close()
	}()
	lines := bufio.NewReader(shown)
	for _, name := range []string{"first", "second"} {
		if _, err := io.WriteString(feed, edit(name, "2026-08-01T12:00:00Z", name)); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, `"name":"`+name+`"`) {
			t.Errorf("shown is %q (%v), want %s", line, err, name)
		}
	}
	feed.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAuditEndsWhereItsOutputDoes(t *testing.T) {
	full := errors.New("no space left")
	for _, output := range []string{"table", "json", "totals"} {
		o := &options{output: output, now: time.Now}
		var log strings.Builder
		for i := range 2000 {
			log.WriteString(edit(fmt.Sprint(i), "2026-08-01T12:00:00Z", "x"))
		}
		err := o.run(strings.NewReader(log.String()), brokenWriter{full}, io.Discard, nil)
		if !errors.Is(err, full) || err.Error() != "writing the output: no space left" {
			t.Errorf("-o %s ends with %v, want that its output is full", output, err)
		}
	}
}

type brokenWriter struct{ error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.error }

func TestColumnsLineUpAndStream(t *testing.T) {
	var out strings.Builder
	c := columns{w: &out}
	for i := range measured + 1 {
		name := "ö"
		if i == measured/2 {
			name = "longer"
		}
		if err := c.row([]string{name, "|"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(out.String(), "\n"); got != measured+1 {
		t.Errorf("%d rows are out after %d, want all", got, measured+1)
	}
	if err := c.row([]string{"longer than the columns", "|"}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{"ö        |", "longer   |", "longer than the columns   |"}
	if diff := cmp.Diff(want, []string{lines[0], lines[measured/2], lines[measured+1]}); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestAuditHelpTeachesTheLog(t *testing.T) {
	out, _, _ := runAudit(t, nil, "--help")
	for _, want := range append(auditlog.Reasons(), "--audit-policy-file", "--audit-log-path", indent(auditlog.Policy, "    "), "Level Request adds the objects") {
		if !strings.Contains(out, want) {
			t.Errorf("the help does not say %q", want)
		}
	}
	for line := range strings.SplitSeq(auditLong(), "\n") {
		if len(line) > 125 {
			t.Errorf("a line of the help takes %d columns: %s", len(line), line)
		}
	}
}
