package poll

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/config"

	"ballast/planner/discover"
	"ballast/planner/poll/meter"
)

const noJSON = "its answer is no JSON that a Prometheus gives: look at what answers at poll.prometheus.url"

const nullAnswer = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"a"},"value":[1,"7"]},null]}}`

// labelled is an answer of one sample with that label.
func labelled(name, value string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"` + name + `":"` + value + `"},"value":[1,"7"]}]}}`
}

// passedOver is what people are told of series with a label that is too long.
func passedOver(n int) string {
	return fmt.Sprintf(`%d of its series are passed over: their label "server" has more than 2 KiB, `+
		"as no cluster's has; look for the cluster Secret that has it, and for its Applications", n)
}

// What a broken or hostile Prometheus answers is the error of that metric, and never the end of the process.
func TestBadAnswersAreTheMetricsErrors(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		fleet  Fetched // without the ID and the query that stand before an error
		each   Fetched
	}{
		"null among samples": {body: nullAnswer,
			fleet: Fetched{Err: "its sample 1 is null, which no Prometheus answers: look at what answers at poll.prometheus.url"},
			each:  Fetched{Err: "it answers with 2 series: aggregate them into one"}},
		"null alone": {body: `{"status":"success","data":{"resultType":"vector","result":[null]}}`,
			fleet: Fetched{Err: "its sample 0 is null, which no Prometheus answers: look at what answers at poll.prometheus.url"},
			each:  Fetched{Err: "its sample 0 is null, which no Prometheus answers: look at what answers at poll.prometheus.url"}},
		"null streams": {body: `{"status":"success","data":{"resultType":"matrix","result":[null]}}`,
			fleet: Fetched{Err: `it answers with a range vector (take rate, max_over_time or the like of it); a query for the fleet must answer with an instant vector that has the label "server"`},
			each:  Fetched{Err: "it answers with a range vector (take rate, max_over_time or the like of it); a query must answer with an instant vector of one series or a scalar"}},
		"a native histogram": {body: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"a"},"histogram":[1,{"count":"1","sum":"1"}]}]}}`,
			fleet: Fetched{Err: errHistogram.Error()}, each: Fetched{Err: errHistogram.Error()}},
		"one label twice": {body: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"a","server":"b"},"value":[1,"7"]}]}}`,
			fleet: Fetched{Samples: []Sample{{Key: "b", Value: 7}}}, each: Fetched{Samples: []Sample{{Key: "a", Value: 7}}}},
		"infinity": {body: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"a"},"value":[1,"+Inf"]}]}}`,
			fleet: Fetched{Samples: []Sample{{Key: "a", Value: math.Inf(1)}}}, each: Fetched{Samples: []Sample{{Key: "a", Value: math.Inf(1)}}}},
		"words without end": {status: http.StatusUnprocessableEntity, body: `{"status":"error","errorType":"execution","error":"` + strings.Repeat("é", 20_000) + `"}`,
			fleet: Fetched{Err: "execution: " + strings.Repeat("é", 494) + "…"}, each: Fetched{Err: "execution: " + strings.Repeat("é", 494) + "…"}},
		"warnings without end": {body: `{"status":"success","warnings":["` + strings.Repeat("w", 2_000) + `","","",""],"data":{"resultType":"scalar","result":[1,"7"]}}`,
			fleet: Fetched{Err: `it answers with a scalar; a query for the fleet must answer with an instant vector that has the label "server"`},
			each: Fetched{Samples: []Sample{{Key: "a", Value: 7}},
				Warnings: []string{`cluster "a": ` + strings.Repeat("w", maxMessage) + "…", `cluster "a": `, `cluster "a": `, "and 1 more"}}},
		"no UTF-8": {body: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a` + "\xff" + `":"b"},"value":[1,"7"]}]}}`,
			fleet: Fetched{Err: "the answer is no UTF-8, as every Prometheus' is: look at what answers at poll.prometheus.url"},
			each:  Fetched{Err: "the answer is no UTF-8, as every Prometheus' is: look at what answers at poll.prometheus.url"}},
		"a label as long as may be": {body: labelled("server", strings.Repeat("a", meter.MaxString-2)+`\"`),
			fleet: Fetched{Samples: []Sample{{Key: strings.Repeat("a", meter.MaxString-2) + `"`, Value: 7}}}, each: Fetched{Samples: []Sample{{Key: "a", Value: 7}}}},
		"a longer label": {body: labelled("server", strings.Repeat("a", meter.MaxString-1)+`\"`),
			fleet: Fetched{Warnings: []string{passedOver(1)}, Samples: []Sample{}}, each: Fetched{Samples: []Sample{{Key: "a", Value: 7}}}},
		"a longer label of another": {body: strings.Replace(labelled("server", "a"), `[{`, `[{"metric":{"server":"`+strings.Repeat(`é\"`, 25_000)+`"},"value":[1,"1"]},{`, 1),
			fleet: Fetched{Warnings: []string{passedOver(1)}, Samples: []Sample{{Key: "a", Value: 7}}}, each: Fetched{Err: "it answers with 2 series: aggregate them into one"}},
		"a longer label beside the one that is asked for": {body: strings.Replace(labelled("server", "a"), `"server"`, `"dest":"`+strings.Repeat("x", 70_000)+`","server"`, 1),
			fleet: Fetched{Samples: []Sample{{Key: "a", Value: 7}}}, each: Fetched{Samples: []Sample{{Key: "a", Value: 7}}}},
		"a value without end": {body: strings.Replace(labelled("server", "a"), `"7"`, `"`+strings.Repeat("7", 70_000)+`"`, 1),
			fleet: Fetched{Err: noJSON}, each: Fetched{Err: noJSON}},
		"a port that speaks of something else": {body: "internal: CANARY-of-another-server",
			fleet: Fetched{Err: noJSON}, each: Fetched{Err: noJSON}},
		"JSON of something else": {body: `{"status":["CANARY"],"data":{"resultType":"CANARY"}}`,
			fleet: Fetched{Err: noJSON}, each: Fetched{Err: noJSON}},
		"a type that is none": {body: `{"status":"success","data":{"resultType":"CANARY"}}`,
			fleet: Fetched{Err: noJSON}, each: Fetched{Err: noJSON}},
		"another label, with a credential": {body: labelled("dest", "https://user:secret@c"),
			fleet: Fetched{Err: `none of its 1 series has the label "server": the first one has "dest"`}, each: Fetched{Samples: []Sample{{Key: "a", Value: 7}}}},
		"a label of the longest name": {body: labelled(strings.Repeat("n", meter.MaxString), "x"),
			fleet: Fetched{Err: `none of its 1 series has the label "server": the first one has "` + strings.Repeat("n", 100) + `"`}, each: Fetched{Samples: []Sample{{Key: "a", Value: 7}}}},
		"an error larger than any": {status: http.StatusBadRequest, body: `{"status":"error","errorType":"bad_data","error":"` + strings.Repeat("x", 64<<10),
			fleet: Fetched{Err: noJSON}, each: Fetched{Err: noJSON}},
	} {
		t.Run(name, func(t *testing.T) {
			p := testClient(t, func(w http.ResponseWriter, _ *http.Request) {
				if test.status != 0 {
					w.WriteHeader(test.status)
				}
				_, _ = io.WriteString(w, test.body)
			}, time.Hour)
			metrics := []Metric{{ID: "fleet", Query: "q", Match: Match{Label: "server"}}, {ID: "each", QueryPerCluster: "q"}}
			got := p.Fetch(t.Context(), metrics, fleetOf("https://c"), noon)
			test.fleet.Metric, test.each.Metric = "fleet", "each"
			if test.fleet.Err != "" {
				test.fleet.Err = `query "q": ` + test.fleet.Err
			}
			if test.each.Err != "" {
				test.each.Err = `every query failed, the first: cluster "a": ` + test.each.Err
			}
			for i, want := range []Fetched{test.fleet, test.each} {
				if len(got[i].Warnings) == 0 {
					got[i].Warnings = nil
				}
				if diff := cmp.Diff(want, got[i]); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// A head is no place for an answer. The connection that it came on is not used again.
func TestALargeHeadIsNoAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		lines int
		want  Fetched
	}{
		"of 200 lines": {200, Fetched{Metric: "m", Samples: []Sample{{Key: "a", Value: 7}}}},
		"of 400 lines": {400, Fetched{Metric: "m", Err: "the head of the answer takes more than 64 KiB of memory: look at what answers at poll.prometheus.url"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := testClient(t, func(w http.ResponseWriter, _ *http.Request) {
				for i := range test.lines {
					w.Header().Set(fmt.Sprint("X-", i), "")
				}
				_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"a"},"value":[0,"7"]}]}}`)
			}, time.Hour)
			for range 3 { // the slot is released each time
				got := p.Fetch(t.Context(), []Metric{{ID: "m", Query: "q", Match: Match{Label: "server"}}}, discover.Fleet{}, noon)[0]
				if test.want.Err != "" && strings.HasSuffix(got.Err, test.want.Err) {
					got.Err = test.want.Err
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Many answers, each of them let in, are together no more than one planner can hold.
func TestAllAnswersTogetherAreBounded(t *testing.T) {
	samples := make([]string, 40_000)
	for i := range samples {
		samples[i] = fmt.Sprintf(`{"metric":{"server":"%d"},"value":[1,"1"]}`, i)
	}
	answer := `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
	p := testClient(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }, time.Hour)
	metrics := make([]Metric, 12)
	for i := range metrics {
		metrics[i] = Metric{ID: fmt.Sprint(i), Query: "q", Match: Match{Label: "server"}}
	}
	var answered, refused int
	for _, f := range p.Fetch(t.Context(), metrics, discover.Fleet{}, noon) {
		switch {
		case len(f.Samples) == 40_000 && f.Err == "":
			answered++
		case len(f.Samples) == 0 && f.Err == `query "q": the answers together would take more than 64 MiB of memory: let the queries aggregate by the labels that they are matched by`:
			refused++
		default:
			t.Errorf("%d samples, error %q", len(f.Samples), f.Err)
		}
	}
	if answered != 10 || refused != 2 { // 40,000 of some 155 bytes are 6 MiB
		t.Errorf("%d answers were kept and %d refused, want 10 and 2", answered, refused)
	}
}

type panicking struct{ Querier }

// A panic in the reading of an answer names its type, since its value may be anything.
func TestAPanicWhileReadingIsTheQuerysError(t *testing.T) {
	got := NewWith(panicking{}, Config{}).Fetch(t.Context(), []Metric{{ID: "m", Query: "q", Match: Match{Label: "server"}}}, discover.Fleet{}, noon)
	if diff := cmp.Diff([]Fetched{{Metric: "m", Err: `query "q": reading the answer ended in a panic of type runtime.errorString`}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// transport answers every request with one body.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzAnswers: no body ends the process, and each that gives no samples gives a reason. Nor is a panic caught on the
// way.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		nullAnswer, `null`, `{}`, `[]`, ``, `{"status":"success","data":null}`, `{"status":"success","data":{"resultType":"vector","result":null}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{}]}}`, `{"status":"success","data":{"resultType":"vector","result":[[]]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":null,"values":[null],"histograms":[null]}]}}`,
		`{"status":"success","data":{"resultType":"scalar","result":null}}`, `{"status":"success","data":{"resultType":"scalar","result":[1,"x"]}}`,
		`{"status":"success","data":{"resultType":"string","result":[1,"x"]}}`, `{"status":"success","data":{"resultType":"streams","result":[null]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"a"},"value":null,"histogram":null}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"a"},"histogram":[1,{"count":"1","buckets":[null]}]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"a","server":"b"},"value":[99999999999999,"NaN"]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":` + strings.Repeat("[", 20_000) + `}}`, strings.Repeat(`{"a":`, 20_000),
		"{\"status\":\"error\",\"errorType\":\"x\\u001b[2J\",\"error\":\"a\\u001b[2J\\nforged\"}",
		`{"status":"success","warnings":[null,"w"],"infos":[1],"data":{"resultType":"vector","result":[]}}`,
	} {
		f.Add(200, body)
		f.Add(422, body)
	}
	client, err := New(Config{URL: "http://prometheus", Concurrency: 1, HTTP: config.DefaultHTTPClientConfig})
	if err != nil {
		f.Fatal(err)
	}
	metrics := []Metric{{ID: "fleet", Query: "q", AgeQuery: "a", Match: Match{Label: "server"}}, {ID: "each", QueryPerCluster: "q"}}
	f.Fuzz(func(t *testing.T, status int, body string) {
		client.http.Transport = transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
		})
		for _, got := range client.Fetch(t.Context(), metrics, fleetOf("https://c"), noon) {
			said := got.Err + strings.Join(got.Warnings, "")
			if strings.Contains(said, "panic of type") {
				t.Errorf("%s: %s", got.Metric, said)
			}
			if got.Err != "" && len(got.Samples) > 0 {
				t.Errorf("%s has an error and %d samples", got.Metric, len(got.Samples))
			}
		}
	})
}
