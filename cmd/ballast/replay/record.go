package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/source"
	"ballast/planner/config"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/measure"
	plans "ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/printable"
	"ballast/planner/replay/trace"
)

// fromPrometheus asks a Prometheus for a range, step by step, by the first configuration that is compared.
func (o *options) fromPrometheus(ctx context.Context, progress io.Writer, files comparison) (trace.Source, func(), error) {
	last, err := span("last", o.last, time.Minute, 400*24*time.Hour)
	if err != nil {
		return nil, nil, err
	}
	step, err := span("step", o.step, time.Second, 24*time.Hour)
	if err != nil {
		return nil, nil, err
	}
	client, err := o.cluster.Client()
	if err != nil {
		return nil, nil, err
	}
	for i, w := range files {
		if w.name == installedName {
			c, err := source.Installed(ctx, client, o.cluster.Namespace, o.installed, progress)
			if err != nil {
				return nil, nil, err
			}
			files[i].config = &c
		}
	}
	c := config.Default()
	if first := files.measures(); first != nil {
		c = *first
	}
	c = o.asked(c)
	doc, err := connect.ReadDocument(ctx, client, c)
	if err != nil {
		return nil, nil, err
	}
	in, w, err := gather.Look(ctx, client, c, discover.Known{}, doc.Plan)
	if err != nil {
		return nil, nil, connect.ExplainDenied(err, c.Target.Namespace)
	}
	fetcher, err := gather.NewFetcher(c, standing.TargetOf(w))
	if err != nil {
		return nil, nil, err
	}
	now := o.now().UTC().Truncate(step)
	say.To(progress, "asking %s about %s every %s of the last %s\n", c.Poll.Prometheus.URL,
		say.Plural(len(in.Secrets), "cluster Secret"), config.Duration(step), config.Duration(last))
	p := &asker{ctx: ctx, fetcher: fetcher, config: c, found: in, step: step, from: now.Add(-last),
		next: now.Add(-last), to: now,
		replicas: w.Replicas, keeps: o.record != "", say: progress}
	return o.resumed(p)
}

// asked is a configuration as it asks the Prometheus that a person names: the planner's credentials are for another
// one.
func (o *options) asked(c config.PlannerConfig) config.PlannerConfig {
	c.Target.Namespace = o.cluster.Namespace
	if o.prometheus != "" {
		c.Poll = c.Poll.WithPrometheus()
		p := c.Poll.Prometheus
		p.URL = o.prometheus
		if len(o.configs) == 0 || slices.Contains(o.configs, installedName) { // the files that the planner reads are in its pod
			p.HTTP = config.Default().Poll.Prometheus.HTTP
		}
	}
	return c
}

// resumed goes on with the file of --record where one is there, and begins it where there is none.
func (o *options) resumed(p *asker) (trace.Source, func(), error) {
	if o.record == "" {
		return p, func() {}, nil
	}
	fail := func(err error) (trace.Source, func(), error) {
		return nil, nil, fmt.Errorf("--record: going on with %q: %w", o.record, err)
	}
	file, err := os.OpenFile(o.record, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fail(err)
	}
	closes := func() { file.Close() }
	info, err := file.Stat()
	if err != nil {
		closes()
		return fail(err)
	}
	if info.Size() == 0 {
		w, err := trace.NewWriter(file, p.Header())
		if err != nil {
			closes()
			return fail(err)
		}
		return &tee{p, w}, closes, nil
	}
	end, err := endOf(file, info.Size(), p.Header())
	if err != nil {
		closes()
		return fail(err)
	}
	before, closesBefore, err := read(o.record, nil)
	if err != nil {
		closes()
		return fail(err)
	}
	if !end.At.IsZero() {
		p.next, p.roster, p.clusters = end.At.Add(p.step), end.Roster, end.Clusters
	}
	say.To(p.say, "going on with %s, which ends at %s\n", o.record, end.At.Format(time.RFC3339))
	return &chain{before, &tee{p, trace.Resume(file, end.Roster)}}, func() { closes(); closesBefore() }, nil
}

// endOf reads a trace to its last whole step, cuts off what is behind that, and stands there to write.
func endOf(file *os.File, size int64, want trace.Header) (end trace.Step, err error) {
	lines, err := trace.NewLines(file, size)
	if err != nil {
		return end, err
	}
	if h := lines.Header(); h.Step != want.Step || !slices.Equal(h.Metrics, want.Metrics) {
		return end, fmt.Errorf("it has %s every %s, and %s every %s is asked for: name another file, or the same configuration and --step",
			strings.Join(h.Metrics, ", "), config.Duration(h.Step), strings.Join(want.Metrics, ", "),
			config.Duration(want.Step))
	}
	for {
		step, err := lines.Next()
		if err != nil {
			break // its end, or what was cut off as it was written
		}
		end = step
	}
	if err := file.Truncate(lines.Whole()); err != nil {
		return end, err
	}
	at, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return end, err
	}
	final := make([]byte, 1)
	if _, err := file.ReadAt(final, at-1); err != nil {
		return end, err
	}
	if final[0] != '\n' {
		_, err = file.WriteString("\n")
	}
	return end, err
}

// asker is a Prometheus as a trace: each step is what the configuration's queries answer for that time. It keeps one
// step.
type asker struct {
	ctx      context.Context
	fetcher  poll.Fetcher
	config   config.PlannerConfig
	found    discover.Input
	step     time.Duration
	from, to time.Time
	next     time.Time
	replicas int
	keeps    bool // the trace is recorded
	say      io.Writer

	roster   int
	clusters []trace.Cluster
	told     map[string]bool
}

var _ trace.Source = (*asker)(nil)

// Header implements trace.Source.
func (a *asker) Header() trace.Header {
	h := trace.Header{Step: a.step, Replicas: a.replicas}
	for _, m := range loads.MetricsOf(a.config) {
		h.Metrics = append(h.Metrics, m.ID)
	}
	return h
}

// Share implements trace.Source.
func (a *asker) Share() float64 {
	return min(float64(a.next.Sub(a.from))/float64(max(a.to.Sub(a.from), 1)), 1)
}

// Next implements trace.Source.
func (a *asker) Next() (trace.Step, error) {
	if a.next.After(a.to) {
		return trace.Step{}, io.EOF
	}
	at := a.next
	fleet := discover.All(a.there(at), at)
	metrics := loads.MetricsOf(a.config)
	fetched := a.fetcher.Fetch(a.ctx, metrics, fleet, at)
	if err := a.judge(fetched, at); err != nil {
		return trace.Step{}, err
	}
	believed := measure.Options{MaxDrop: 1, MaxAge: time.Duration(a.config.Poll.Prometheus.MaxAge)}
	table, err := measure.Join(metrics, fleet, fetched, measure.LastGood{}, believed, at)
	if err != nil {
		return trace.Step{}, err
	}
	a.next = at.Add(a.step)
	a.tell(table)
	return a.stepOf(at, fleet, table), nil
}

// there is what stood then: a Secret that was made later was not there, and of one that is gone nobody knows.
func (a *asker) there(at time.Time) discover.Input {
	in := a.found
	in.InClusterEnabled, in.Secrets = false, nil
	for _, s := range a.found.Secrets {
		if !s.Created.After(at) && !s.SkipReconcile {
			in.Secrets = append(in.Secrets, s)
		}
	}
	return in
}

// judge ends the recording where nothing is answered at all.
func (a *asker) judge(fetched []poll.Fetched, at time.Time) error {
	if err := a.ctx.Err(); err != nil {
		return a.ended(at, context.Cause(a.ctx))
	}
	for _, f := range fetched {
		if f.Err == "" {
			return nil
		}
	}
	return a.ended(at, errors.New(fetched[0].Err))
}

func (a *asker) ended(at time.Time, err error) error {
	stays := "nothing of it is kept: --record FILE keeps what was answered, and goes on there"
	if a.keeps {
		stays = "what was answered until then is recorded: the same command goes on there"
	}
	return fmt.Errorf("asking %s for %s: %w\n%s", a.config.Poll.Prometheus.URL, at.Format(time.RFC3339), err, stays)
}

// tell says once what is wrong with a metric.
func (a *asker) tell(t measure.Table) {
	for _, p := range t.Problems {
		key := p.Metric + "/" + string(p.Kind)
		if a.told[key] {
			continue
		}
		if a.told == nil {
			a.told = map[string]bool{}
		}
		a.told[key] = true
		say.To(a.say, "note: at %s, and maybe later: %s\n", t.At.Format(time.RFC3339), p.Message)
	}
}

func (a *asker) stepOf(at time.Time, fleet discover.Fleet, t measure.Table) trace.Step {
	clusters := make([]trace.Cluster, len(fleet.Clusters))
	for i, c := range fleet.Clusters {
		clusters[i] = clusterOf(c)
	}
	same := func(a, b trace.Cluster) bool { return a.Name == b.Name && a.Server == b.Server && a.UID == b.UID }
	if a.roster == 0 || !slices.EqualFunc(clusters, a.clusters, same) {
		a.roster, a.clusters = a.roster+1, clusters
	}
	s := trace.Step{At: at, Roster: a.roster, Clusters: a.clusters, Values: make([][]float64, len(t.Columns))}
	for m, c := range t.Columns {
		s.Values[m] = make([]float64, len(clusters))
		for i, flag := range c.Flags {
			if s.Values[m][i] = math.NaN(); flag == measure.Fresh {
				s.Values[m][i] = digits7(c.Values[i])
			}
		}
	}
	return s
}

// clusterOf is a cluster without credentials, should its server's URL have some.
func clusterOf(c discover.Cluster) trace.Cluster {
	t := trace.Cluster{Name: c.Shard.ID, Server: c.Shard.Server, UID: c.Shard.UID, Replica: plans.NoReplica}
	if printable.MaskServer(t.Server) != t.Server {
		t.Server = "https://" + plans.ServerHash(t.Server)
	}
	if c.Explicit.State == discover.ShardValid {
		t.Replica = c.Explicit.N
	}
	return t
}

// digits7 is how exactly values are kept between cycles, too.
func digits7(v float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64) // it printed a number
	return short
}
