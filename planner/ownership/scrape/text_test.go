package scrape

import (
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"ballast/planner/observed"
)

func readAll(text string) (PodReport, error) {
	var r PodReport
	err := readMetrics(strings.NewReader(text), noBound, &r, newRoom())
	return r, err
}

func sampleText(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/controller-v3.2.11.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheMetricsOfARealControllerAreRead(t *testing.T) {
	want := PodReport{
		Controller: observed.Controller{Pod: observed.Pod{Memory: 186179584}},
		Unplaced:   1,
		Servers: map[string]ServerReport{
			"https://10.0.0.1:6443":          {Apps: 2, Cached: true, CacheAge: 4071, Connected: true, Reconciles: 10, Seconds: 2, Events: 911, Objects: 2042, Counts: ShowsObjects | ShowsEvents | ShowsReconciles},
			"https://10.0.0.3:6443":          {Apps: 1, Cached: true, CacheAge: -1, Connected: true, Counts: ShowsObjects},
			"https://10.0.0.9:6443":          {Reconciles: 120, Seconds: 61.5, Counts: ShowsReconciles},
			"https://kubernetes.default.svc": {Apps: 1, Cached: true, CacheAge: 17, Objects: 812, Counts: ShowsObjects},
		},
	}
	for how, in := range map[string]io.Reader{
		"at once":           strings.NewReader(sampleText(t)),
		"byte by byte":      iotest.OneByteReader(strings.NewReader(sampleText(t))),
		"error at the data": iotest.DataErrReader(strings.NewReader(sampleText(t))),
	} {
		var got PodReport
		if err := readMetrics(in, noBound, &got, newRoom()); err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", how, diff)
		}
	}
}

func twice(line string) string { return line + "\n" + line }

func TestOneLineIsReadAsTheFormatHasIt(t *testing.T) {
	long := strings.Repeat("x", 3*longestLine)
	for name, test := range map[string]struct {
		text string
		want map[string]ServerReport
	}{
		"a cluster's trailing slash":               {`argocd_cluster_connection_status{server="https://a/"} 1`, map[string]ServerReport{"https://a": {Connected: true}}},
		"an Application's, which names no cluster": {`argocd_app_info{dest_server="https://a/"} 1`, map[string]ServerReport{}},
		"the label anywhere":                       {`argocd_app_info{a="b",dest_server="https://a",z="}\"{"} 1`, map[string]ServerReport{"https://a": {Apps: 1}}},
		"blanks everywhere":                        {"\t argocd_app_info { a = \"b\" ,\tdest_server = \"https://a\" , }  1\t17", map[string]ServerReport{"https://a": {Apps: 1}}},
		"escapes":                                  {`argocd_app_info{dest_server="a\\b\"c\nd"} 1`, map[string]ServerReport{"a\\b\"c\nd": {Apps: 1}}},
		"a label of the same end":                  {`argocd_app_info{xdest_server="https://b",dest_serverx="https://c"} 1`, map[string]ServerReport{}},
		"a metric of the same start":               {"argocd_app_info_total{dest_server=\"https://a\"} 1", map[string]ServerReport{}},
		"the longest line":                         {`argocd_app_info{a="` + long[:longestLine-60] + `",dest_server="https://a"} 1`, map[string]ServerReport{"https://a": {Apps: 1}}},
		"a long line that is not":                  {`argocd_other{a="` + long + long + `"} 1` + "\n" + `argocd_app_info{dest_server="https://a"} 1`, map[string]ServerReport{"https://a": {Apps: 1}}},
		"a number with an exponent":                {`argocd_app_reconcile_sum{dest_server="https://a"} 1.5e+2`, map[string]ServerReport{"https://a": {Seconds: 150}}},
		"no number in a counter":                   {`argocd_app_reconcile_sum{dest_server="https://a"} NaN`, map[string]ServerReport{"https://a": {}}},
		"a counter below 0":                        {`argocd_app_reconcile_count{dest_server="https://a"} -4`, map[string]ServerReport{"https://a": {}}},
		"seconds beyond all numbers":               {twice(`argocd_app_reconcile_sum{dest_server="https://a"} 1.7e308`), map[string]ServerReport{"https://a": {Seconds: math.MaxFloat64}}},
		"a count beyond all numbers":               {twice(`argocd_app_reconcile_count{dest_server="https://a"} 1.7e308`), map[string]ServerReport{"https://a": {Reconciles: math.MaxFloat64, Counts: ShowsReconciles}}},
		"an age that is no number":                 {`argocd_cluster_cache_age_seconds{server="https://a"} NaN`, map[string]ServerReport{"https://a": {Cached: true, CacheAge: -1}}},
		"two ages: the worse":                      {"argocd_cluster_cache_age_seconds{server=\"https://a\"} 7\nargocd_cluster_cache_age_seconds{server=\"https://a/\"} -1\nargocd_cluster_cache_age_seconds{server=\"https://a\"} 9", map[string]ServerReport{"https://a": {Cached: true, CacheAge: -1}}},
		"two connections: the worse":               {"argocd_cluster_connection_status{server=\"https://a\",k8s_version=\"\"} 0\nargocd_cluster_connection_status{server=\"https://a\"} 1", map[string]ServerReport{"https://a": {}}},
		"a connection, then its loss":              {"argocd_cluster_connection_status{server=\"https://a\"} 1\nargocd_cluster_connection_status{server=\"https://a\"} 0", map[string]ServerReport{"https://a": {}}},
		"no server":                                {`argocd_cluster_cache_age_seconds 5`, map[string]ServerReport{}},
		"comments and nothing else":                {"# HELP\n#\n\n  \ngo_info 1", map[string]ServerReport{}},
		"garbage in what is not kept":              {"go_info{{{ nothing of it is a sample\nargocd_app_info{dest_server=\"https://a\"} 1", map[string]ServerReport{"https://a": {Apps: 1}}},
		"Applications without a place":             {`argocd_app_info{dest_server="/"} 1`, map[string]ServerReport{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(test.text + "\n")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Servers); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoMetricsTextIsRefused(t *testing.T) {
	const info = `argocd_app_info{dest_server="https://a"} 1` + "\n"
	const malformed = "line 1: reading argocd_app_"
	for name, test := range map[string]struct{ text, want string }{
		"nothing":                     {"", "no application-controller's metrics"},
		"somebody else's metrics":     {"http_requests_total 4\n", "no application-controller's metrics"},
		"a page":                      {"<html>\n<body>sign in</body>\n", "line 1: this is no line"},
		"JSON":                        {info + "{\"a\": 1}\n", "line 2: this is no line"},
		"a name alone":                {"argocd_app_info\n", "line 1: this is no line"},
		"a name like a number":        {"7argocd_app_info 1\n", "no application-controller's metrics"},
		"the end of a line missing":   {info + "go_info 1", "line 2: the text ends in the middle of a line"},
		"the end of a long line":      {info + "go_info 1" + strings.Repeat(" ", 2*longestLine), "line 2: the text ends in the middle of a line"},
		"labels without an end":       {`argocd_app_info{dest_server="https://a"` + "\n", malformed},
		"labels that end after comma": {`argocd_app_info{dest_server="https://a",` + "\n", malformed},
		"two labels without a comma":  {`argocd_app_info{a="b" dest_server="https://a"} 1` + "\n", malformed},
		"a value without an end":      {`argocd_app_info{dest_server="https://a} 1` + "\n", malformed},
		"a value that ends in escape": {`argocd_app_info{dest_server="a\` + "\n", malformed},
		"an unknown escape":           {`argocd_app_info{dest_server="a\t"} 1` + "\n", malformed},
		"a value without quotes":      {`argocd_app_info{dest_server=a} 1` + "\n", malformed},
		"thousands of labels":         {"argocd_app_info{" + strings.Repeat(`a="",`, 9000) + `dest_server="https://a"} 1` + "\n", malformed},
		"a label like a number":       {`argocd_app_info{7="a"} 1` + "\n", malformed},
		"bytes that are no text":      {"argocd_app_info{dest_server=\"\xff\"} 1\n", malformed},
		"no value":                    {`argocd_app_info{dest_server="https://a"}` + "\n", malformed},
		"a hexadecimal value":         {`argocd_app_info{dest_server="https://a"} 0x1p-2` + "\n", malformed},
		"a value out of range":        {`argocd_app_reconcile_sum{dest_server="https://a"} 1e999` + "\n", malformed},
		"a timestamp in words":        {`argocd_app_info{dest_server="https://a"} 1 today` + "\n", malformed},
		"more than a timestamp":       {`argocd_app_info{dest_server="https://a"} 1 2 3` + "\n", malformed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readAll(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.want == malformed && !strings.HasSuffix(err.Error(), ": "+errSample.Error()) {
				t.Errorf("got the error %v, want one that says %q", err, test.want)
			}
		})
	}
}

// noBound is that of an answer as long as it likes.
const noBound = math.MaxInt64 / longAnswers

// TestALineThatIsLongerThanAnyIsPassedOver: a cluster whose URL somebody made a megabyte long must not hide the others', however many
// lines it has; what comes in them does not count, up to 16 times the bound.
func TestALineThatIsLongerThanAnyIsPassedOver(t *testing.T) {
	const before, after = "argocd_app_info{dest_server=\"https://a\"} 1\n", "argocd_cluster_connection_status{server=\"https://b\"} 1\n"
	long := `argocd_app_info{dest_server="https://` + strings.Repeat("x", 1<<20) + `"} 1` + "\n"
	other := `argocd_other{x="` + strings.Repeat("x", 1<<20) + `"} 1` + "\n"
	for name, test := range map[string]struct {
		lines int
		want  string
	}{"one": {1, ""}, "more than the bound": {11, ""}, "more than 16 times the bound": {35, "the answer is too large"}} {
		t.Run(name, func(t *testing.T) {
			var r PodReport
			text := before + strings.Repeat(long, test.lines/2) + strings.Repeat(other, test.lines-test.lines/2) + after
			err := readMetrics(strings.NewReader(text), 2<<20, &r, newRoom())
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			want := map[string]ServerReport{"https://a": {Apps: 1}, "https://b": {Connected: true}}
			if diff := cmp.Diff(want, r.Servers); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAReaderThatFailsIsSaid(t *testing.T) {
	broken := errors.New("the connection was reset")
	var r PodReport
	for name, before := range map[string]string{"at once": "", "in a line": "argocd_app_in", "after a line": "go_info 1\n"} {
		if err := readMetrics(io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken)), noBound, &r, newRoom()); !errors.Is(err, broken) {
			t.Errorf("%s: got %v, want %v", name, err, broken)
		}
	}
}

// FuzzMetrics holds the reader to the Prometheus project's own parser: what that accepts is read, and reads the same. The
// comments, which only give types, are taken out first: they mean nothing to the reader.
func FuzzMetrics(f *testing.F) {
	f.Add(sampleText(f))
	f.Add("argocd_app_info{dest_server=\"https://a\",} 1 17\n")
	f.Add("argocd_app_info 1\nargocd_cluster_cache_age_seconds{server=\"a\\\\/\"} -1e0\n")
	f.Add("# TYPE argocd_app_reconcile histogram\nargocd_app_reconcile_sum{dest_server=\"a\"} 0.5\nargocd_app_reconcile_count{dest_server=\"a\"} 2\n")
	f.Add("# TYPE argocd_app_reconcile summary\nargocd_app_reconcile_sum{dest_server=\"a\",quantile=\"1\"} 3\n")
	f.Add("process_resident_memory_bytes 1e9\n  argocd_cluster_connection_status { server = \"x\" } 1\n")
	f.Add("{}0")
	f.Add("{\"argocd_app_info\",dest_server=\"a\"} 1\n")
	f.Add("argocd_app_info{dest_server=\"a\xff\"} 1\n")
	f.Add("# HELP argocd_app_info \\n\ngo_info NaN\n")
	f.Add(`argocd_cluster_events_total{group="",kind="` + strings.Repeat("k", usualLine) + `",server="https://a"} 1` + "\n" +
		`argocd_cluster_events_total{group="",kind="Pod",server="https://a"} 2` + "\n")
	f.Add(`argocd_app_info{dest_namespace="` + strings.Repeat("n", usualLine) + `",dest_server="https://a"} 1` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readAll(text)
		if plain := withoutComments(text); plain != text {
			text = plain
			without, errWithout := readAll(text)
			if (err == nil) != (errWithout == nil) || !cmp.Equal(got.Servers, without.Servers) {
				t.Fatalf("with comments: %v, %v; without: %v, %v", got.Servers, err, without.Servers, errWithout)
			}
			err = errWithout
		}
		if slices.ContainsFunc(strings.Split(text, "\n"), isPassedOver) {
			return
		}
		if quotesNames(text) { // expfmt v0.67.5 panics at "{}0"
			return
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, refused := parser.TextToMetricFamilies(strings.NewReader(text))
		if refused != nil {
			return
		}
		if err != nil {
			if errors.Is(err, errNotController) && !hasControllers(families) {
				return
			}
			t.Fatalf("expfmt reads it, but: %v", err)
		}
		if diff := cmp.Diff(fromFamilies(families), got.Servers, equalNumbers()); diff != "" {
			t.Errorf("(-expfmt +got):\n%s", diff)
		}
	})
}

func isPassedOver(line string) bool {
	return len(line) >= longestLine || len(line) > usualLine && strings.Contains(line, metricEvents)
}

func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") || !strings.HasSuffix(line, "\n") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// quotesNames reports whether a text uses the quoted names of Prometheus 3, which are not asked for.
func quotesNames(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		if _, labels, found := strings.Cut(line, "{"); strings.HasPrefix(line, "{") || found && strings.Contains(labels, "\"") && !plainLabels(labels) {
			return true
		}
	}
	return false
}

// plainLabels reports whether every quote opens a label's value.
func plainLabels(labels string) bool {
	open := false
	for i := 0; i < len(labels); i++ {
		switch {
		case open && labels[i] == '\\':
			i++
		case labels[i] == '"' && !open && !strings.HasSuffix(strings.TrimRight(labels[:i], " \t"), "="):
			return false
		case labels[i] == '"':
			open = !open
		}
	}
	return true
}

func hasControllers(families map[string]*dto.MetricFamily) bool {
	for name := range families {
		if isController([]byte(name)) {
			return true
		}
	}
	return false
}

// fromFamilies says in the slow way what readMetrics should have found.
func fromFamilies(families map[string]*dto.MetricFamily) map[string]ServerReport {
	servers := map[string]*gauges{}
	add := func(metric string, m *dto.Metric, value float64) {
		label := "server"
		if strings.HasPrefix(metric, "argocd_app") {
			label = "dest_server"
		}
		for _, pair := range m.Label {
			if server := strings.TrimRight(pair.GetValue(), "/"); pair.GetName() == label && server != "" {
				if servers[server] == nil {
					servers[server] = &gauges{}
				}
				servers[server].add(metric, value)
			}
		}
	}
	for name, family := range families {
		for _, m := range family.Metric {
			switch name {
			case metricAppInfo, metricCacheAge, metricConnected, metricSeconds, metricReconciles, metricEvents, metricObjects:
				add(name, m, m.GetUntyped().GetValue())
			}
		}
	}
	reports := map[string]ServerReport{}
	for server, g := range servers {
		reports[server] = g.ServerReport
	}
	return reports
}

// equalNumbers forgives the order in which floats were added.
func equalNumbers() cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) })
}
