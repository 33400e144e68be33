package codec

import (
	"strconv"
	"strings"

	"ballast/planner/plan"
)

// clustersHead starts the rows in what Encode writes.
const clustersHead = "\nclusters:\n"

// cutRows takes the rows out of a document that Encode wrote, by lines: a YAML reader takes 30 times as long for them
// and leaves 36 MB of garbage behind at 7,500 rows, on every replica at every change. What does not look to the letter
// like Encode's own lines is left to the YAML reader; ok is false then.
func cutRows(text string) (rest string, rows map[string]plan.Row, ok bool) {
	start := strings.Index(text, clustersHead)
	if start < 0 {
		return "", nil, false
	}
	body := text[start+len(clustersHead):]
	rows = make(map[string]plan.Row, strings.Count(body, "\n"))
	for strings.HasPrefix(body, "  ") {
		line, after, whole := strings.Cut(body, "\n")
		name, row, parsed := parseRow(line[2:])
		if _, twice := rows[name]; !whole || !parsed || twice {
			return "", nil, false
		}
		rows[name] = row
		body = after
	}
	// The rest must not say anything about clusters that a reader of the whole document would see.
	if len(rows) == 0 || !strings.HasPrefix(body, "rollout:\n") && body != "" {
		return "", nil, false
	}
	return text[:start+1] + "clusters: {}\n" + body, rows, true
}

// parseRow reads `name: {replica: 3, load: "1.82", srv: abcdefg, pinned: true}`.
func parseRow(line string) (string, plan.Row, bool) {
	name, fields, ok := strings.Cut(line, ": {replica: ")
	if !ok {
		return "", plan.Row{}, false
	}
	if name, ok = unscalar(name); !ok {
		return "", plan.Row{}, false
	}
	row, ok := parseFields(fields)
	return name, row, ok
}

func parseFields(s string) (row plan.Row, ok bool) {
	end := strings.IndexAny(s, ",}")
	if end < 0 {
		return row, false
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil || strconv.Itoa(n) != s[:end] {
		return row, false
	}
	row.Replica, s = n, s[end:]
	if rest, found := strings.CutPrefix(s, `, load: "`); found {
		load, after, closed := strings.Cut(rest, `"`)
		if !closed || load == "" || strings.Trim(load, "0123456789.") != "" {
			return row, false
		}
		row.Load, s = load, after
	}
	if rest, found := strings.CutPrefix(s, ", srv: "); found {
		if len(rest) < plan.ServerHashLetters || strings.Trim(rest[:plan.ServerHashLetters], "abcdefghijklmnopqrstuvwxyz") != "" {
			return row, false
		}
		row.Server, s = rest[:plan.ServerHashLetters], rest[plan.ServerHashLetters:]
	}
	if rest, found := strings.CutPrefix(s, ", pinned: true"); found {
		row.Pinned, s = true, rest
	}
	return row, s == "}"
}

// flows are the moves of a rollout that were read by lines; nil for one that was not.
type flows struct{ moves, was map[string]int }

// cutFlows takes the moves out of the rollout that Encode wrote, which may be as long as the rows. It looks at the last
// lines only, where Encode puts them.
func cutFlows(text string) (string, flows) {
	var f flows
	text, f.was = cutFlow(text, "  was: {")
	text, f.moves = cutFlow(text, "  moves: {")
	return text, f
}

// cutFlow takes one map out, if it is the document's last line.
func cutFlow(text, head string) (string, map[string]int) {
	line := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	body, found := strings.CutPrefix(text[line:], head)
	body, closed := strings.CutSuffix(body, "}\n")
	if !found || !closed || !endsInRollout(text[:line], strings.TrimRight(head, "{ ")) {
		return text, nil
	}
	m := make(map[string]int, strings.Count(body, ",")+1)
	for field := range strings.SplitSeq(body, ", ") {
		name, value, _ := strings.Cut(field, ": ")
		name, ok := unscalar(name)
		n, err := strconv.Atoi(value)
		whole := err == nil && strconv.Itoa(n) == value
		if _, twice := m[name]; !ok || twice || !whole {
			return text, nil
		}
		m[name] = n
	}
	return text[:line], m
}

// endsInRollout reports whether the next line of a document is the rollout's, and the first to begin so.
func endsInRollout(text, head string) bool {
	const begins = "\nrollout:\n  mode: "
	at := strings.LastIndex(text, begins)
	if at < 0 {
		return false
	}
	for line := range strings.Lines(text[at+len(begins)-len("  mode: "):]) {
		if !strings.HasPrefix(line, "  ") || strings.HasPrefix(line, head) {
			return false
		}
	}
	return true
}

// into puts the moves back where they were cut out.
func (f flows) into(r *plan.Rollout) {
	if r == nil {
		return
	}
	if f.moves != nil {
		r.Moves = f.moves
	}
	if f.was != nil {
		r.Was = f.was
	}
}
