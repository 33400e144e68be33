package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"ballast/planner/plan"
)

// The columns of a table that are no metric.
const (
	columnTime    = "time"
	columnCluster = "cluster"
	columnServer  = "server"
	columnUID     = "uid"
	columnReplica = "replica"
)

// Table reads a trace in CSV: a line for each time and cluster, in the order of time. Its columns are time (RFC 3339,
// or seconds since 1970) and cluster, maybe server, uid and replica, and every other one is a metric. A cluster is
// there as long as it has lines, and a cell that is empty is no value. The step is the time between the first two.
type Table struct {
	in      *csv.Reader
	head    Header
	columns []string // of every cell
	metrics []int    // which cells are metrics
	size    int64
	before  Step
	ahead   []string // the first line of the step that follows; nil: there is none
	second  *Step    // the second step, which the header needed
	first   *Step
}

var _ Source = (*Table)(nil)

// NewTable reads the header and the first two steps. size is that of the whole text in bytes; 0 where it is not known.
func NewTable(in io.Reader, size int64) (*Table, error) {
	t := &Table{in: csv.NewReader(&bounded{in: in}), size: size}
	t.in.ReuseRecord, t.in.TrimLeadingSpace = false, true
	head, err := t.in.Read()
	if err != nil {
		return nil, fmt.Errorf("line 1: a table begins with its columns, as time,cluster,%s: %w", LoadMetric, err)
	}
	if err := t.columnsOf(head); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if t.ahead, err = t.in.Read(); err != nil {
		return nil, fmt.Errorf("line 2: the trace is empty: %w", err)
	}
	first, err := t.step()
	if err != nil {
		return nil, err
	}
	t.first, t.head.Step = &first, time.Minute
	if t.ahead != nil {
		second, err := t.step()
		if err != nil {
			return nil, err
		}
		t.second, t.head.Step = &second, second.At.Sub(first.At)
	}
	for _, c := range first.Clusters {
		t.head.Replicas = max(t.head.Replicas, c.Replica+1)
	}
	if err := t.head.check(); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	return t, nil
}

// bounded ends a text in which a line goes on and on, over several where it is quoted.
type bounded struct {
	in     io.Reader
	line   int
	quoted bool
}

var errLongLine = fmt.Errorf("a line has more than %d MiB", maxLine>>20)

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	for _, c := range p[:n] {
		b.line++
		switch {
		case c == '"':
			b.quoted = !b.quoted
		case c == '\n' && !b.quoted:
			b.line = 0
		}
	}
	if b.line > maxLine {
		return 0, errLongLine
	}
	return n, err
}

// ownColumns is how many columns are no metric's.
const ownColumns = 5

func (t *Table) columnsOf(head []string) error {
	if most := MostMetrics + ownColumns; len(head) > most {
		return fmt.Errorf("%d columns are more than the %d that a trace may have", len(head), most)
	}
	t.columns = slices.Clone(head)
	for i, name := range head {
		if slices.Contains(head[:i], name) {
			return fmt.Errorf("column %q stands twice", name)
		}
		switch name {
		case columnTime, columnCluster, columnServer, columnUID, columnReplica:
		default:
			t.metrics, t.head.Metrics = append(t.metrics, i), append(t.head.Metrics, name)
		}
	}
	for _, need := range []string{columnTime, columnCluster} {
		if !slices.Contains(head, need) {
			return fmt.Errorf("there is no column %q; the first line names the columns, as time,cluster,%s", need,
				LoadMetric)
		}
	}
	return nil
}

// Header implements Source.
func (t *Table) Header() Header { return t.head }

// Share implements Source.
func (t *Table) Share() float64 {
	if t.size <= 0 {
		return 0
	}
	return min(float64(t.in.InputOffset())/float64(t.size), 1)
}

// Next implements Source.
func (t *Table) Next() (Step, error) {
	for _, kept := range []**Step{&t.first, &t.second} {
		if s := *kept; s != nil {
			*kept = nil
			return *s, nil
		}
	}
	if t.ahead == nil {
		return Step{}, io.EOF
	}
	return t.step()
}

// step reads the lines of one time.
func (t *Table) step() (Step, error) {
	s := Step{Values: make([][]float64, len(t.metrics))}
	var clusters []Cluster
	for text := ""; t.ahead != nil; {
		line, _ := t.in.FieldPos(0)
		cell := t.cell(t.ahead, columnTime)
		if text != "" && cell != text {
			break
		}
		c, err := t.line(&s, text == "")
		if err != nil {
			return s, fmt.Errorf("line %d: %w", line, err)
		}
		if clusters, text = append(clusters, c), cell; len(clusters) > MostClusters {
			return s, fmt.Errorf("line %d: %s has more than %d clusters", line, text, MostClusters)
		}
		if t.ahead, err = t.in.Read(); err != nil {
			if t.ahead = nil; !errors.Is(err, io.EOF) {
				return s, err
			}
		}
	}
	return s, t.rostered(&s, clusters)
}

// rostered compares the clusters with those of the step before; where they are was said at first.
func (t *Table) rostered(s *Step, clusters []Cluster) error {
	if err := checkRoster(clusters); err != nil {
		return fmt.Errorf("at %s: %w", s.At.Format(time.RFC3339), err)
	}
	s.Roster, s.Clusters = t.before.Roster, t.before.Clusters
	named := func(a, b Cluster) bool { return a.Name == b.Name && a.Server == b.Server && a.UID == b.UID }
	if s.Roster == 0 || !slices.EqualFunc(clusters, s.Clusters, named) {
		s.Roster, s.Clusters = s.Roster+1, clusters
	}
	t.before = *s
	return nil
}

func (t *Table) cell(record []string, column string) string {
	if i := slices.Index(t.columns, column); i >= 0 {
		return record[i]
	}
	return ""
}

// line takes over what the line ahead says of one cluster.
func (t *Table) line(s *Step, first bool) (Cluster, error) {
	c := Cluster{Name: t.cell(t.ahead, columnCluster), Server: t.cell(t.ahead, columnServer),
		UID:     t.cell(t.ahead, columnUID),
		Replica: plan.NoReplica}.named()
	if first {
		at, err := parseTime(t.cell(t.ahead, columnTime))
		if err == nil {
			err = follows(t.before.At, at)
		}
		if err != nil {
			return c, fmt.Errorf("column %q: %w", columnTime, err)
		}
		s.At = at
	}
	if text := t.cell(t.ahead, columnReplica); text != "" {
		replica, err := strconv.Atoi(text)
		if err != nil {
			return c, fmt.Errorf("column %q: %.40q is no whole number; leave it empty where it is not known",
				columnReplica, text)
		}
		c.Replica = replica
	}
	for m, i := range t.metrics {
		v, err := parseValue(t.ahead[i])
		if err == nil {
			err = checkValue(t.columns[i], c.Name, v)
		}
		if err != nil {
			return c, fmt.Errorf("column %q: %w", t.columns[i], err)
		}
		s.Values[m] = append(s.Values[m], v)
	}
	return c, c.check()
}

func parseValue(text string) (float64, error) {
	if text == "" {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number; leave it empty where there is no value", text)
	}
	return v, nil
}

func parseTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%.40q is no time: write it like 2026-11-20T09:00:00Z, or as seconds since 1970",
			text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
