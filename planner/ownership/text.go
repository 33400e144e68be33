package ownership

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
)

// The metrics that are kept; all other lines are passed over.
const (
	metricAppInfo    = "argocd_app_info"
	metricCacheAge   = "argocd_cluster_cache_age_seconds"
	metricConnected  = "argocd_cluster_connection_status"
	metricSeconds    = "argocd_app_reconcile_sum"
	metricReconciles = "argocd_app_reconcile_count"
	metricMemory     = "process_resident_memory_bytes"
)

// longestLine is the bytes of a line that is read; labels of an Application take some 400. A longer one is passed over: it is of a
// cluster whose name or URL somebody made as long as a Secret is, which no fleet has.
const longestLine = 64 << 10

var (
	errNotController = errors.New("this is no application-controller's metrics: it has not one sample of Argo CD, its work queues or its process")
	errCutOff        = errors.New("the text ends in the middle of a line")
	errLine          = errors.New("this is no line of the Prometheus text format")
)

// readMetrics reads a pod's metrics in the Prometheus text format into the report, line by line, so that its size does not
// matter. A line that is malformed and would be kept, and a text that is something else, are errors. The parser of
// prometheus/common is the measure, but not in use: it keeps every sample, and v0.67.5 panics at the text "{}0".
func readMetrics(r *bounded, into *PodReport, room *room) error {
	t := text{from: r, lines: bufio.NewReaderSize(r, longestLine), report: into, servers: map[string]*gauges{}, room: room}
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
		into.Servers[server] = g.ServerReport
	}
	return nil
}

// text is a metrics text that is being read.
type text struct {
	from    *bounded
	lines   *bufio.Reader
	label   []byte // a label's value whose escapes were resolved
	report  *PodReport
	servers map[string]*gauges
	room    *room
	genuine bool // something in it is an application-controller's
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
	length, blank := len(line), len(skipBlanks(line)) == 0
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = t.lines.ReadSlice('\n')
		length += len(line)
	}
	switch {
	case err == nil:
		t.from.forgive(length)
		return nil, nil
	case errors.Is(err, io.EOF) && blank && length <= longestLine:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, errCutOff
	}
	return nil, err
}

// wanted reports whether the line's metric is one that is kept.
func wanted(line []byte) bool {
	name, _ := splitName(skipBlanks(line))
	switch string(name) {
	case metricAppInfo, metricCacheAge, metricConnected, metricSeconds, metricReconciles, metricMemory:
		return true
	}
	return false
}

func (t *text) take(line []byte) error {
	line = skipBlanks(line)
	if len(line) == 0 || line[0] == '#' {
		return nil
	}
	name, rest := splitName(line)
	if len(name) == 0 || len(rest) == 0 {
		return errLine
	}
	t.genuine = t.genuine || isController(name)
	if !wanted(name) {
		return nil
	}
	label := "server"
	switch string(name) {
	case metricAppInfo, metricSeconds, metricReconciles:
		label = "dest_server"
	}
	server, rest, err := t.readLabels(skipBlanks(rest), label)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	value, err := readValue(rest)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return t.keep(string(name), server, value)
}

// isController reports whether a metric is one of those that every application-controller has some of.
func isController(name []byte) bool {
	for _, prefix := range []string{"argocd_", "workqueue_", "process_", "go_"} {
		if bytes.HasPrefix(name, []byte(prefix)) {
			return true
		}
	}
	return false
}

// keep adds a sample to the report. Where a pod shows a gauge of one server twice, the worse one counts.
func (t *text) keep(metric string, server []byte, value float64) error {
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
	g := t.servers[string(server)]
	if g == nil {
		if err := t.room.take(server); err != nil {
			return err
		}
		g = &gauges{}
		t.servers[string(server)] = g
	}
	g.add(metric, value)
	return nil
}

// add takes a sample of one server. Numbers that a gauge or counter cannot have are passed over, and no sum is infinite.
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
		if number {
			g.Seconds = min(g.Seconds+max(value, 0), math.MaxFloat64)
		}
	case metricReconciles:
		if number {
			g.Reconciles = min(g.Reconciles+max(value, 0), math.MaxFloat64)
		}
	}
}
