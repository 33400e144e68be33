package cycle

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheArchitectureHasTheTablesOfTheCode: whoever looks for what stops a failover finds it there.
func TestTheArchitectureHasTheTablesOfTheCode(t *testing.T) {
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	var gateRows, proposalRows []string
	for _, g := range gates() {
		gateRows = append(gateRows, fmt.Sprintf("| %s | %s | %s |", g.name, actionNames(g.blocks), g.kind))
	}
	for _, p := range proposals() {
		proposalRows = append(proposalRows, fmt.Sprintf("| %s | `%s` |", actionNames(p.asks), madeBy(p)))
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

func actionNames(a action) string {
	if a == everything {
		return "everything"
	}
	var names []string
	for act := setEnv; act != 0; act <<= 1 {
		if a&act != 0 {
			names = append(names, actions[act])
		}
	}
	return strings.Join(names, ", ")
}

// madeBy is the name of the function that makes a proposal.
func madeBy(p proposal) string {
	name := runtime.FuncForPC(reflect.ValueOf(p.made).Pointer()).Name()
	return name[strings.LastIndex(name, ".")+1:]
}

// TestWhatIsTestedWithoutTheRaceDetectorHasNoGoroutine holds the packages that the Makefile tests without it to what it says of
// them: no goroutine, no channel, nothing of package sync, in their tests neither.
func TestWhatIsTestedWithoutTheRaceDetectorHasNoGoroutine(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^PURE +:= \$\(addprefix ballast/planner/,(.*)\)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the Makefile has no PURE packages")
	}
	for _, name := range strings.Fields(string(m[1])) {
		files, err := filepath.Glob("../" + name + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no Go files: %v", name, err)
		}
		for _, file := range files {
			for _, found := range concurrency(t, file) {
				t.Errorf("%s: %s", file, found)
			}
		}
	}
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
