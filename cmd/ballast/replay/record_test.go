package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/poll"
	"ballast/planner/replay/trace"
)

// prometheus answers each query by its first word: apps for the fleet, by server, and load for each cluster, by name. From fails on
// it answers nothing.
type prometheus struct {
	mu    sync.Mutex
	asked []string
	fails time.Time
	now   int // queries under way
	most  int
}

func (p *prometheus) Query(_ context.Context, query string, at time.Time, _ ...promv1.Option) (model.Value, promv1.Warnings, error) {
	p.mu.Lock()
	p.asked = append(p.asked, at.UTC().Format("15:04 ")+query)
	p.now++
	p.most = max(p.most, p.now)
	p.mu.Unlock()
	defer func() { p.mu.Lock(); p.now--; p.mu.Unlock() }()
	if !p.fails.IsZero() && !at.Before(p.fails) {
		return nil, nil, errors.New("connection refused")
	}
	minute := model.SampleValue(at.Minute())
	what, of, _ := strings.Cut(query, "/")
	switch what {
	case "age":
		return model.Vector{{Metric: model.Metric{"server": "https://a.example"}, Value: model.SampleValue(at.Unix())},
			{Metric: model.Metric{"server": "https://b.example"}, Value: model.SampleValue(at.Add(-time.Hour).Unix())}}, nil, nil
	case "apps":
		return model.Vector{{Metric: model.Metric{"server": "https://a.example"}, Value: 1 + minute}, {Metric: model.Metric{"server": "https://b.example"}, Value: 2},
			{Metric: model.Metric{"server": "https://else.example"}, Value: 9}}, nil, nil
	case "load":
		if of == "b" {
			return model.Vector{}, nil, nil
		}
		return &model.Scalar{Value: 7}, nil, nil
	}
	return nil, nil, fmt.Errorf("what is %q?", query)
}

func polled() config.PlannerConfig {
	c := config.Default()
	p := *c.Poll.Prometheus
	p.Metrics = []config.Metric{
		{ID: "apps", Query: "apps/{{.pods}}", AgeQuery: "age/{{.pods}}", Match: &config.Match{Label: "server", To: config.MatchServer}},
		{ID: "load", QueryPerCluster: "load/{{.name}}"}}
	c.Poll.Prometheus = &p
	return c
}

// asking are two clusters, of which the second was made at 09:02, in Argo CD's namespace beside one that it skips.
func asking(t *testing.T, p *prometheus, o *options, to int) *asker {
	made := fixture.Noon.Truncate(24 * time.Hour).Add(9 * time.Hour)
	secret := func(name string, created time.Time) discover.Secret {
		return discover.Secret{UID: "u-" + name, Name: name, Namespace: "argocd", Cluster: name, Server: "https://" + name + ".example", HasData: true, Created: created,
			Shard: discover.ShardValue{State: discover.ShardValid, N: 1}}
	}
	skipped := secret("s", made.Add(-time.Hour))
	skipped.SkipReconcile = true
	return &asker{ctx: t.Context(), fetcher: poll.NewWith(p, poll.Config{Pods: "pod=~\"c-.*\"", Concurrency: 2}), config: polled(), step: time.Minute, from: made, next: made, to: made.Add(time.Duration(to) * time.Minute),
		found: discover.Input{Namespace: "argocd", Secrets: []discover.Secret{secret("a", made.Add(-time.Hour)), secret("b", made.Add(2*time.Minute)), skipped}}, replicas: 2, keeps: o.record != "", say: io.Discard}
}

// TestARangeIsAskedByTheConfigurationsOwnQueries, each for its own time; what is no value then is none in the trace.
func TestARangeIsAskedByTheConfigurationsOwnQueries(t *testing.T) {
	p := &prometheus{}
	a := asking(t, p, &options{}, 3)
	var said bytes.Buffer
	a.say = &said
	got, err := trace.All(a)
	fixture.MustDo(t, err)
	nan, at := math.NaN(), a.from
	alone := []trace.Cluster{{Name: "a", Server: "https://a.example", UID: "u-a", Replica: 1}}
	both := append(slices.Clone(alone), trace.Cluster{Name: "b", Server: "https://b.example", UID: "u-b", Replica: 1})
	want := []trace.Step{ // b has a sample that is older than maxAge, and no load
		{At: at, Roster: 1, Clusters: alone, Values: [][]float64{{1}, {7}}},
		{At: at.Add(time.Minute), Roster: 1, Clusters: alone, Values: [][]float64{{2}, {7}}},
		{At: at.Add(2 * time.Minute), Roster: 2, Clusters: both, Values: [][]float64{{3, nan}, {7, nan}}},
		{At: at.Add(3 * time.Minute), Roster: 2, Clusters: both, Values: [][]float64{{4, nan}, {7, nan}}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var queries []string
	for k := range 4 {
		for _, q := range []string{`age/pod=~"c-.*"`, `apps/pod=~"c-.*"`, "load/a", "load/b"}[:3+min(k/2, 1)] {
			queries = append(queries, fmt.Sprintf("09:%02d %s", k, q))
		}
	}
	slices.Sort(p.asked)
	if diff := cmp.Diff(queries, p.asked); diff != "" || p.most > 2 {
		t.Errorf("%d at once, want 2 at most; queries (-want +got):\n%s", p.most, diff)
	}
	fixture.Holds(t, said.String(), `no cluster is called so`, "is older than maxAge")
	if n := strings.Count(said.String(), "no cluster is called so"); n != 1 {
		t.Errorf("people are told %d times of what is wrong with every answer, want once:\n%s", n, said.String())
	}
}

// TestARecordGoesOnWhereItEnded: whether Prometheus went away, or the file ends in the middle of a line, the record is in
// the end what it would have been at once.
func TestARecordGoesOnWhereItEnded(t *testing.T) {
	record := func(o *options, p *prometheus, to int) error {
		s, closes, err := o.resumed(asking(t, p, o, to))
		fixture.MustDo(t, err)
		defer closes()
		_, err = trace.All(s)
		return err
	}
	whole := &options{record: filepath.Join(t.TempDir(), "whole.jsonl")}
	fixture.MustDo(t, record(whole, &prometheus{}, 5))
	want, err := os.ReadFile(whole.record)
	fixture.MustDo(t, err)

	o := &options{record: filepath.Join(t.TempDir(), "parts.jsonl")}
	gone := &prometheus{fails: asking(t, nil, o, 0).from.Add(3 * time.Minute)}
	err = record(o, gone, 5)
	if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.HasSuffix(err.Error(), "what was answered until then is recorded: the same command goes on there") {
		t.Errorf("it ends with %v", err)
	}
	part, err := os.ReadFile(o.record)
	fixture.MustDo(t, err)
	if lines := strings.Count(string(part), "\n"); lines != 4 {
		t.Errorf("%d lines are recorded, want the header and three steps:\n%s", lines, part)
	}
	for cut := range 6 {
		fixture.MustDo(t, os.WriteFile(o.record, part[:len(part)-cut*9], 0o600))
		p := &prometheus{}
		fixture.MustDo(t, record(o, p, 5))
		got, err := os.ReadFile(o.record)
		fixture.MustDo(t, err)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("cut by %d bytes (-at once +in parts):\n%s", cut*9, diff)
		}
		if slices.ContainsFunc(p.asked, func(q string) bool { return strings.HasPrefix(q, "09:00") || strings.HasPrefix(q, "09:01 ") && cut < 5 }) {
			t.Errorf("what was recorded was asked for again: %v", p.asked)
		}
	}
	fixture.MustDo(t, os.WriteFile(o.record, bytes.TrimSuffix(part, []byte("\n")), 0o600)) // whole but for its end
	fixture.MustDo(t, record(o, &prometheus{}, 5))
	if got, err := os.ReadFile(o.record); err != nil || string(got) != string(want) {
		t.Errorf("without its last line break it is\n%s, %v", got, err)
	}
}

func TestARecordOfSomethingElseIsKept(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"another step":    {`{"apiVersion":"ballast.argoproj.io/v1alpha1","kind":"LoadTrace","step":"5m","metrics":["apps","load"]}` + "\n", "it has apps, load every 5m, and apps, load every 1m is asked for"},
		"other metrics":   {`{"apiVersion":"ballast.argoproj.io/v1alpha1","kind":"LoadTrace","step":"1m","metrics":["apps"]}` + "\n", "it has apps every 1m, and apps, load every 1m is asked for"},
		"no trace at all": {"my diary\n", "line 1: it is no trace's header"},
	} {
		o := &options{record: file(t, "kept", test.text)}
		_, _, err := o.resumed(asking(t, &prometheus{}, o, 1))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "--record: going on with ") {
			t.Errorf("%s is refused with %v, want %s", name, err, test.want)
		}
		if got, err := os.ReadFile(o.record); err != nil || string(got) != test.text {
			t.Errorf("%s is %q now: %v", name, got, err)
		}
	}
}

// TestNothingOfACredentialIsRecorded, should a server's URL have one.
func TestNothingOfACredentialIsRecorded(t *testing.T) {
	p := &prometheus{}
	a := asking(t, p, &options{}, 0)
	a.found.Secrets[0].Server = "https://admin:" + fixture.SecretText + "@a.example"
	got, err := trace.All(a)
	fixture.MustDo(t, err)
	var b bytes.Buffer
	w, err := trace.NewWriter(&b, a.Header())
	fixture.MustDo(t, err)
	fixture.MustDo(t, w.Write(got[0]))
	if strings.Contains(b.String(), fixture.SecretText) || strings.Contains(b.String(), "admin") || !strings.Contains(b.String(), `"server":"https://`) {
		t.Errorf("it is recorded as %s", b.String())
	}
}
