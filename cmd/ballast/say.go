package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"ballast/planner/plan"
)

// maxWord is the longest text of others that one line shows, in characters: a sentence with its mend, and some names.
const maxWord = 2000

// maxNote is how much of an annotation that anybody may have written a line shows, in characters.
const maxNote = 300

// say formats for people. Every text among the arguments may have been written by anybody: it becomes printable.
// Nothing else writes for people, which a test holds.
func say(w io.Writer, format string, args ...any) {
	for i, a := range args {
		args[i] = printable(a)
	}
	fmt.Fprintf(w, format, args...)
}

// printable leaves numbers as they are, and makes text of all else.
func printable(a any) any {
	switch a := a.(type) {
	case error:
		return plan.Printable(a.Error(), maxWord)
	case fmt.Stringer:
		return plan.Printable(a.String(), maxWord)
	}
	switch v := reflect.ValueOf(a); {
	case v.IsValid() && v.Kind() == reflect.String:
		return plan.Printable(v.String(), maxWord)
	case v.CanInt(), v.CanUint(), v.CanFloat(), v.IsValid() && v.Kind() == reflect.Bool:
		return a
	}
	return plan.Printable(fmt.Sprint(a), maxWord)
}

// oneLine makes an annotation that anybody may have written fit to be kept in a result.
func oneLine(s string) string { return plan.Printable(strings.TrimSpace(s), maxNote) }

// sayError puts an error on as many lines as it has. The ones after the first are indented, so that none of them can
// pass for a line of ours.
func sayError(w io.Writer, err error) {
	lines := strings.Split(strings.TrimRight(err.Error(), "\n"), "\n")
	const most = 100
	for i, line := range lines[:min(len(lines), most)] {
		lead := "  "
		if i == 0 {
			lead = "ballast: "
		}
		say(w, lead+"%s\n", line)
	}
}

// serverLine is a server's URL in indented JSON, in which a text has no line break.
var serverLine = regexp.MustCompile(`(?m)^( *"server": )("(?:[^"\\]|\\.)*")`)

// The forms in which the commands answer that have a table.
const (
	asTable = "table"
	asJSON  = "json"
	asYAML  = "yaml"
)

// checkForm refuses another form.
func checkForm(form string) error {
	if form != asTable && form != asJSON && form != asYAML {
		return fmt.Errorf("--output: %q is none of table, json and yaml", form)
	}
	return nil
}

// sayAs writes a result as JSON or YAML.
func sayAs(form string, w io.Writer, result any) error {
	if form != asYAML {
		return sayJSON(w, result)
	}
	var b bytes.Buffer
	if err := sayJSON(&b, result); err != nil {
		return err
	}
	document, err := yaml.JSONToYAML(b.Bytes())
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	_, err = w.Write(document)
	return err
}

// sayJSON writes a result as JSON. A server's URL has a field of its own there, so that its credentials are known
// however it is spelled.
func sayJSON(w io.Writer, result any) error {
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
			url = `"` + withinJSON(plan.MaskServer(server)) + `"`
		}
		return []byte(name + ": " + url)
	}))
	return err
}

// cleanWriter makes whatever a terminal acts on visible, and masks credentials, in all that goes through it: what say
// prepared passes as it is, JSON stays the same JSON. It is the last gate of every output and of the logs.
type cleanWriter struct {
	w    io.Writer
	rest []byte // of a character whose end is still to come
}

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
	if _, err := io.WriteString(c.w, plan.Visible(plan.MaskCredentials(string(text[:whole])))); err != nil {
		return 0, err
	}
	return len(p), nil
}
