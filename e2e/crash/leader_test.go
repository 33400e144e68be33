package crash_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/apply"
	"ballast/planner/config"
	"ballast/planner/controller"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/poll"
	"ballast/planner/status"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// crashLeader is one process that leads until it is killed: a Loop that begins with nothing but the history ConfigMap. It
// does what Run does, a call at a time.
type crashLeader struct {
	run    *crashRun
	loop   *controller.Loop
	ctx    context.Context
	cancel context.CancelFunc
	dead   bool
	leads  bool // it has taken over from the last one
	writes int

	cycle, settles, deadline time.Time // of the next cycle: when it is due, when changes have settled, and how long they may put it off
	repair                   time.Time
	repairing                bool
}

// lead elects a leader.
func (r *crashRun) lead() {
	r.leaders++
	l := &crashLeader{run: r, cycle: r.clock.Now(), repair: r.clock.Now().Add(lookSoon)}
	l.ctx, l.cancel = context.WithCancel(r.ctx)
	guarded := l.guarded()
	identity := fmt.Sprintf("planner-%d", r.leaders)
	l.loop = controller.NewLoop(wiring.Options{
		Config:     func() config.PlannerConfig { return r.config },
		Reader:     &r.cache,
		Store:      store.New(store.Options{Client: guarded, Reader: guarded, Namespace: r.namespace, Plan: r.config.Plan.ConfigMap, History: r.config.Plan.History, Key: keySecret}),
		Applier:    apply.New(apply.Options{Client: guarded, Reader: guarded, Nudger: l, Clock: r.clock, Concurrency: 1}),
		NewFetcher: r.fetcher,
		Probe:      r.probe,
		Observe: func(_ context.Context, _ poll.Fetcher, _ discover.Workload, fleet discover.Fleet) (input.Observed, []scrape.PodReport) {
			if l.dead || r.faults.away(r.clock.Now()) {
				return input.Observed{Trouble: []string{"the pods cannot be listed"}}, nil
			}
			return r.fleet.observe(fleet, r.clock.Now()), nil
		},
		Emit:    l.tell,
		Metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		Log: funcr.New(func(_, args string) {
			if len(args) > 300 {
				args = args[:300] + "..."
			}
			r.note("%s %s", identity, args)
		}, funcr.Options{}),
		Clock:       r.clock,
		Identity:    identity,
		PlannerUser: "system:serviceaccount:argocd:ballast-planner",
	})
	r.leader, r.news, r.lag, r.watch.changed = l, crashNews{plan: true}, time.Time{}, r.clock.Now()
	r.sync()
	r.note("%s is elected", identity)
}

// tell counts events and keeps them for a failure's message. No cycle and no repair may panic, which a planner outlives.
func (l *crashLeader) tell(_ discover.Workload, events ...telemetry.Event) {
	for _, e := range events {
		l.leads = l.leads || e.Reason == leaderElected
		l.run.told[e.Reason]++
		l.run.note("event %s: %s", e.Reason, e.Message)
		if e.Reason == panicked {
			l.run.fatal("%s", e.Message)
		}
	}
}

// drifted reports whether a repair was asked for.
func (l *crashLeader) drifted() bool {
	_, repairs := l.loop.Woken()
	return len(repairs) > 0
}

// kill ends the process: nothing that it does from now on reaches anybody.
func (l *crashLeader) kill(takeover time.Duration) {
	if l.dead {
		return
	}
	l.run.note("the leader is killed")
	l.dead = true
	l.cancel()
	if l.run.leader == l {
		l.run.leader, l.run.next = nil, l.run.clock.Now().Add(takeover)
	}
}

func takes(s <-chan struct{}) bool {
	select {
	case <-s:
		return true
	default:
		return false
	}
}

// act does one thing that is due, and reports whether anything was.
func (l *crashLeader) act() bool {
	now := l.run.clock.Now()
	l.await(now)
	cycles := !now.Before(l.cycle) || !l.settles.IsZero() && !now.Before(l.settles)
	repairs := l.drifted() || !now.Before(l.repair)
	switch {
	case repairs && (!cycles || l.run.coin.IntN(2) == 0):
		l.mend()
	case cycles:
		if _, err := l.loop.Once(l.ctx); err != nil && !crashed(err) {
			l.run.note("cycle failed: %v", err)
		}
		l.cycle, l.settles = l.run.clock.Now().Add(l.loop.Pause()), time.Time{}
	default:
		return false
	}
	return true
}

// await is what the function of that name does with a change.
func (l *crashLeader) await(now time.Time) {
	cycles, _ := l.loop.Woken()
	if !takes(cycles) {
		return
	}
	if l.settles.IsZero() {
		l.settles, l.deadline = now.Add(quiet), now.Add(mostWait)
		return
	}
	l.settles = now.Add(min(quiet, max(l.deadline.Sub(now), 0)))
}

func (l *crashLeader) mend() {
	_, repairs := l.loop.Woken()
	takes(repairs)
	l.repairing = true
	again, err := l.loop.Repair(l.ctx)
	l.repairing = false
	if err != nil && !crashed(err) {
		l.run.note("repairing failed: %v", err)
	}
	l.repair = l.run.clock.Now().Add(again)
}

// meanwhile lets repairs come in the middle of a cycle, where the coin says so.
func (l *crashLeader) meanwhile(k crashKind) {
	if l.repairing || k != crashPlan && k != crashHistory || l.run.coin.IntN(2) == 0 {
		return
	}
	l.run.deliver()
	if !l.dead && l.drifted() {
		l.mend()
	}
}

// crashKind is what a write is of.
type crashKind string

const (
	crashPlan       crashKind = "plan"
	crashHistory    crashKind = "history"
	crashSaid       crashKind = "status"
	crashSecret     crashKind = "Secret"
	crashSet        crashKind = "workload"
	crashReplicas   crashKind = "scale" // the workload's replicas alone, by the subresource
	crashAnnotation crashKind = "annotation"
	crashNudge      crashKind = "nudge"
)

// kindOf says what an object's write is; the plan ConfigMap's annotations alone are an answer to people.
func (l *crashLeader) kindOf(o client.Object, data []byte) crashKind {
	switch o.GetName() {
	case l.run.config.Plan.History:
		return crashHistory
	case status.Name(l.run.config.Plan.ConfigMap):
		return crashSaid
	case crashWorkload:
		return crashSet
	case l.run.config.Plan.ConfigMap:
		if data != nil && !bytes.Contains(data, []byte(`"data":`)) {
			return crashAnnotation
		}
		return crashPlan
	}
	return crashSecret
}

func (l *crashLeader) reads() error {
	switch {
	case l.dead:
		return context.Canceled
	case l.run.faults.away(l.run.clock.Now()):
		return errAway
	}
	return nil
}

// guarded is a client whose every call meets the faults. It has no other writes than these.
func (l *crashLeader) guarded() client.WithWatch {
	return interceptor.NewClient(l.run.planner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := l.reads(); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return l.write(ctx, l.kindOf(o, nil), o.GetName(), func(ctx context.Context) error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			data, err := p.Data(o)
			if err != nil {
				return err
			}
			return l.write(ctx, l.kindOf(o, data), o.GetName(), func(ctx context.Context) error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, of string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			if of != string(crashReplicas) {
				return fmt.Errorf("the test itself failed: nobody was to write %s of %s", of, o.GetName())
			}
			return l.write(ctx, crashReplicas, o.GetName(), func(ctx context.Context) error { return c.SubResource(of).Patch(ctx, o, p, opts...) })
		},
	})
}

var _ apply.Nudger = (*crashLeader)(nil)

// Nudge stands for the annotation of one of the cluster's Applications.
func (l *crashLeader) Nudge(ctx context.Context, _, cluster, _, _ string) (string, error) {
	return "app-of-" + cluster, l.write(ctx, crashNudge, cluster, func(context.Context) error {
		l.run.fleet.Nudge(cluster, l.run.clock.Now())
		return nil
	})
}

// write is one step: it meets its fault, or takes effect.
func (l *crashLeader) write(ctx context.Context, k crashKind, name string, do func(context.Context) error) error {
	if err := l.reads(); err != nil {
		return err
	}
	if k == crashHistory {
		l.meanwhile(k)
		if err := l.reads(); err != nil {
			return err
		}
	}
	err := l.run.faults.meet(l, k, name, func(ctx context.Context) error {
		err := do(ctx)
		l.run.written(k, name, err)
		return err
	}, ctx)
	if k == crashPlan {
		l.meanwhile(k)
	}
	return err
}

// written shows everybody what stands after a write.
func (r *crashRun) written(k crashKind, name string, err error) {
	switch k {
	case crashPlan, crashAnnotation:
		r.readPlan()
		r.news.plan = true
		if r.planned != nil {
			r.planned()
		}
		if r.coin.IntN(8) == 0 {
			r.lag = r.clock.Now().Add(time.Duration(1+r.coin.IntN(3)) * time.Second)
		}
	case crashSecret:
		before := r.fleet.Shards[name]
		_, had := r.fleet.Shards[name]
		r.readSecret(name)
		r.watch.secretWritten(name, before, had)
	case crashSet, crashReplicas:
		r.readWorkload()
		r.watch.workloadWritten()
	}
	r.fleet.Own(r.clock.Now())
	r.note("write %d of %s %s: %v", r.faults.steps, k, name, err)
}
