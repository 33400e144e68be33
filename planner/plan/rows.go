package plan

import (
	"strconv"
	"strings"
)

// clustersHead starts the rows in what Encode writes.
const clustersHead = "\nclusters:\n"

// cutRows takes the rows out of a document that Encode wrote, by lines: a YAML reader takes 30 times as long for them and
// leaves 36 MB of garbage behind at 7,500 rows, on every replica at every change. What does not look to the letter like
// Encode's own lines is left to the YAML reader; ok is false then.
func cutRows(text string) (rest string, rows map[string]Row, ok bool) {
	start := strings.Index(text, clustersHead)
	if start < 0 {
		return "", nil, false
	}
	body := text[start+len(clustersHead):]
	rows = make(map[string]Row, strings.Count(body, "\n"))
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
func parseRow(line string) (string, Row, bool) {
	name, fields, ok := strings.Cut(line, ": {replica: ")
	if !ok {
		return "", Row{}, false
	}
	if strings.HasPrefix(name, `"`) {
		unquoted, err := strconv.Unquote(name)
		if err != nil || strconv.Quote(unquoted) != name {
			return "", Row{}, false
		}
		name = unquoted
	} else if scalar(name) != name {
		return "", Row{}, false
	}
	row, ok := parseFields(fields)
	return name, row, ok
}

func parseFields(s string) (row Row, ok bool) {
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
		if len(rest) < serverHashLetters || strings.Trim(rest[:serverHashLetters], "abcdefghijklmnopqrstuvwxyz") != "" {
			return row, false
		}
		row.Server, s = rest[:serverHashLetters], rest[serverHashLetters:]
	}
	if rest, found := strings.CutPrefix(s, ", pinned: true"); found {
		row.Pinned, s = true, rest
	}
	return row, s == "}"
}
