package scrape

import "ballast/planner/discover"

// longLine is what is read of a line that is too long to be held: its metric and, where an Application's owner stands
// in it, the server, as the labels go by.
type longLine struct {
	metric          string
	quoted, escaped bool
	here            bool   // what is quoted is the server
	name            []byte // of the label that comes
	server          []byte // as it is written
	beyond          bool   // it is longer than any cluster's, and not all of it is here
}

const (
	mostName   = 16                         // bytes of a label's name that are kept: that of the server is shorter
	mostServer = 2 * discover.LongestServer // and of a server, which may be written with escapes
)

// newLongLine begins with the start of the line.
func newLongLine(start []byte) *longLine {
	name, rest := splitName(trimBlanks(start))
	l := &longLine{}
	if wanted(string(name)) {
		l.metric = string(name)
	}
	l.goesOn(rest)
	return l
}

// goesOn reads the line's next piece.
func (l *longLine) goesOn(piece []byte) {
	if l.metric != metricAppInfo {
		return
	}
	for _, c := range piece {
		switch {
		case l.quoted:
			l.inQuotes(c)
		case c == '"':
			l.quoted, l.here = true, string(l.name) == serverLabel(l.metric)
		case c == ',' || c == '{':
			l.name = l.name[:0]
		case c != '=' && c != ' ' && c != '\t' && len(l.name) < mostName:
			l.name = append(l.name, c)
		}
	}
}

func (l *longLine) inQuotes(c byte) {
	if c == '"' && !l.escaped {
		l.quoted = false
		return
	}
	l.escaped = c == '\\' && !l.escaped
	if !l.here {
		return
	}
	if l.beyond = l.beyond || len(l.server) == mostServer; !l.beyond {
		l.server = append(l.server, c)
	}
}
