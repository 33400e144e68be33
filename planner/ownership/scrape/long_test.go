package scrape

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"
	"ballast/planner/observed"
)

// kinds are counters of events of one cluster, each of another kind.
func kinds(count, length int, server string) io.Reader {
	long := strings.Repeat("k", length)
	var lines []io.Reader
	for i := range count {
		lines = append(lines, strings.NewReader(fmt.Sprintf(`argocd_cluster_events_total{group="g",kind="%d`, i)),
			strings.NewReader(long), strings.NewReader(`",server="`+server+`"} 7`+"\n"))
	}
	return io.MultiReader(lines...)
}

// owned is a text that shows an owner and events of so many clusters, and what is read of it.
func owned(from, count int) (io.Reader, map[string]ServerReport) {
	var b strings.Builder
	servers := map[string]ServerReport{}
	for i := from; i < from+count; i++ {
		server := fmt.Sprintf("https://%d", i)
		fmt.Fprintf(&b, "argocd_app_info{dest_server=%q} 1\nargocd_cluster_events_total{kind=\"Pod\",server=%q} 5\n", server, server)
		servers[server] = ServerReport{Apps: 1, Events: 5, Counts: ShowsEvents}
	}
	return strings.NewReader(b.String()), servers
}

// TestAThousandLongKindsHideNoOwner: a hostile cluster's events have 60 MB of kinds, where 4 MiB are read; it runs beside no
// other test, whose memory would count.
func TestAThousandLongKindsHideNoOwner(t *testing.T) {
	before, want := owned(0, 50)
	after, more := owned(50, 50)
	for server, r := range more {
		want[server] = r
	}
	text := io.MultiReader(before, kinds(1000, 60<<10, "https://evil"), kinds(3, 70<<10, "https://evil"), after)
	var r PodReport
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	err := readMetrics(text, 4<<20, &r, newRoom())
	runtime.ReadMemStats(&end)
	if diff := cmp.Diff(want, r.Servers); diff != "" || err != nil || r.LongEvents != 1003 || r.ManyEvents {
		t.Errorf("%v, %d events are passed over, all %t (-want +got):\n%s", err, r.LongEvents, r.ManyEvents, diff)
	}
	if spent := end.TotalAlloc - start.TotalAlloc; spent > 1<<20 {
		t.Errorf("reading allocated %d bytes, want 1 MiB at most", spent)
	}
}

// TestAPodWithLongKindsAnswers, of 70 MiB of which 64 would be read.
func TestAPodWithLongKindsAnswers(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		text, _ := owned(0, 1)
		_, _ = io.Copy(w, io.MultiReader(text, kinds(1200, 60<<10, "https://evil")))
	})
	got := NewScraper(Options{Timeout: time.Minute}).Scrape(t.Context(), []observed.Controller{running("a", address)}, noon)[0]
	const passed = `pod "a" shows series of argocd_cluster_events_total of more than 4 KiB, as no kind of Kubernetes makes: ` +
		"1200 are passed over, and their cluster's events count for less; " +
		"their label server names the cluster that makes them: take it out, and restart the pod"
	if !got.Answered() || got.Servers["https://0"].Apps != 1 || got.Passed() != passed {
		t.Errorf("got %+v, %q", got, got.Passed())
	}
}

// TestManyShortKindsHideNoOwner: which of them are read, differs from answer to answer, so that none is shown.
func TestManyShortKindsHideNoOwner(t *testing.T) {
	before, want := owned(0, 5)
	after, more := owned(5, 5)
	for server, r := range more {
		want[server] = r
	}
	for server, r := range want {
		want[server] = ServerReport{Apps: r.Apps}
	}
	want["https://evil"] = ServerReport{}
	r := PodReport{Controller: running("a", "")}
	err := readMetrics(io.MultiReader(before, kinds(900, 70, "https://evil"), after), 64<<10, &r, newRoom())
	const passed = `pod "a" shows more of argocd_cluster_events_total than is read, as no fleet has: no cluster's events are taken ` +
		"from it; their label server names the cluster that makes them: take it out, and restart the pod"
	if diff := cmp.Diff(want, r.Servers); diff != "" || err != nil || r.Passed() != passed {
		t.Errorf("%v, %q (-want +got):\n%s", err, r.Passed(), diff)
	}
}

// TestWhatALineCosts: the bound is of lines that are read and as long as usual; all lines together have 16 times as much.
func TestWhatALineCosts(t *testing.T) {
	const bound = 64 << 10
	const app = `argocd_app_info{dest_server="https://a"} 1` + "\n"
	namespace := func(length int) string {
		return `argocd_app_info{dest_namespace="` + strings.Repeat("n", length) + `",dest_server="https://a"} 1` + "\n"
	}
	for name, test := range map[string]struct {
		lines string
		apps  int
		want  error
	}{
		"of other metrics":              {strings.Repeat("go_info{a=\"b\"} 1\n", bound/8), 1, nil},
		"without a sample":              {strings.Repeat("# HELP go_info what it is\n", bound/8), 1, nil},
		"within the bound":              {strings.Repeat(app, bound/len(app)-1), bound / len(app), nil},
		"beyond it":                     {strings.Repeat(app, bound/len(app)+100), 0, errTooLarge},
		"of Applications with a text":   {strings.Repeat(namespace(60<<10), 10), 11, nil},
		"of some with a longer text":    {strings.Repeat(namespace(70<<10), 10), 11, nil},
		"beyond what is passed over":    {strings.Repeat("go_info{a=\"b\"} 1\n", 17*bound/16), 0, errTooLarge},
		"of Applications beyond it all": {strings.Repeat(namespace(60<<10), 18), 0, errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var r PodReport
			err := readMetrics(strings.NewReader(test.lines+app), bound, &r, newRoom())
			if got := r.Servers["https://a"].Apps; !errors.Is(err, test.want) || got != test.apps {
				t.Errorf("%d Applications, %v; want %d, %v", got, err, test.apps, test.want)
			}
		})
	}
}

// TestALongLineTellsItsOwner: what is longer than can be held tells whose Application it is, wherever it stands.
func TestALongLineTellsItsOwner(t *testing.T) {
	text := strings.Repeat("n", longestLine)
	for name, test := range map[string]struct {
		labels string
		want   PodReport
	}{
		"behind the text":    {`a="` + text + `",dest_server="https://a",name="b"`, PodReport{Servers: map[string]ServerReport{"https://a": {Apps: 1}}}},
		"before it":          {`dest_server="https://a",name="` + text + `"`, PodReport{Servers: map[string]ServerReport{"https://a": {Apps: 1}}}},
		"with blanks":        {`a = "` + text + `" , dest_server = "https://a"`, PodReport{Servers: map[string]ServerReport{"https://a": {Apps: 1}}}},
		"with escapes":       {`a="` + text + `",dest_server="a\\\"b"`, PodReport{Servers: map[string]ServerReport{`a\"b`: {Apps: 1}}}},
		"what looks like it": {`a="` + text + `\",dest_server=\"https://a\\",b="c"`, PodReport{Servers: map[string]ServerReport{}, Unplaced: 1}},
		"a longer name":      {`a="` + text + `",dest_server_of_all="https://a"`, PodReport{Servers: map[string]ServerReport{}, Unplaced: 1}},
		"no server":          {`a="` + text + `",dest_server=""`, PodReport{Servers: map[string]ServerReport{}, Unplaced: 1}},
		"as long as any":     {`a="` + text + `",dest_server="` + text[:discover.LongestServer] + `"`, PodReport{Servers: map[string]ServerReport{text[:discover.LongestServer]: {Apps: 1}}}},
		"longer than any":    {`a="` + text + `",dest_server="` + text[:discover.LongestServer+1] + `"`, PodReport{Servers: map[string]ServerReport{}}},
		"cut, if unescaped":  {`a="` + text + `",dest_server="` + strings.Repeat(`\\`, discover.LongestServer+9) + `"`, PodReport{Servers: map[string]ServerReport{}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAll("go_info 1\nargocd_app_info{" + test.labels + "} 1\n")
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := readAll("go_info 1\nargocd_app_info{a=\"" + text + "\n"); !errors.Is(err, errSample) {
		t.Errorf("a text without an end: %v", err)
	}
}

// What is read of a long line, in whatever pieces it comes, is what is read of it as a whole.
func FuzzLongLine(f *testing.F) {
	f.Add(`{dest_namespace="x",dest_server="https://a",name="b"} 1`, 7)
	f.Add(`{a="\",dest_server=\"b\\",dest_server="https://a\"\\\n"} 1`, 1)
	f.Add(`{dest_server_of_all="https://a"} 1`, 3)
	f.Add(`{dest_server=""} 1`, 0)
	f.Fuzz(func(t *testing.T, rest string, piece int) {
		server, _, plain := readPlain([]byte(rest), "dest_server")
		if !plain {
			return
		}
		piece = min(max(piece, 1), len(rest))
		l := newLongLine([]byte(metricAppInfo))
		for from := 0; from < len(rest); from += piece {
			l.goesOn([]byte(rest[from:min(from+piece, len(rest))]))
		}
		if got := unescaped(l.server); l.quoted || !l.beyond && got != server || l.beyond && len(server) <= discover.LongestServer {
			t.Errorf("%q in pieces of %d is read as %q, want %q", rest, piece, got, server)
		}
	})
}
