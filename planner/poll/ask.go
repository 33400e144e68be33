package poll

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"ballast/planner/poll/meter"
	"ballast/planner/poll/promql"
)

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

var errTooMany = fmt.Errorf("the answers together would take more than %d MiB of memory: let the queries aggregate by the labels that they are matched by", maxKept>>20)

var (
	errTooManyQueries = fmt.Errorf("its queries, with all others, would take more than %d MiB of memory: "+
		"ask for all clusters by one query", maxKept>>20)
	errTooManyWords = fmt.Errorf("no answer, and the reasons of all queries together would take more than %d MiB of memory", maxKept>>20)
	errNoAnswer     = errors.New("its answer is no JSON that a Prometheus gives: look at what answers at poll.prometheus.url")
)

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
