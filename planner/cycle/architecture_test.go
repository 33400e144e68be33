package cycle

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/proposal"
)

// TestTheArchitectureHasTheTablesOfTheCode: whoever looks for what stops a failover finds it there.
func TestTheArchitectureHasTheTablesOfTheCode(t *testing.T) {
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	var gateRows, proposalRows []string
	for _, g := range gate.Table() {
		gateRows = append(gateRows, fmt.Sprintf("| %s | %s | %s |", g.Name, g.Blocks, g.Kind))
	}
	for _, p := range proposal.All() {
		proposalRows = append(proposalRows, fmt.Sprintf("| %s | `%s` |", p.Asks, madeBy(p)))
	}
	for table, want := range map[string][]string{"gates": gateRows, "proposals": proposalRows} {
		if diff := cmp.Diff(want, rowsOf(t, string(text), table)); diff != "" {
			t.Errorf("the table of %s in ARCHITECTURE.md is (-want +got):\n%s", table, diff)
		}
	}
}

// rowsOf are a table's rows between its marks, without the head.
func rowsOf(t *testing.T, text, table string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?s)<!-- ` + table + ` -->\n(.*?)<!-- /` + table + ` -->`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("there is no table of %s", table)
	}
	return strings.Split(strings.TrimSpace(m[1]), "\n")[2:]
}

// madeBy is the name of the function that makes a proposal.
func madeBy(p proposal.Row) string {
	name := runtime.FuncForPC(reflect.ValueOf(p.Made).Pointer()).Name()
	return name[strings.LastIndex(name, ".")+1:]
}

// TestWhatIsTestedWithoutTheRaceDetectorHasNoGoroutine holds the packages and the test files that the Makefile tests without
// it to what it says of them: no goroutine, no channel, nothing of package sync, in a package's tests neither.
func TestWhatIsTestedWithoutTheRaceDetectorHasNoGoroutine(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^PURE +:= \$\(addprefix ballast/planner/,(.*)\)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the Makefile has no PURE packages")
	}
	patterns := listed(t, text, "ALONE")
	for _, name := range strings.Fields(string(m[1])) {
		patterns = append(patterns, "planner/"+name+"/*.go")
	}
	for _, pattern := range patterns {
		for _, file := range filesOf(t, pattern) {
			for _, found := range concurrency(t, file) {
				t.Errorf("%s: %s", file, found)
			}
		}
	}
}

// TestWhoTestsAProcessBuildsIt: the race detector is missed by nobody where what is tested runs as it is shipped.
func TestWhoTestsAProcessBuildsIt(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range listed(t, makefile, "PROCESS") {
		for _, file := range filesOf(t, pattern) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "builtAsShipped(t)") {
				t.Errorf("%s builds no process", file)
			}
		}
	}
}

// TestNoTestIsSkippedForAnothersName: `make test` tells the tests that it runs without the race detector from all others by
// their names.
func TestNoTestIsSkippedForAnothersName(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]string{}
	for _, pattern := range append(listed(t, text, "ALONE"), listed(t, text, "PROCESS")...) {
		for _, file := range filesOf(t, pattern) {
			for _, name := range tests(t, file) {
				in[name] = filepath.Clean(file)
			}
		}
	}
	if len(in) == 0 {
		t.Fatal("no test is in the Makefile's ALONE files")
	}
	err = filepath.WalkDir("../..", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		for _, name := range tests(t, file) {
			if alone := in[name]; alone != "" && alone != filepath.Clean(file) {
				t.Errorf("%s has a test %s as %s has, and so nothing runs it: give it another name", file, name, alone)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// listed are the test files, as patterns, of one of the Makefile's lists.
func listed(t *testing.T, makefile []byte, name string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + ` +:= (.*)$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatalf("the Makefile has no %s files", name)
	}
	return strings.Fields(string(m[1]))
}

// filesOf are the files of a pattern that is relative to the checkout.
func filesOf(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob("../../" + pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", pattern, err)
	}
	return files
}

// tests are the names of a file's tests.
func tests(t *testing.T, file string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)`).FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// concurrency is what of a file goroutines could share, or begin.
func concurrency(t *testing.T, file string) (found []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range parsed.Imports {
		if path := strings.Trim(i.Path.Value, `"`); path == "sync" || path == "sync/atomic" {
			found = append(found, "imports "+path)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "begins a goroutine")
		case *ast.ChanType:
			found = append(found, "has a channel")
		case *ast.SelectorExpr:
			if n.Sel.Name == "Parallel" {
				found = append(found, "runs tests beside each other")
			}
		}
		return true
	})
	return found
}
