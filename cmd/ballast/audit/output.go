package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ballast/cmd/ballast/say"
	"ballast/webhook/auditlog"
)

func (o *options) writer(w io.Writer) (auditWriter, error) {
	switch o.output {
	case "table":
		return &auditTable{columns: columns{w: w}, namespaces: len(o.namespaces) == 0}, nil
	case "json":
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return auditJSON{e}, nil
	case "totals":
		return &auditTotals{w: w}, nil
	}
	return nil, fmt.Errorf("--output: %q is not table, json or totals", o.output)
}

type auditJSON struct{ *json.Encoder }

func (j auditJSON) write(w auditlog.Write) error { return j.Encode(w) }

func (j auditJSON) end() error { return nil }

// auditTable is a row a write.
type auditTable struct {
	columns
	namespaces bool // are shown, because more than one may come
	begun      bool
}

func (t *auditTable) write(w auditlog.Write) error {
	if !t.begun {
		t.begun = true
		if err := t.row(t.cells("TIME", "USER", "VERB", "NAMESPACE", "OBJECT", "REQUESTED", "ENFORCED", "REASON", "REVISION", "RESULT")); err != nil {
			return err
		}
	}
	user, revision := w.User, "-"
	if w.By != "" {
		user += ", impersonated by " + w.By
	}
	if w.Revision != 0 {
		revision = strconv.FormatInt(w.Revision, 10)
	}
	return t.row(t.cells(w.Time.Format(time.RFC3339), user, w.Action(), w.Namespace, w.Object(), w.Requested,
		w.Enforced, w.Reason, revision, w.Result()))
}

// namespaceColumn is the place of the namespace among a row's cells.
const namespaceColumn = 3

func (t *auditTable) cells(all ...string) []string {
	if !t.namespaces {
		return append(all[:namespaceColumn], all[namespaceColumn+1:]...)
	}
	return all
}

// auditTotals is a row a user.
type auditTotals struct {
	auditlog.Totals
	w io.Writer
}

func (t *auditTotals) write(w auditlog.Write) error {
	t.Add(w)
	return nil
}

func (t *auditTotals) end() error {
	users := t.Users()
	if len(users) == 0 {
		return nil
	}
	c := columns{w: t.w}
	rows := [][]string{{"USER", "IMPERSONATED BY", "ACCOUNT", "WRITES", "REWRITTEN", "REFUSED", "ACTS", "FAULTED",
		"FAILED OPEN", "FAILED CLOSED", "DRY RUNS", "LAST"}}
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	for _, u := range users {
		rows = append(rows, []string{u.User, say.OrDash(u.By), say.OrDash(u.Account.String()), n(u.Writes),
			n(u.Rewritten), n(u.Refused), n(u.Acts), n(u.Faulted),
			n(u.FailedOpen), n(u.FailedClosed), n(u.DryRun), u.Last.Format(time.RFC3339)})
	}
	for _, row := range rows {
		if err := c.row(row); err != nil {
			return err
		}
	}
	return c.end()
}

// measured is how many rows are held back to find the widths of the columns; a longer cell later on pushes its row.
const measured = 500

// columns lines up rows of any number in bounded memory.
type columns struct {
	w      io.Writer
	held   [][]string
	widths []int // nil as long as rows are held back
}

func (c *columns) row(cells []string) error {
	if c.widths != nil {
		return c.print(cells)
	}
	c.held = append(c.held, cells)
	if len(c.held) > measured {
		return c.end()
	}
	return nil
}

// end writes the rows that are held back.
func (c *columns) end() error {
	for _, cells := range c.held {
		for i, cell := range cells {
			if i == len(c.widths) {
				c.widths = append(c.widths, 0)
			}
			c.widths[i] = max(c.widths[i], utf8.RuneCountInString(cell))
		}
	}
	held := c.held
	c.held = nil
	for _, cells := range held {
		if err := c.print(cells); err != nil {
			return err
		}
	}
	return nil
}

func (c *columns) print(cells []string) error {
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString(cell)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", max(c.widths[i]-utf8.RuneCountInString(cell), 0)+3))
		}
	}
	b.WriteByte('\n')
	_, err := io.WriteString(c.w, b.String())
	return err
}

// noteAudit says what the output does not: what was left out, and what could not be read.
func noteAudit(w io.Writer, log *auditlog.Log, hidden int) {
	if hidden > 0 {
		say.To(w, "not shown: %s that agreed with the plan or that a rule let pass (--all shows them)\n",
			say.Plural(hidden, "write"))
	}
	if log.Events == 0 && log.Lines > 0 {
		say.To(w, "none of %s is an audit event: is this an API server's audit log?\n",
			say.Plural(int(log.Lines), "line"))
	}
	noteTrouble(w, log.Broken, "could not be read as an audit event")
	noteTrouble(w, log.TooLong, fmt.Sprintf("is longer than %d MiB and was left out", auditlog.MaxLine>>20))
	noteTrouble(w, log.Unfinished, "has no end yet and was left out")
}

func noteTrouble(w io.Writer, t auditlog.Trouble, what string) {
	switch {
	case t.Count == 1:
		say.To(w, "line %d of %s %s\n", t.Line, t.File, what)
	case t.Count > 1:
		say.To(w, "each of %d lines %s; the first is line %d of %s\n", t.Count, what, t.Line, t.File)
	}
}
