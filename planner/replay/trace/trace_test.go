package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

const head = `{"apiVersion":"ballast.argoproj.io/v1alpha1","kind":"LoadTrace","step":"1m","metrics":["apps","objects"],"replicas":3}` + "\n"

var (
	nine = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	nan  = math.NaN()
)

// cluster has the server and UID that follow from its name.
func cluster(name string, replica int) Cluster {
	return Cluster{Name: name, Replica: replica}.named()
}

func lines(t *testing.T, text string) (Header, []Step, error) {
	t.Helper()
	l, err := NewLines(strings.NewReader(text), int64(len(text)))
	if err != nil {
		return Header{}, nil, err
	}
	steps, err := All(l)
	if err == nil && l.Share() != 1 {
		t.Errorf("all is read, and it says %v of it", l.Share())
	}
	return l.Header(), steps, err
}

func table(t *testing.T, text string) (Header, []Step, error) {
	t.Helper()
	s, err := NewTable(strings.NewReader(text), int64(len(text)))
	if err != nil {
		return Header{}, nil, err
	}
	steps, err := All(s)
	return s.Header(), steps, err
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBothFormatsSayTheSame(t *testing.T) {
	first := []Cluster{cluster("a", 2), {Name: "b", Server: "https://b.example", UID: "u", Replica: plan.NoReplica}}
	then := []Cluster{first[0], first[1], cluster("c", plan.NoReplica)}
	want := []Step{
		{At: nine, Roster: 1, Clusters: first, Values: [][]float64{{1, 2.5}, {nan, 0}}},
		{At: nine.Add(time.Minute), Roster: 1, Clusters: first, Values: [][]float64{{3, nan}, {1e6, 7}}},
		{At: nine.Add(3 * time.Minute), Roster: 2, Clusters: then, Values: [][]float64{{3, 4, 5}, {nan, nan, nan}}},
	}
	header, steps, err := lines(t, head+
		`{"at":"2026-11-20T09:00:00Z","clusters":[{"name":"a","replica":2},{"name":"b","server":"https://b.example/","uid":"u"}],"values":[[1,2.5],[null,0]]}`+"\n\n"+
		`{"at":"2026-11-20T10:01:00+01:00","values":[[3, null] , [1e6,7]]}`+"\n"+
		`{"at":"2026-11-20T09:03:00Z","clusters":[{"name":"a","replica":2},{"name":"b","server":"https://b.example","uid":"u"},{"name":"c"}],"values":[[3,4,5],[null,null,null]]}`)
	if err != nil {
		t.Fatal(err)
	}
	same(t, Header{Step: time.Minute, Metrics: []string{"apps", "objects"}, Replicas: 3}, header)
	same(t, want, steps)

	header, steps, err = table(t, `time,cluster,apps,"objects",server,replica,uid
2026-11-20T09:00:00Z,a,1,,,2,
2026-11-20T09:00:00Z,b,2.5,0,https://b.example,,u
2026-11-20T09:01:00Z,a,3,1e6,,2,
2026-11-20T09:01:00Z,b,,7,https://b.example,,u
1795165380,a,3,,,2,
1795165380,b,4,,https://b.example,,u
1795165380,c,5,,,,
`)
	if err != nil {
		t.Fatal(err)
	}
	same(t, Header{Step: time.Minute, Metrics: []string{"apps", "objects"}, Replicas: 3}, header)
	same(t, want, steps)
}

// Every mistake is told with its line, what is wrong, and the mend.
func TestMistakesAreNamed(t *testing.T) {
	const first = `{"at":"2026-11-20T09:00:00Z","clusters":[{"name":"a"}],"values":[[1],[2]]}` + "\n"
	at := func(line string) string { return head + first + line }
	for text, want := range map[string]string{
		"":                                       "line 1: the trace is empty",
		"{}\n":                                   `line 1: apiVersion and kind are "" and "", those of a trace are "ballast.argoproj.io/v1alpha1" and "LoadTrace"`,
		"[1]\n":                                  "line 1: it is no trace's header: json: cannot unmarshal array",
		head[:20]:                                "line 1: it is no trace's header: unexpected EOF",
		head + "{}":                              "line 2: at: the time 0001-01-01T00:00:00Z is none of a recording",
		strings.Replace(head, `"1m"`, `"0s"`, 1): "line 1: step: 0s is none from 1s to 24h",
		strings.Replace(head, `"apps","objects"`, ``, 1):                              `line 1: metrics: there is none; name the columns, as ["load"]`,
		strings.Replace(head, `"objects"`, `"apps"`, 1):                               "line 1: metrics[1]: each has a name of its own",
		strings.Replace(head, `"replicas":3`, `"replicas":-1`, 1):                     "line 1: replicas: -1 is none from 1 to 10000",
		strings.Replace(head, `"replicas"`, `"replica"`, 1):                           `unknown field "replica"`,
		head + `{"at":"2026-11-20T09:00:00Z","values":[]}`:                            "line 2: clusters: the first step names them",
		at(`{"at":"2026-11-20T09:00:00Z","values":[[1],[1]]}`):                        "line 3: at: 2026-11-20T09:00:00Z comes after 2026-11-20T09:00:00Z: steps stand in the order of time",
		at(`{"at":"2027-11-20T09:00:00Z","values":[[1],[1]]}`):                        "more than 744h0m0s: make two traces of it",
		at(`{"at":"2026-11-20T09:01:00Z","values":[[1]]}`):                            "line 3: values: there are 1 rows for 2 metrics",
		at(`{"at":"2026-11-20T09:01:00Z","values":[[1],[1,2]]}`):                      `line 3: values[1]: metric "objects" has 2 values for 1 clusters`,
		at(`{"at":"2026-11-20T09:01:00Z","values":[[1],[-1]]}`):                       `line 3: values[1]: metric "objects" of cluster "a": -1 is no measurement`,
		at(`{"at":"2026-11-20T09:01:00Z","values":[[1],["x"]]}`):                      "is no number and not null",
		at(`{"at":"2026-11-20T09:01:00Z","values":[[1],[1e999]]}`):                    "is no number and not null",
		at(`{"at":"2026-11-20T09:01:00Z","values":[[1],null]}`):                       "values are rows of numbers: [[1, 2.5, null], ...], a row for each metric",
		at(`{"at":"2026-11-20T09:01:00Z","values":[[1],[2]]} {}`):                     "something follows the object",
		head + strings.Replace(first, `{"name":"a"}`, `{"server":"x"}`, 1):            "line 2: clusters: a cluster has no name: write that of its Secret",
		head + strings.Replace(first, `{"name":"a"}`, `{"name":"a"},{"name":"a"}`, 1): `line 2: clusters: cluster "a" stands twice`,
		head + strings.Replace(first, `{"name":"a"}`, `{"name":"a","replica":-2}`, 1): `cluster "a": replica -2 is none from 0 to 9999`,
		head + strings.Replace(first, `"a"`, `"`+strings.Repeat("a", 3000)+`"`, 1):    "its name has 3000 bytes, more than the 2048 that any has",
	} {
		if _, _, err := lines(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s\n is refused with %v\n want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                             "line 1: a table begins with its columns, as time,cluster,load",
		"time,load\n":                                  `line 1: there is no column "cluster"`,
		"cluster,load\n":                               `line 1: there is no column "time"`,
		"time,cluster,load,load\n":                     `line 1: column "load" stands twice`,
		"time,cluster,load\n":                          "line 2: the trace is empty",
		"time,cluster\n1,a\n":                          `line 1: metrics: there is none; name the columns, as ["load"]`,
		"time,cluster,load\n9 Uhr,a,1":                 `line 2: column "time": "9 Uhr" is no time: write it like 2026-11-20T09:00:00Z`,
		"time,cluster,load\n1,a,x":                     `line 2: column "load": "x" is no number; leave it empty where there is no value`,
		"time,cluster,load\n1,a,-2":                    `line 2: column "load": metric "load" of cluster "a": -2 is no measurement`,
		"time,cluster,load\n1,a,+Inf":                  `is no measurement`,
		"time,cluster,load\n1,a,1,2":                   "wrong number of fields",
		"time,cluster,load\n1,a,1\n1,a,1":              `at 1970-01-01T00:00:01Z: cluster "a" stands twice`,
		"time,cluster,load\n9,a,1\n3,a,1":              `line 3: column "time": 1970-01-01T00:00:03Z comes after 1970-01-01T00:00:09Z`,
		"time,cluster,load,replica\n1,a,1,x":           `line 2: column "replica": "x" is no whole number`,
		"time,cluster,load,replica\n1,a,1,99999999999": `is none from 0 to 9999`,
		"time,cluster,load\n1,a,1\n999999,a,1":         "line 1: step: 277h46m38s is none from 1s to 24h",
		"time,cluster,load\n9223372036854775807,a,1":   `is none of a recording`,
	} {
		if _, _, err := table(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is refused with %v\n want %s", text, err, want)
		}
	}
}

// endless is a line without an end.
type endless struct{ byte }

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.byte
	}
	return len(p), nil
}

func TestALineWithoutAnEndIsRefused(t *testing.T) {
	if _, err := NewLines(endless{' '}, 0); err == nil || !strings.Contains(err.Error(), "line 1: it has more than 64 MiB") {
		t.Errorf("in JSON: %v", err)
	}
	if _, err := NewTable(endless{'a'}, 0); !errors.Is(err, errLongLine) {
		t.Errorf("in CSV: %v", err)
	}
	if _, err := NewTable(io.MultiReader(strings.NewReader("\""), endless{'\n'}), 0); !errors.Is(err, errLongLine) {
		t.Errorf("in a cell with quotes: %v", err)
	}
}

// traces draws steps that any fleet may have.
func traces(t *rapid.T) (Header, []Step) {
	h := Header{Step: time.Minute, Metrics: []string{"a", "b"}[:rapid.IntRange(1, 2).Draw(t, "metrics")], Replicas: rapid.IntRange(0, 9).Draw(t, "replicas")}
	var steps []Step
	s := Step{At: nine}
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		if s.Roster == 0 || rapid.Bool().Draw(t, "changes") {
			s.Roster, s.Clusters = s.Roster+1, nil
			for i := range rapid.IntRange(1, 4).Draw(t, "clusters") {
				s.Clusters = append(s.Clusters, cluster(fmt.Sprintf("c%d%s", i, rapid.StringMatching(`[a-z"<é,]{0,3}`).Draw(t, "name")), rapid.IntRange(plan.NoReplica, 3).Draw(t, "replica")))
			}
		}
		s.Values = make([][]float64, len(h.Metrics))
		for m := range s.Values {
			for range s.Clusters {
				v := rapid.Float64Range(0, math.MaxFloat64).Draw(t, "value")
				if rapid.IntRange(0, 3).Draw(t, "missing") == 0 {
					v = nan
				}
				s.Values[m] = append(s.Values[m], v)
			}
		}
		steps = append(steps, s)
		s.At = s.At.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
	}
	return h, steps
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, steps := traces(t)
		var b bytes.Buffer
		w, err := NewWriter(&b, h)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if err := w.Write(s); err != nil {
				t.Fatal(err)
			}
		}
		l, err := NewLines(&b, int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := All(l)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, l.Header()) + cmp.Diff(steps, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("(-written +read):\n%s", diff)
		}
	})
}

// rewritten writes what was read and reads it again.
func rewritten(t *testing.T, h Header, steps []Step) {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if err := w.Write(s); err != nil {
			t.Fatal(err)
		}
	}
	header, again, err := lines(t, b.String())
	if err != nil {
		t.Fatalf("what was read cannot be read again: %v\n%s", err, b.String())
	}
	same(t, h, header)
	same(t, steps, again)
}

func FuzzLines(f *testing.F) {
	f.Add(head + `{"at":"2026-11-20T09:00:00Z","clusters":[{"name":"a","replica":2},{"name":"b","server":"x","uid":"u"}],"values":[[1,null],[2,3e9]]}` + "\n" + `{"at":"2026-11-20T09:01:00Z","values":[[1,1],[0,0]]}`)
	f.Add(head + `{"at":"2026-11-20T09:00:00Z","clusters":[{"name":"a"}],"values":[[],[null,]]}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if header, steps, err := lines(t, text); err == nil && len(steps) > 0 {
			rewritten(t, header, steps)
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add("time,cluster,load\n1,a,1\n1,b,\n61,a,2\n")
	f.Add("time,cluster,load,server,uid,replica\n2026-11-20T09:00:00Z,a,1e3,https://a,u,0\n2026-11-20T09:05:00Z,\"a,b\",1,,,\n")
	f.Add("cluster,time\n")
	f.Fuzz(func(t *testing.T, text string) {
		if header, steps, err := table(t, text); err == nil {
			rewritten(t, header, steps)
		}
	})
}
