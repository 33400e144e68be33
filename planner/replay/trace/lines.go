package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"ballast/planner/config"
	"ballast/planner/plan"
)

// headLine is the first line of a trace in JSON.
type headLine struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Step       config.Duration `json:"step"`
	Metrics    []string        `json:"metrics"`
	Replicas   int             `json:"replicas,omitempty"`
}

// stepLine is every other line. Clusters stand where they differ from those of the line before; values has a row for
// each metric, in the header's order, with a value or null for each cluster.
type stepLine struct {
	At       time.Time     `json:"at"`
	Clusters []clusterLine `json:"clusters,omitempty"`
	Values   []row         `json:"values"`
}

type clusterLine struct {
	Name    string `json:"name"`
	Server  string `json:"server,omitempty"`
	UID     string `json:"uid,omitempty"`
	Replica *int   `json:"replica,omitempty"`
}

// row is numbers, of which null is NaN: to encoding/json it would be 0.
type row []float64

// MarshalJSON writes NaN as null.
func (r row) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 2+8*len(r))
	b = append(b, '[')
	for i, v := range r {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(v) {
			b = append(b, "null"...)
			continue
		}
		b = strconv.AppendFloat(b, v, 'g', -1, 64)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads numbers and nulls.
func (r *row) UnmarshalJSON(text []byte) error {
	text = bytes.TrimSpace(text)
	if len(text) < 2 || text[0] != '[' {
		return errors.New("values are rows of numbers: [[1, 2.5, null], ...], a row for each metric")
	}
	inner := bytes.TrimSpace(text[1 : len(text)-1])
	*r = (*r)[:0]
	for len(inner) > 0 {
		word, rest, more := bytes.Cut(inner, []byte{','})
		word = bytes.TrimSpace(word)
		v := math.NaN()
		if string(word) != "null" {
			var err error
			if v, err = strconv.ParseFloat(string(word), 64); err != nil {
				return fmt.Errorf("%.40q is no number and not null", word)
			}
		}
		if *r = append(*r, v); !more {
			return nil
		}
		inner = rest
	}
	return nil
}

// Lines reads a trace in JSON: an object a line, the first of which is the header.
type Lines struct {
	in     *bufio.Reader
	head   Header
	line   int
	read   int64
	size   int64 // of the whole; 0: not known
	before Step
	whole  int64 // bytes of the lines that are whole
}

var _ Source = (*Lines)(nil)

// NewLines reads the header. size is that of the whole text in bytes; 0 where it is not known.
func NewLines(in io.Reader, size int64) (*Lines, error) {
	l := &Lines{in: bufio.NewReaderSize(in, 1<<16), size: size}
	text, err := l.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("line 1: the trace is empty")
	}
	if err != nil {
		return nil, err
	}
	var head headLine
	if err := strict(text, &head); err != nil {
		return nil, l.wrong(fmt.Errorf("it is no trace's header: %w; it begins with {\"apiVersion\":%q,\"kind\":%q,\"step\":\"1m\",\"metrics\":[%q]}",
			err, plan.APIVersion, Kind, LoadMetric))
	}
	if head.APIVersion != plan.APIVersion || head.Kind != Kind {
		return nil, l.wrong(fmt.Errorf("apiVersion and kind are %.60q and %.60q, those of a trace are %q and %q",
			head.APIVersion, head.Kind, plan.APIVersion, Kind))
	}
	l.head = Header{Step: time.Duration(head.Step), Metrics: head.Metrics, Replicas: head.Replicas}
	if err := l.head.check(); err != nil {
		return nil, l.wrong(err)
	}
	return l, nil
}

// strict refuses fields that there are none of, and what follows the object.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the object")
	}
	return nil
}

func (l *Lines) wrong(err error) error { return fmt.Errorf("line %d: %w", l.line, err) }

// next is the next line that is not blank, within its bound.
func (l *Lines) next() ([]byte, error) {
	for {
		var text []byte
		for {
			piece, err := l.in.ReadSlice('\n')
			text = append(text, piece...)
			if l.read += int64(len(piece)); len(text) > maxLine {
				return nil, fmt.Errorf("line %d: it has more than %d MiB", l.line+1, maxLine>>20)
			}
			if err == nil {
				break
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != io.EOF || len(text) == 0 {
				return nil, err
			}
			break
		}
		l.line++
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return text, nil
		}
	}
}

// Header implements Source.
func (l *Lines) Header() Header { return l.head }

// Whole is how many bytes the steps took that were read without a fault: what follows may be cut off.
func (l *Lines) Whole() int64 { return l.whole }

// Share implements Source.
func (l *Lines) Share() float64 {
	if l.size <= 0 {
		return 0
	}
	return min(float64(l.read)/float64(l.size), 1)
}

// Next implements Source.
func (l *Lines) Next() (Step, error) {
	l.whole = l.read
	text, err := l.next()
	if err != nil {
		return Step{}, err
	}
	var line stepLine
	if err := strict(text, &line); err != nil {
		return Step{}, l.wrong(err)
	}
	step, err := l.step(line)
	if err != nil {
		return Step{}, l.wrong(err)
	}
	l.before, l.whole = step, l.read
	return step, nil
}

func (l *Lines) step(line stepLine) (Step, error) {
	s := Step{At: line.At.UTC(), Roster: l.before.Roster, Clusters: l.before.Clusters,
		Values: make([][]float64, len(line.Values))}
	if err := follows(l.before.At, s.At); err != nil {
		return s, fmt.Errorf("at: %w", err)
	}
	if line.Clusters != nil {
		s.Roster, s.Clusters = s.Roster+1, clustersOf(line.Clusters)
		if err := checkRoster(s.Clusters); err != nil {
			return s, fmt.Errorf("clusters: %w", err)
		}
	}
	if s.Roster == 0 {
		return s, errors.New("clusters: the first step names them")
	}
	if len(line.Values) != len(l.head.Metrics) {
		return s, fmt.Errorf("values: there are %d rows for %d metrics", len(line.Values), len(l.head.Metrics))
	}
	for m, r := range line.Values {
		if len(r) != len(s.Clusters) {
			return s, fmt.Errorf("values[%d]: metric %q has %d values for %d clusters", m, l.head.Metrics[m], len(r),
				len(s.Clusters))
		}
		for i, v := range r {
			if err := checkValue(l.head.Metrics[m], s.Clusters[i].Name, v); err != nil {
				return s, fmt.Errorf("values[%d]: %w", m, err)
			}
		}
		s.Values[m] = r
	}
	return s, nil
}

func clustersOf(lines []clusterLine) []Cluster {
	clusters := make([]Cluster, len(lines))
	for i, c := range lines {
		clusters[i] = Cluster{Name: c.Name, Server: c.Server, UID: c.UID, Replica: plan.NoReplica}.named()
		if c.Replica != nil {
			clusters[i].Replica = *c.Replica
		}
	}
	return clusters
}

// Writer writes a trace in JSON.
type Writer struct {
	out    io.Writer
	roster int
}

// NewWriter writes the header.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	head := headLine{plan.APIVersion, Kind, config.Duration(h.Step), h.Metrics, h.Replicas}
	return &Writer{out: out}, writeLine(out, head)
}

// Resume goes on with a trace whose last step is given.
func Resume(out io.Writer, roster int) *Writer { return &Writer{out: out, roster: roster} }

// Write writes a step.
func (w *Writer) Write(s Step) error {
	line := stepLine{At: s.At, Values: make([]row, len(s.Values))}
	for m, r := range s.Values {
		line.Values[m] = r
	}
	if s.Roster != w.roster {
		w.roster, line.Clusters = s.Roster, make([]clusterLine, len(s.Clusters))
		for i, c := range s.Clusters {
			line.Clusters[i] = lineOf(c)
		}
	}
	return writeLine(w.out, line)
}

func lineOf(c Cluster) clusterLine {
	usual := Cluster{Name: c.Name}.named()
	l := clusterLine{Name: c.Name}
	if c.Server != usual.Server {
		l.Server = c.Server
	}
	if c.UID != usual.UID {
		l.UID = c.UID
	}
	if c.Replica != plan.NoReplica {
		l.Replica = &c.Replica
	}
	return l
}

func writeLine(out io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing a trace: %w", err)
	}
	if _, err := out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("writing a trace: %w", err)
	}
	return nil
}
