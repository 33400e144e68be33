// Package say writes for people: every text may have been written by anybody, so all of it goes through here.
package say

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"ballast/planner/printable"
)

// WithinJSON is a text as it stands between the quotes of a JSON string.
func WithinJSON(s string) string {
	quoted, _ := json.Marshal(s) // a string never fails
	return string(quoted[1 : len(quoted)-1])
}

// MaxWord is the longest text of others that one line shows, in characters: a sentence with its mend, and some names.
const MaxWord = 2000

// maxNote is how much of an annotation that anybody may have written a line shows, in characters.
const maxNote = 300

// To formats for people. Every text among the arguments may have been written by anybody: it becomes printable.
// Nothing else writes for people, which a test holds.
func To(w io.Writer, format string, args ...any) {
	for i, a := range args {
		args[i] = harmless(a)
	}
	fmt.Fprintf(w, format, args...)
}

// harmless leaves numbers as they are, and makes text of all else.
func harmless(a any) any {
	switch a := a.(type) {
	case error:
		return printable.Text(a.Error(), MaxWord)
	case fmt.Stringer:
		return printable.Text(a.String(), MaxWord)
	}
	switch v := reflect.ValueOf(a); {
	case v.IsValid() && v.Kind() == reflect.String:
		return printable.Text(v.String(), MaxWord)
	case v.CanInt(), v.CanUint(), v.CanFloat(), v.IsValid() && v.Kind() == reflect.Bool:
		return a
	}
	return printable.Text(fmt.Sprint(a), MaxWord)
}

// OneLine makes an annotation that anybody may have written fit to be kept in a result.
func OneLine(s string) string { return printable.Text(strings.TrimSpace(s), maxNote) }

// Error puts an error on as many lines as it has. The ones after the first are indented, so that none of them can
// pass for a line of ours.
func Error(w io.Writer, err error) {
	if quiet(err) {
		return
	}
	lines := strings.Split(strings.TrimRight(err.Error(), "\n"), "\n")
	const most = 100
	for i, line := range lines[:min(len(lines), most)] {
		lead := "  "
		if i == 0 {
			lead = "ballast: "
		}
		To(w, lead+"%s\n", line)
	}
}

// serverLine is a server's URL in indented JSON, in which a text has no line break.
var serverLine = regexp.MustCompile(`(?m)^( *"server": )("(?:[^"\\]|\\.)*")`)

// The forms in which the commands answer that have a table.
const (
	AsTable = "table"
	AsJSON  = "json"
	AsYAML  = "yaml"
)

// CheckForm refuses another form.
func CheckForm(form string) error {
	if form != AsTable && form != AsJSON && form != AsYAML {
		return fmt.Errorf("--output: %q is none of table, json and yaml", form)
	}
	return nil
}

// Result is a result that has a table beside its JSON.
type Result interface{ WriteTable(io.Writer) error }

// Print writes a result in the form that was asked for.
func Print(form string, w io.Writer, result Result) error {
	if form == AsTable {
		return result.WriteTable(w)
	}
	return As(form, w, result)
}

// As writes a result as JSON or YAML.
func As(form string, w io.Writer, result any) error {
	if form != AsYAML {
		return JSON(w, result)
	}
	var b bytes.Buffer
	if err := JSON(&b, result); err != nil {
		return err
	}
	document, err := yaml.JSONToYAML(b.Bytes())
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	_, err = w.Write(document)
	return err
}

// JSON writes a result as JSON. A server's URL has a field of its own there, so that its credentials are known
// however it is spelled.
func JSON(w io.Writer, result any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(result); err != nil {
		return err
	}
	_, err := w.Write(serverLine.ReplaceAllFunc(b.Bytes(), func(line []byte) []byte {
		name, url, _ := strings.Cut(string(line), ": ")
		var server string
		if json.Unmarshal([]byte(url), &server) == nil {
			url = `"` + WithinJSON(printable.MaskServer(server)) + `"`
		}
		return []byte(name + ": " + url)
	}))
	return err
}

// Clean is a writer through the last gate.
func Clean(w io.Writer) io.Writer {
	c := &cleanWriter{w: w}
	if f, ok := w.(*os.File); ok {
		c.painter = painterOf(f)
	}
	return c
}

// Gate sends what a command and its like write through the last gate.
func Gate(cmd *cobra.Command, _ []string) {
	cmd.Root().SetOut(Clean(cmd.Root().OutOrStdout()))
	cmd.Root().SetErr(Clean(cmd.Root().ErrOrStderr()))
}

// Flush writes what the gate of a command still keeps, once it has ended: a last line without its end may be the
// beginning of a word that is painted, or of a character.
func Flush(cmd *cobra.Command) {
	for _, w := range []io.Writer{cmd.Root().OutOrStdout(), cmd.Root().ErrOrStderr()} {
		if c, gated := w.(*cleanWriter); gated {
			c.flush()
		}
	}
}

// cleanWriter makes whatever a terminal acts on visible, and masks credentials, in all that goes through it: what say
// prepared passes as it is, JSON stays the same JSON. It is the last gate of every output and of the logs.
type cleanWriter struct {
	w    io.Writer
	rest []byte // of a character whose end is still to come

	painter *painter // nil: no colours
}

// Write passes on what a terminal may see of it.
func (c *cleanWriter) Write(p []byte) (int, error) {
	text := append(c.rest, p...)
	whole := len(text)
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				whole = i
			}
			break
		}
	}
	c.rest = append([]byte(nil), text[whole:]...)
	clean := printable.Visible(printable.MaskCredentials(string(text[:whole])))
	if c.painter != nil {
		clean = c.painter.on(clean)
	}
	if err := c.pass(clean); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *cleanWriter) pass(clean string) error {
	_, err := io.WriteString(c.w, clean)
	return err
}

func (c *cleanWriter) flush() {
	kept := printable.Visible(string(c.rest))
	if c.painter != nil {
		kept = c.painter.held + kept
		c.painter.held = ""
	}
	c.rest = nil
	_ = c.pass(kept) // the command has ended
}

// Confirm asks, and answers whether it was yes.
func Confirm(in io.Reader, out io.Writer, question string) bool {
	To(out, "%s [y/N] ", question)
	line, _ := bufio.NewReader(in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
