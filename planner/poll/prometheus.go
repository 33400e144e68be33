package poll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"ballast/planner/discover"
	"ballast/planner/poll/meter"
	"ballast/planner/poll/promql"
)

const (
	maxMessage = 1000 // bytes kept of what a Prometheus says in words
	// maxKept bounds what all answers of a Fetch leave, in bytes of memory: 20,000 clusters with the nine queries of
	// the default set leave 44 MiB.
	maxKept = 64 << 20
	// keptSample is what a sample without its key becomes: 48 bytes here, and up to 100 in the index or the report
	// made of it.
	keptSample = 150
	// keptQuestion is what a query for one cluster takes, with the sample that becomes of it: 4,194 clusters may be
	// asked for by 64 metrics each, 20,000 by thirteen.
	keptQuestion = 250
	// patience is what a request has to end in once its time is over: it says then why there is no answer.
	patience = time.Second
)

var errTooMany = fmt.Errorf("the answers together would take more than %d MiB of memory: let the queries aggregate by the labels that they are matched by", maxKept>>20)

var (
	errTooManyQueries = fmt.Errorf("its queries, with all others, would take more than %d MiB of memory: "+
		"ask for all clusters by one query", maxKept>>20)
	errTooManyWords = fmt.Errorf("no answer, and the reasons of all queries together would take more than %d MiB of memory", maxKept>>20)
	errNoAnswer     = errors.New("its answer is no JSON that a Prometheus gives: look at what answers at poll.prometheus.url")
)

// Querier is what of Prometheus's API is asked.
type Querier interface {
	Query(ctx context.Context, query string, ts time.Time, opts ...promv1.Option) (model.Value, promv1.Warnings, error)
}

var _ Querier = promv1.API(nil)

// Config says which Prometheus is asked, and how.
type Config struct {
	URL         string
	Timeout     time.Duration // of one query
	Within      time.Duration // all queries of a Fetch
	Concurrency int           // queries at once
	Pods        string        // fills {{.pods}} of fleet queries; promql.PodsMatcher writes it
	PodLabel    string        // that these are matched by; fills {{.pod}}, and is pod where it is empty
	Namespace   string        // of these pods; none is any
	HTTP        config.HTTPClientConfig
}

// Fetcher asks for metrics, as a Prometheus does.
type Fetcher interface {
	Fetch(ctx context.Context, metrics []Metric, fleet discover.Fleet, now time.Time) []Fetched
}

var _ Fetcher = (*Prometheus)(nil)

// Prometheus asks a Prometheus for metrics.
type Prometheus struct {
	http    *http.Client                   // nil where the querier was given
	querier func(*meter.Allowance) Querier // of one query
	large   meter.Semaphore                // of large answers
	slots   chan struct{}                  // of requests, those too that nobody waits for any more
	budget  func() *promql.Budget          // of a Fetch
	config  Config
	hung    hung
}

// New makes the client; nothing is asked yet.
func New(c Config) (*Prometheus, error) {
	caller, err := meter.NewHTTPClient(c.HTTP)
	if err != nil {
		return nil, fmt.Errorf("setting up the HTTP client for Prometheus: %w", err)
	}
	client, err := promapi.NewClient(promapi.Config{Address: c.URL, Client: caller})
	if err != nil {
		return nil, fmt.Errorf("setting up the client for Prometheus: %w", err)
	}
	p := NewWith(nil, c)
	p.http = caller
	p.querier = func(a *meter.Allowance) Querier { return promv1.NewAPI(meter.NewClient(client, caller, a)) }
	return p, nil
}

// NewWith asks the given querier; Config's URL and HTTP are not looked at.
func NewWith(q Querier, c Config) *Prometheus {
	c.PodLabel = cmp.Or(c.PodLabel, "pod")
	c.Timeout = cmp.Or(max(c.Timeout, 0), 10*time.Second)
	c.Within = cmp.Or(max(c.Within, 0), time.Minute)
	c.Concurrency = cmp.Or(max(c.Concurrency, 0), 4)
	return &Prometheus{
		querier: func(*meter.Allowance) Querier { return q }, large: meter.NewSemaphore(), slots: make(chan struct{}, 4*c.Concurrency),
		budget: promql.NewBudget, config: c,
	}
}

// Fetch asks for every metric: one query for a fleet metric and one for its age, or one for each cluster that is
// reconciled. It never fails as a whole: what went wrong stands in the answers. As many timeouts as queries run at once
// are taken for a Prometheus that hangs, and what was not asked by then is not asked any more; nor is what was not
// asked within the time of all. So a Fetch ends in time however many clusters there are, however slow the answers come,
// and whatever keeps a request from ending.
// What is asked of the whole fleet comes first, and a query for a cluster that timed out before comes last.
func (p *Prometheus) Fetch(ctx context.Context, metrics []Metric, fleet discover.Fleet, now time.Time) []Fetched {
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Within, errLate)
	defer cancel()
	f := fetch{Prometheus: p, now: now, ages: map[aged]*reply{}, templates: p.budget()}
	f.group.SetLimit(p.config.Concurrency)
	theirs := f.targets(ctx, metrics)
	fetched := make([]Fetched, len(metrics))
	var finish []func()
	for i, m := range metrics {
		fetched[i].Metric = m.ID
		if m.PerCluster() {
			continue
		}
		if err := theirs.refuses(m); err != nil {
			fetched[i].Err = err.Error()
			continue
		}
		finish = append(finish, f.fleet(ctx, m, theirs.vars, &fetched[i]))
	}
	for i, m := range metrics {
		if m.PerCluster() {
			finish = append(finish, f.perCluster(m, fleet, &fetched[i]))
		}
	}
	p.hung.last(f.each)
	for _, q := range f.each {
		f.ask(ctx, func() (string, error) { return f.templates.Render(q.template, *q.shard) }, q.into, single)
	}
	_ = f.group.Wait() // the errors stand in the answers
	p.hung.note(f.each, now)
	for _, done := range finish {
		done()
	}
	return fetched
}

// fetch is one round of queries.
type fetch struct {
	*Prometheus
	now       time.Time
	group     errgroup.Group
	timeouts  atomic.Int32
	kept      atomic.Int64 // bytes that the answers leave
	templates *promql.Budget
	ages      map[aged]*reply
	each      []question // of one cluster
}

// aged is an age query, which several metrics may share: it is asked once.
type aged struct{ query, label string }

// reply is what was read of the answer to one query.
type reply struct {
	samples  []Sample // of the fleet
	rows     []row    // of the targets
	passed   int      // series of the fleet that are passed over, for the length of their label
	value    float64  // of one cluster
	found    bool
	warnings []string
	err      error
	hung     bool // there was no answer within the timeout
}

var (
	errHangs = errors.New("not asked: the queries before it timed out")
	errLate  = errors.New("not asked in time: the queries before it took too long")
)

// asText is a query that is written already.
func asText(query string) func() (string, error) {
	return func() (string, error) { return query, nil }
}

// ask sends a query when its turn comes, and reads the answer.
func (f *fetch) ask(ctx context.Context, query func() (string, error), into *reply, read func(model.Value, *reply) error) {
	f.group.Go(func() error {
		f.askNow(ctx, query, into, read)
		return nil
	})
}

func (f *fetch) askNow(ctx context.Context, query func() (string, error), into *reply, read func(model.Value, *reply) error) {
	if int(f.timeouts.Load()) >= f.config.Concurrency {
		into.err = errHangs
		return
	}
	if err := ended(ctx); err != nil {
		into.err = err
		return
	}
	text, err := query()
	if err != nil {
		into.err = f.words(err)
		return
	}
	bounded, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	got, err := f.answer(bounded, text, read)
	late := errors.Is(context.Cause(ctx), errLate)
	switch {
	case err != nil && late:
		into.err = errLate
	case err != nil && errors.Is(bounded.Err(), context.DeadlineExceeded):
		f.timeouts.Add(1)
		into.hung = true
		into.err = f.words(fmt.Errorf("no answer within %s: %w", f.config.Timeout, err))
	case err != nil:
		into.err = f.words(err)
	default:
		*into = got
	}
}

// ended says why nothing more is asked.
func ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errLate) {
		return errLate
	}
	return ctx.Err()
}

// words keeps why there is no answer, if there is room for it.
func (f *fetch) words(err error) error {
	switch {
	case errors.Is(err, promql.ErrSpent):
		return promql.ErrSpent
	case !errors.Is(err, errTooMany) && !f.keeps(int64(len(err.Error()))):
		return errTooManyWords
	}
	return err
}

// keeps takes room for what a Fetch keeps, if there is some.
func (f *fetch) keeps(bytes int64) bool {
	if f.kept.Add(bytes) <= maxKept {
		return true
	}
	f.kept.Add(-bytes)
	return false
}

// answer waits for a request no longer than it may last, even where it does not end then. One that goes on has a slot
// until it ends.
func (f *fetch) answer(ctx context.Context, query string, read func(model.Value, *reply) error) (reply, error) {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return reply{}, fmt.Errorf("requests of before do not end: %w", ctx.Err())
	}
	type answered struct {
		reply
		err error
	}
	came := make(chan answered, 1)
	go func() {
		defer func() { <-f.slots }()
		got, err := f.answerAll(ctx, query, read)
		came <- answered{got, err}
	}()
	select {
	case a := <-came:
		return a.reply, a.err
	case <-ctx.Done():
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	select {
	case a := <-came:
		return a.reply, a.err
	case <-over.C:
		return reply{}, fmt.Errorf("the request does not end: %w", ctx.Err())
	}
}

// answerAll asks, and reads the answer at once: it takes many times what is read of it. Whatever it says, and whatever
// the reading does, is this query's own fault.
func (f *fetch) answerAll(ctx context.Context, query string, read func(model.Value, *reply) error) (got reply, err error) {
	a := meter.NewAllowance(f.large)
	defer a.Release()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading the answer ended in a panic of type %T", p)
		}
	}()
	value, warnings, err := f.querier(a).Query(ctx, query, f.now, promv1.WithTimeout(f.config.Timeout))
	if err != nil && a.Answered() {
		err = notQuoting(err)
	}
	if err == nil {
		err = read(value, &got)
	}
	if err != nil {
		return reply{}, errors.New(clipped(err.Error()))
	}
	for _, w := range some3(warnings) {
		got.warnings = append(got.warnings, clipped(w))
	}
	if !f.keeps(got.size()) {
		return reply{}, errTooMany
	}
	return got, nil
}

// notQuoting is the error of a query that was answered. A decoder's quotes the answer, which is nobody's business where
// the URL names something else than a Prometheus; what a Prometheus says in its own words, and a status, are told.
func notQuoting(err error) error {
	var said *promv1.Error
	if !errors.As(err, &said) || said.Type == promv1.ErrBadResponse && !strings.HasPrefix(said.Msg, "bad response code ") {
		return errNoAnswer
	}
	return err
}

// size is what the reply takes, in bytes.
func (r reply) size() (sum int64) {
	for _, s := range r.samples {
		sum += keptSample + int64(len(s.Key))
	}
	for _, w := range r.warnings {
		sum += int64(len(w))
	}
	return sum
}

// fleet asks for a metric of all clusters and for its age; the function it returns gives the samples.
func (f *fetch) fleet(ctx context.Context, m Metric, vars promql.FleetVars, into *Fetched) func() {
	values, ages := reply{}, &reply{}
	query, err := f.render(ctx, m.Query, vars)
	if err != nil {
		into.Err = err.Error()
		return func() {}
	}
	read := func(v model.Value, into *reply) (err error) {
		into.samples, into.passed, err = samples(m, v)
		return err
	}
	f.ask(ctx, asText(query), &values, read)
	if m.AgeQuery != "" {
		if query, err = f.render(ctx, m.AgeQuery, vars); err != nil {
			ages.err = err
		} else if once := (aged{query, m.Match.Label}); f.ages[once] != nil {
			ages = f.ages[once]
		} else {
			f.ages[once] = ages
			f.ask(ctx, asText(query), ages, read)
		}
	}
	return func() {
		into.Warnings = values.warnings
		if into.Samples = values.samples; values.err != nil {
			into.Err = fmt.Sprintf("query %q: %v", m.Query, values.err)
			return
		}
		if values.passed > 0 {
			into.Warnings = append(into.Warnings, fmt.Sprintf("%d of its series are passed over: their label %q has more than %d KiB, "+
				"as no cluster's has; look for the cluster Secret that has it, and for its Applications", values.passed,
				m.Match.Label, meter.MaxString>>10))
		}
		if m.AgeQuery != "" {
			into.setAges(m, *ages)
		}
	}
}

// render fills a query for the fleet while there is time.
func (f *fetch) render(ctx context.Context, query string, vars promql.FleetVars) (string, error) {
	if err := ended(ctx); err != nil {
		return "", err
	}
	return f.templates.RenderFleet(query, vars)
}

var errHistogram = errors.New("it answers with a native histogram: take histogram_sum, histogram_count or histogram_quantile of it")

// samples reads an answer for the whole fleet, and counts the series that are passed over.
func samples(m Metric, v model.Value) (out []Sample, passed int, err error) {
	vector, ok := v.(model.Vector)
	if !ok {
		return nil, 0, fmt.Errorf("it answers with a %s; a query for the fleet must answer with an instant vector that has the label %q", typeOf(v), m.Match.Label)
	}
	for i, s := range vector {
		if err := checkSample(i, s); err != nil {
			return nil, 0, err
		}
	}
	out = make([]Sample, 0, len(vector))
	for _, s := range vector {
		switch key := s.Metric[model.LabelName(m.Match.Label)]; key {
		case "": // it is no cluster's
		case meter.TooLong:
			passed++
		default:
			out = append(out, Sample{Key: string(key), Value: float64(s.Value)})
		}
	}
	if len(vector) > 0 && len(out)+passed == 0 {
		return nil, 0, fmt.Errorf("none of its %d series has the label %q: the first one has %s", len(vector),
			m.Match.Label, labelNames(vector[0].Metric))
	}
	slices.SortStableFunc(out, func(a, b Sample) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value)) })
	return out, passed, nil
}

// labelNames names a few of a series' labels, without their values: a person looks for one that is called otherwise.
func labelNames(metric model.Metric) string {
	const most, longest = 10, 100
	names := slices.Sorted(maps.Keys(metric))
	var shown []string
	for _, name := range names[:min(most, len(names))] {
		shown = append(shown, strconv.Quote(strings.ToValidUTF8(string(name[:min(longest, len(name))]), "")))
	}
	if more := len(names) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(shown, ", "), "none")
}

// checkSample refuses what is no number: JSON's null makes a sample that is not there.
func checkSample(i int, s *model.Sample) error {
	switch {
	case s == nil:
		return fmt.Errorf("its sample %d is null, which no Prometheus answers: look at what answers at poll.prometheus.url", i)
	case s.Histogram != nil:
		return errHistogram
	}
	return nil
}

// setAges says of the samples when they were taken, where that is known.
func (into *Fetched) setAges(m Metric, ages reply) {
	if ages.err != nil {
		into.Warnings = append(into.Warnings, fmt.Sprintf("the samples' age is unknown: age query %q: %v", m.AgeQuery,
			ages.err))
		return
	}
	at := make(map[string]time.Time, len(ages.samples))
	for _, a := range ages.samples {
		// NaN fails both comparisons; beyond the year 9999 it is no time that JSON has.
		if a.Value > 0 && a.Value < 253402300800 {
			at[a.Key] = time.UnixMilli(int64(math.Round(a.Value * 1000))).UTC()
		}
	}
	for i, s := range into.Samples {
		into.Samples[i].At = at[s.Key]
	}
}

// perCluster has every cluster asked for alone; the function it returns gives the samples. A query is rendered when its
// turn comes.
func (f *fetch) perCluster(m Metric, fleet discover.Fleet, into *Fetched) func() {
	parsed, err := promql.ParseTemplate(m.QueryPerCluster)
	if err != nil {
		into.Err = err.Error()
		return func() {}
	}
	if !f.keeps(keptQuestion * int64(len(fleet.Clusters))) {
		into.Err = errTooManyQueries.Error()
		return func() {}
	}
	replies := make([]reply, len(fleet.Clusters))
	for i := range fleet.Clusters {
		if c := &fleet.Clusters[i]; !c.Skip {
			f.each = append(f.each, question{of: asked{m.ID, c.Shard.ID}, template: parsed, shard: &c.Shard,
				into: &replies[i]})
		}
	}
	return func() { into.collect(fleet, replies) }
}

// collect takes the replies of the clusters, each asked for alone.
func (into *Fetched) collect(fleet discover.Fleet, replies []reply) {
	var failed, warned few
	asked, late, spent := 0, 0, 0
	for i, c := range fleet.Clusters {
		if c.Skip {
			continue
		}
		asked++
		r := replies[i]
		for _, w := range r.warnings {
			warned.add("cluster %q: %s", c.Shard.ID, w)
		}
		switch {
		case errors.Is(r.err, errLate):
			late++
		case errors.Is(r.err, promql.ErrSpent):
			spent++
		}
		if r.err != nil {
			failed.add("cluster %q: %v", c.Shard.ID, r.err)
		} else if r.found {
			into.Samples = append(into.Samples, Sample{Key: c.Shard.ID, Value: r.value})
		}
	}
	switch { // of whom it is says when the others answered, or how long their templates are, and nothing of those clusters
	case spent > 0:
		into.Samples, into.Err = nil, fmt.Sprintf("%d of %d clusters were not asked: %v", spent, asked, promql.ErrSpent)
	case late > 0:
		into.Samples, into.Err = nil, fmt.Sprintf("%d of %d clusters were not asked in time, since their queries take too long: ask for all of them by one query, or set a longer interval", late, asked)
	case asked > 0 && failed.count == asked:
		into.Err = fmt.Sprintf("every query failed, the first: %s", failed.first[0])
	default:
		into.Warnings = append(failed.told(), warned.told()...)
	}
}

// single reads an answer for one cluster: no sample is no value, and two are an error.
func single(value model.Value, into *reply) error {
	switch v := value.(type) {
	case *model.Scalar:
		into.value, into.found = float64(v.Value), true
		return nil
	case model.Vector:
		if len(v) == 0 {
			return nil
		}
		if len(v) > 1 {
			return fmt.Errorf("it answers with %d series: aggregate them into one", len(v))
		}
		if err := checkSample(0, v[0]); err != nil {
			return err
		}
		into.value, into.found = float64(v[0].Value), true
		return nil
	}
	return fmt.Errorf("it answers with a %s; a query must answer with an instant vector of one series or a scalar",
		typeOf(value))
}

// clipped is a text's beginning, in memory of its own.
func clipped(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:maxMessage]), "") + "…"
}

func typeOf(v model.Value) string {
	if v == nil {
		return "nothing"
	}
	switch t := v.Type(); t {
	case model.ValMatrix:
		return "range vector (take rate, max_over_time or the like of it)"
	default:
		return t.String()
	}
}

// few keeps the first three messages, and counts the others.
type few struct {
	first []string
	count int
}

func (f *few) add(format string, values ...any) {
	if f.count++; f.count <= 3 {
		f.first = append(f.first, fmt.Sprintf(format, values...))
	}
}

func (f *few) told() []string {
	if f.count <= 3 {
		return f.first
	}
	return append(f.first, fmt.Sprintf("and %d more", f.count-3))
}

// some3 are the first three messages, and how many more there are.
func some3(messages []string) []string {
	var f few
	for _, m := range messages {
		f.add("%s", m)
	}
	return f.told()
}
