package scrape

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"ballast/planner/discover"
)

var (
	errNotController = errors.New("this is no application-controller's metrics: it has not one sample of Argo CD, its work queues or its process")
	errCutOff        = errors.New("the text ends in the middle of a line")
	errLine          = errors.New("this is no line of the Prometheus text format")
	errSample        = errors.New("it is not one sample as the format has it") // without what stands there: a URL may have a password
)

// readMetrics reads a pod's metrics in the Prometheus text format into the report, line by line, so that its size does
// not matter: the parser of prometheus/common keeps every sample that it is given, and is given those of eight metrics
// only. A line of these that is malformed, and a text that is something else, are errors. bound is the bytes of what is
// read, without the events; these have as many, and an answer with all that is passed over longAnswers as many.
func readMetrics(r io.Reader, bound int64, into *PodReport, room *room) error {
	lines := bufio.NewReaderSize(&bounded{r, longAnswers * bound}, longestLine)
	t := text{lines: lines, parser: expfmt.NewTextParser(model.LegacyValidation), report: into,
		servers: map[string]*gauges{}, room: room, left: bound, events: bound}
	for number := 1; ; number++ {
		line, err := t.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = t.take(line)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	if !t.genuine {
		return errNotController
	}
	into.Servers = make(map[string]ServerReport, len(t.servers))
	for server, g := range t.servers {
		if into.ManyEvents { // which of a server's kinds were read, differs from answer to answer
			g.Events, g.Counts = 0, g.Counts&^ShowsEvents
		}
		into.Servers[server] = g.ServerReport
	}
	return nil
}

// text is a metrics text that is being read.
type text struct {
	lines   *bufio.Reader
	parser  expfmt.TextParser
	report  *PodReport
	servers map[string]*gauges
	room    *room
	left    int64 // bytes that lines may still have, but for events
	events  int64 // that those of events may
	genuine bool  // something in it is an application-controller's
}

// gauges are a server's figures while they are read.
type gauges struct {
	ServerReport
	told bool // a connection status was among them
}

// next is the next line without its end. One that is longer than any is as an empty one.
func (t *text) next() ([]byte, error) {
	line, err := t.lines.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1], nil
	}
	length, blank := len(line), len(trimBlanks(line)) == 0
	long := newLongLine(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = t.lines.ReadSlice('\n')
		length += len(line)
		long.goesOn(line)
	}
	switch {
	case err == nil:
		return nil, t.takeLong(long)
	case errors.Is(err, io.EOF) && blank && length <= longestLine:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, errCutOff
	}
	return nil, err
}

// takeLong takes what was read of a line that is too long.
func (t *text) takeLong(l *longLine) error {
	switch {
	case l.metric == metricEvents:
		t.report.LongEvents++
	case l.metric == metricAppInfo && l.quoted:
		return fmt.Errorf("reading %s: %w", l.metric, errSample)
	case l.metric == metricAppInfo && !l.beyond:
		t.genuine = true
		return t.keep(l.metric, urlOf(l.metric, unescaped(l.server)), 1)
	}
	return nil
}

func (t *text) take(line []byte) error {
	line = trimBlanks(line)
	if len(line) == 0 || line[0] == '#' {
		return nil
	}
	name, rest := splitName(line)
	if len(name) == 0 || len(rest) == 0 {
		return errLine
	}
	t.genuine = t.genuine || isController(name)
	if !wanted(string(name)) {
		return nil
	}
	metric := string(name)
	if reads, err := t.admit(metric, len(line)); !reads {
		return err
	}
	server, value, err := t.sample(metric, line, rest)
	if err != nil {
		return fmt.Errorf("reading %s: %w", metric, err)
	}
	return t.keep(metric, urlOf(metric, server), value)
}

// admit counts a line, and reports whether it is read. A long one costs nothing, since tenants write Applications'
// texts: whatever tells who owns a cluster is read, or the whole answer counts for nothing. Events are
// counted by kind, and a managed cluster names as many kinds as it likes, of any length: they have a bound of their
// own, and what is beyond it, or long, is passed over.
func (t *text) admit(metric string, length int) (reads bool, err error) {
	long := length > usualLine
	switch {
	case metric == metricEvents && long:
		t.report.LongEvents++
		return false, nil
	case metric == metricEvents:
		t.events -= int64(length)
		t.report.ManyEvents = t.report.ManyEvents || t.events < 0
		return !t.report.ManyEvents, nil
	case long:
		return true, nil
	}
	if t.left -= int64(length); t.left < 0 {
		return false, errTooLarge
	}
	return true, nil
}

// sample is the server and the value of a line.
func (t *text) sample(metric string, line, rest []byte) (server string, value float64, err error) {
	label := serverLabel(metric)
	if server, value, plain := readPlain(rest, label); plain {
		return server, value, nil
	}
	sample, err := t.parse(metric, line)
	if err != nil {
		return "", 0, err
	}
	for _, pair := range sample.GetLabel() {
		if pair.GetName() == label {
			server = pair.GetValue()
		}
	}
	return server, sample.GetUntyped().GetValue(), nil
}

// parse reads the one sample of a line. No line before it gave a type.
func (t *text) parse(metric string, line []byte) (*dto.Metric, error) {
	if labelsIn(line) > mostLabels {
		return nil, errSample
	}
	families, err := t.parser.TextToMetricFamilies(io.MultiReader(bytes.NewReader(line), strings.NewReader("\n")))
	samples := families[metric].GetMetric()
	if err != nil || len(families) != 1 || len(samples) != 1 {
		return nil, errSample
	}
	return samples[0], nil
}

// keep adds a sample to the report. Where a pod shows a gauge of one server twice, the worse one counts.
func (t *text) keep(metric, server string, value float64) error {
	if metric == metricMemory {
		if value >= 0 && value < math.MaxInt64 { // NaN is neither
			t.report.Memory = int64(value)
		}
		return nil
	}
	if len(server) == 0 {
		if metric == metricAppInfo {
			t.report.Unplaced++
		}
		return nil
	}
	if len(server) > discover.LongestServer { // no cluster that is planned for has it, and it would take the others' room
		return nil
	}
	g := t.servers[server]
	if g == nil {
		if err := t.room.take(server); err != nil {
			return err
		}
		g = &gauges{}
		t.servers[server] = g
	}
	g.add(metric, value)
	return nil
}

// more adds to a counter that a server has several of: one of each kind, or of each namespace.
// What a counter cannot be is passed over.
func more(sum *float64, value float64) (counts bool) {
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return false
	}
	*sum = min(*sum+value, math.MaxFloat64)
	return true
}

// add takes a sample of one server. Numbers that a gauge or counter cannot have are passed over, and no sum is
// infinite.
func (g *gauges) add(metric string, value float64) {
	number := !math.IsNaN(value) && !math.IsInf(value, 0)
	switch metric {
	case metricAppInfo:
		g.Apps++
	case metricCacheAge:
		if !number {
			value = -1
		}
		if !g.Cached || value < g.CacheAge {
			g.CacheAge = value
		}
		g.Cached = true
	case metricConnected:
		g.Connected = value == 1 && (g.Connected || !g.told)
		g.told = true
	case metricSeconds:
		more(&g.Seconds, value)
	case metricReconciles:
		if more(&g.Reconciles, value) {
			g.Counts |= ShowsReconciles
		}
	case metricEvents:
		if more(&g.Events, value) {
			g.Counts |= ShowsEvents
		}
	case metricObjects:
		if number && value >= 0 {
			g.Counts |= ShowsObjects
			g.Objects = max(g.Objects, value)
		}
	}
}
