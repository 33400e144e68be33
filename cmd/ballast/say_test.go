package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"ballast/cmd/ballast/fixture"
)

// TestOnlySayWritesForPeople: a printer that is added later cannot forget to clean what it prints.
func TestOnlySayWritesForPeople(t *testing.T) {
	allowed := map[string]int{
		"say/say.go fmt.Fprintf":          1, // say itself
		"say/say.go io.WriteString":       1,
		"say/screen.go io.WriteString":    1, // the last gate itself
		"audit/output.go io.WriteString":  1, // cells that auditlog and columns cleaned
		"config/config.go io.WriteString": 1, // the default configuration, which is ours
		"plan/output.go io.WriteString":   1, // the plan document, through the last gate
		"serve/ports.go fmt.Fprintln":     1, // "ok" of the health checks
		"main.go os.Stderr":               1, // through the last gate
		"serve/logs.go os.Stderr":         1, // through the last gate
	}
	var files []string
	for _, pattern := range []string{"*.go", "*/*.go", "*/*/*.go"} {
		found, err := filepath.Glob(pattern)
		fixture.MustDo(t, err)
		files = append(files, found...)
	}
	got := map[string]int{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "fixture/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		fixture.MustDo(t, err)
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
	if diff := cmp.Diff(allowed, got); diff != "" {
		t.Errorf("what people see goes through say (-allowed +there):\n%s", diff)
	}
}

// Every command's output ends in a cleanWriter, that of one which is added later, too.
func TestEveryCommandWritesThroughTheLastGate(t *testing.T) {
	var out, errs bytes.Buffer
	root := newRootCommand()
	root.SetOut(&out)
	root.SetErr(&errs)
	root.AddCommand(&cobra.Command{Use: "later", RunE: func(cmd *cobra.Command, _ []string) error {
		_, err := cmd.OutOrStdout().Write([]byte("\x1b[2J https://u:" + fixture.SecretText + "@h\n"))
		cmd.PrintErrln("\u202e")
		return err
	}})
	root.SetArgs([]string{"later"})
	fixture.MustDo(t, root.Execute())
	if diff := cmp.Diff([]string{`\u001b[2J https://***@h` + "\n", `\u202e` + "\n"}, []string{out.String(), errs.String()}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range root.Commands() {
		if c.PersistentPreRun != nil || c.PersistentPreRunE != nil {
			t.Errorf("%s has a PersistentPreRun of its own, which keeps the root's from running", c.Name())
		}
	}
}
