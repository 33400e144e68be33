package auditlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"ballast/planner/plan"
)

// MaxLine is the longest line that is read. An event at level Metadata takes some 2 KiB, one with an object of etcd's
// limit in the request and the response 3 MiB; a request's URI, which the API server takes up to 1 MiB of, may be
// written with six bytes for each of its own.
const MaxLine = 12 << 20

// readAhead is read from a log at a time.
const readAhead = 256 << 10

// Log reads audit logs one after the other. Its memory does not grow with them.
type Log struct {
	// Lines and Events count what was read, blank lines left out.
	Lines, Events int64
	// What could not be read, and where it stands first.
	Broken, TooLong, Unfinished Trouble

	seen     recent
	sites    sites
	planners planners
}

// Options are what a log itself does not tell.
type Options struct {
	// Namespaces are where ballast is at work: those of its plans. Others are learned from the log.
	Namespaces []string
	// Planners are the users of planners; without any, of each namespace its ServiceAccount ballast-planner.
	Planners []string
}

// NewLog makes a Log that has read nothing yet.
func NewLog(o Options) *Log {
	return &Log{sites: sites{namespaces: slices.Clone(o.Namespaces)}, planners: o.Planners}
}

// Trouble is a kind of lines that could not be read.
type Trouble struct {
	Count int64
	File  string
	Line  int64 // of the first, from 1
}

func (t *Trouble) add(file string, line int64) {
	if t.Count == 0 {
		t.File, t.Line = file, line
	}
	t.Count++
}

// Read hands on the writes of a log in its order, each once however often it is logged. It ends early only when the log
// cannot be read on, or with the error of each.
func (l *Log) Read(name string, r io.Reader, each func(Write) error) error {
	in := &lines{r: bufio.NewReaderSize(r, readAhead)}
	for {
		line, err := in.next()
		if errors.Is(err, errTooLong) {
			l.Lines++
			l.TooLong.add(name, in.number)
			continue
		}
		if len(line) > 0 {
			l.Lines++
			if err := l.line(name, in, line, each); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %q: %w", name, err)
		}
	}
}

// concerned reports whether a line may speak of what is ballast's concern: of a whole cluster's log that is a small
// part.
func (l *Log) concerned(line []byte) bool {
	has := func(text string) bool { return bytes.Contains(line, []byte(text)) }
	ours := has(plan.Group) || has(`"`+ownPrefix) || l.planners.among(has)
	token := has(`"serviceaccounts"`) && has(`"token"`) || has(`"secrets"`) && has(`"`+controllerManager+`"`)
	part := has(`"subresource"`) && (has(`"status"`) || has(`"resize"`))
	return ours || token || part || has(`"`+verbDelete)
}

// line reads one line. Only one that may concern ballast is decoded.
func (l *Log) line(name string, in *lines, line []byte, each func(Write) error) error {
	whole := line[0] == '{' && line[len(line)-1] == '}' && bytes.Contains(line, []byte("audit.k8s.io/"))
	if !whole || !l.concerned(line) {
		l.count(whole, name, in)
		return nil
	}
	w, ours, err := parse(line, l.planners) // what fails is counted, and never ours
	l.count(err == nil, name, in)
	if !ours {
		return nil
	}
	if w.Effect != Unasked {
		l.sites.learn(w)
	} else if !l.sites.concern(w) {
		return nil
	}
	if l.seen.first(line) {
		return each(w)
	}
	return nil
}

// count counts a line. A last line without its end is no mistake: the API server is writing it.
func (l *Log) count(good bool, name string, in *lines) {
	switch {
	case good:
		l.Events++
	case in.unfinished:
		l.Unfinished.add(name, in.number)
	default:
		l.Broken.add(name, in.number)
	}
}

// lines splits a log.
type lines struct {
	r          *bufio.Reader
	long       []byte // what a line takes that does not fit the reader
	number     int64
	unfinished bool
}

var errTooLong = errors.New("the line is too long")

// next returns the next line without the blanks around it, valid until the next call. A line may come along with
// io.EOF.
func (l *lines) next() ([]byte, error) {
	l.number++
	l.long = l.long[:0]
	tooLong := false
	for {
		part, err := l.r.ReadSlice('\n')
		more := errors.Is(err, bufio.ErrBufferFull)
		if tooLong = tooLong || len(l.long)+len(part) > MaxLine; tooLong {
			l.long = nil
		} else if more || len(l.long) > 0 {
			l.long = append(l.long, part...)
			part = l.long
		}
		switch {
		case more:
			continue
		case tooLong:
			return nil, errTooLong // the end of the log comes again
		}
		l.unfinished = err != nil
		return bytes.TrimSpace(part), err
	}
}
