package scrape

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"ballast/planner/discover"
)

// The metrics that are kept; all other lines are passed over.
const (
	metricAppInfo    = "argocd_app_info"
	metricCacheAge   = "argocd_cluster_cache_age_seconds"
	metricConnected  = "argocd_cluster_connection_status"
	metricSeconds    = "argocd_app_reconcile_sum"
	metricReconciles = "argocd_app_reconcile_count"
	metricMemory     = "process_resident_memory_bytes"
	metricObjects    = "argocd_cluster_api_resource_objects"
	metricEvents     = "argocd_cluster_events_total"
)

// longestLine is the bytes of a line that is read as a whole; labels of an Application take some 400. Of a longer one
// of an Application, which tells who owns a cluster, the server is read; any other is passed over: it is of a cluster
// whose name or URL somebody made as long as a Secret is, which no fleet has.
const longestLine = 64 << 10

// usualLine is the bytes that a line of a fleet stays below, whatever labels its Applications have.
const usualLine = 4 << 10

// mostLabels bounds the labels of a line, as whose square the parser's time grows: an Application's line has a dozen.
const mostLabels = 256

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

// wanted reports whether a metric is one that is kept.
func wanted(metric string) bool {
	switch metric {
	case metricAppInfo, metricCacheAge, metricConnected, metricSeconds, metricReconciles, metricMemory, metricObjects, metricEvents:
		return true
	}
	return false
}

// serverLabel is the label by which a metric names the server.
func serverLabel(metric string) string {
	switch metric {
	case metricAppInfo, metricSeconds, metricReconciles:
		return "dest_server"
	}
	return "server"
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

// urlOf is a server as a cluster's Secret has it, without a slash behind it. An Application that writes one names no
// cluster, and every pod shows it: Argo CD finds none by such a URL.
func urlOf(metric, server string) string {
	if strings.HasSuffix(server, "/") && serverLabel(metric) == "dest_server" {
		return ""
	}
	return strings.TrimRight(server, "/")
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

// labelsIn is how many labels a line has: each has its value in quotes, and in a value quotes are escaped. What stands
// in a value is a tenant's.
func labelsIn(line []byte) (quotes int) {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			quotes++
		}
	}
	return quotes / 2
}

// splitName cuts behind a metric's name.
func splitName(line []byte) (name, rest []byte) {
	end := bytes.IndexFunc(line, func(r rune) bool { return r != '_' && r != ':' && !isAlphanumeric(r) })
	if end < 0 {
		end = len(line)
	}
	return line[:end], line[end:]
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func trimBlanks(line []byte) []byte { return bytes.TrimLeft(line, " \t") }

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

// mostPlainLabels are more than any metric of Argo CD's has.
const mostPlainLabels = 16

// readPlain reads what stands behind a metric's name as Prometheus' own client writes it: labels without a blank
// between them, one blank, a number. A fleet of 5,000 clusters has some 300,000 such lines, one for each kind, and the
// parser takes a hundred times as long for one. What stands in a label's text is a tenant's (an Application's namespace
// is any text), and must make no line slow. What is written otherwise is the parser's.
func readPlain(rest []byte, label string) (value string, number float64, plain bool) {
	if len(rest) == 0 || rest[0] != '{' {
		return "", 0, false
	}
	var names [mostPlainLabels][]byte
	for count := 0; rest[0] != '}'; count++ {
		name, text, after, ok := plainLabel(rest[1:])
		if !ok || count == mostPlainLabels || contains(names[:count], name) {
			return "", 0, false
		}
		if names[count] = name; string(name) == label {
			value = unescaped(text)
		}
		rest = after
	}
	if len(rest) < 3 || rest[1] != ' ' {
		return "", 0, false
	}
	number, plain = plainNumber(rest[2:])
	return value, number, plain
}

func contains(names [][]byte, name []byte) bool {
	for _, other := range names {
		if bytes.Equal(other, name) {
			return true
		}
	}
	return false
}

// plainLabel reads name="text" and gives what follows, which begins with a comma or the closing brace.
func plainLabel(from []byte) (name, text, after []byte, ok bool) {
	name, quoted, found := bytes.Cut(from, []byte(`="`))
	if !found || !isPlainName(name) {
		return nil, nil, nil, false
	}
	end := closing(quoted)
	if end < 0 || end+1 >= len(quoted) || !isPlainText(quoted[:end]) {
		return nil, nil, nil, false
	}
	after = quoted[end+1:]
	return name, quoted[:end], after, after[0] == '}' || after[0] == ',' && len(after) > 1 && after[1] != '}'
}

func isPlainName(name []byte) bool {
	if len(name) == 0 || bytes.HasPrefix(name, []byte("__")) || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for _, c := range name {
		if c != '_' && !isAlphanumeric(rune(c)) {
			return false
		}
	}
	return true
}

// closing is where a label's text ends: at the first quote that is not escaped; below 0 where none is.
func closing(quoted []byte) int {
	for i := 0; i < len(quoted); i++ {
		switch quoted[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// isPlainText reports whether a text is one as the client writes it: UTF-8, in which a quote, a backslash and a line's
// end are escaped.
func isPlainText(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; i == len(text) || text[i] != '\\' && text[i] != '"' && text[i] != 'n' {
			return false
		}
	}
	return utf8.Valid(text)
}

// unescaped is a plain text's value.
func unescaped(text []byte) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text)
	}
	return unescape.Replace(string(text))
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// plainNumber reads digits with a sign, a point and an exponent.
func plainNumber(text []byte) (float64, bool) {
	for _, c := range text {
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != '+' && c != '-' {
			return 0, false
		}
	}
	number, err := strconv.ParseFloat(string(text), 64)
	return number, err == nil
}
