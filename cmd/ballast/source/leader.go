package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/controller/archive"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/poll"
	"ballast/planner/poll/pods"
	"ballast/planner/status"
	"ballast/planner/store"
)

// keptBy is what the leader keeps, as a person reads it: without the key that says what of it is its own.
func keptBy(c client.Client, cfg config.PlannerConfig) *store.Store {
	return store.New(store.Options{Client: c, Reader: c, Namespace: cfg.Target.Namespace, Plan: cfg.Plan.ConfigMap,
		History: cfg.Plan.History})
}

// remembered is the history, and what the next leader would take of it into its memory.
func remembered(ctx context.Context, kept *store.Store, in *input.Inputs, progress io.Writer) store.History {
	known, history, err := readHistory(ctx, kept)
	if err != nil {
		say.To(progress, "note: what the leader remembers is not known whole, moves that were made already may not be counted: %v\n", err)
	}
	in.Memory = known
	return history
}

// readHistory is what the next leader would begin with: votes, last good values, hold-offs and all, up to five minutes
// old; nothing where no leader ever saved anything. And the plans that a person may go back to.
func readHistory(ctx context.Context, kept *store.Store) (memory.Memory, store.History, error) {
	h, _, err := kept.ReadHistory(ctx)
	if err != nil {
		return memory.Memory{}, store.History{}, err
	}
	known, problems := memory.Of(h.Parts)
	return known, h, errors.Join(problems...)
}

// takeIn takes over what the plan ConfigMap says, judged by the history as the leader judges it. The planner is who
// wrote the plan.
func takeIn(in *input.Inputs, snapshot store.Snapshot, history store.History) {
	archive.TakeIn(in, snapshot, history.LastPlan(), history.Plans)
	switch {
	case in.InForce != nil:
		in.PlannerUser = in.InForce.PlannerUser
	case in.Last != nil:
		in.PlannerUser = in.Last.PlannerUser
	}
}

// probedBy is whether the webhooks hold the plan, as the leader says that it found them last; nil where it does not
// say, or has said nothing for long.
func probedBy(ctx context.Context, kept *store.Store, now time.Time, progress io.Writer) (*bool, []string) {
	said, err := kept.ReadStatus(ctx)
	if err != nil {
		say.To(progress, "note: whether the webhooks hold the plan is not known: %v\n", err)
	}
	if err != nil || said == nil {
		return nil, nil
	}
	age := say.Span(now.Sub(said.LookedAt))
	if said.Ahead(now) {
		say.To(progress, "note: whether the webhooks hold the plan is not known: the leader's clock is %s ahead of this machine's, "+
			"so that nobody can tell how old what it said is\n", say.Span(said.LookedAt.Sub(now)))
		return nil, nil
	}
	if said.Old(now) {
		say.To(progress, "note: whether the webhooks hold the plan is not known: the leader looked last %s ago, and what it said is old\n", age)
		return nil, nil
	}
	say.To(progress, "by what the leader said %s ago of whether the webhooks hold the plan\n", age)
	at := slices.IndexFunc(said.Conditions, func(c status.Condition) bool { return c.Type == status.Enforced })
	if at < 0 {
		return nil, nil
	}
	switch c := said.Conditions[at]; c.Reason {
	case status.Held:
		holds := true
		return &holds, nil
	case status.NotHeld:
		holds := false
		return &holds, []string{c.Message}
	}
	return nil, nil
}

// fromPlanner is what a planner that runs with poll.pods made of its looks at the pods. A command that looks once has
// no rates, nor is it likely to reach the pods at all.
func fromPlanner(ctx context.Context, c client.Client, cfg config.PlannerConfig, in input.Inputs, progress io.Writer) ([]poll.Fetched, error) {
	h, _, err := keptBy(c, cfg).ReadHistory(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading what the planner saw of the pods: %w", err)
	}
	part, kept := h.Parts[pods.HistoryPart]
	if !kept {
		return nil, fmt.Errorf("poll.pods: there is no Prometheus to ask, and ConfigMap %q in %q has nothing yet that a planner saw of the pods: "+
			"let it run for a quarter of an hour, name a Prometheus by --prometheus, or run saved inputs by --inputs",
			cfg.Plan.History, cfg.Target.Namespace)
	}
	fleet := discover.All(in.Discovered, in.Now)
	fetched, last, err := pods.OfSaved(part, fleet)
	if err != nil {
		return nil, fmt.Errorf("reading what the planner saw of the pods, in ConfigMap %q in %q: %w", cfg.Plan.History,
			cfg.Target.Namespace, err)
	}
	say.To(progress, "by what the planner saw of the pods until %s\n", last.UTC().Format(time.RFC3339))
	return fetched, nil
}

// unasked is why no pod is asked: a person's machine reaches none, and Prometheus says what each showed.
type unasked struct{}

func (unasked) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("pods are not asked from here")
}

// lookAtPods is what the application-controllers' pods are, and by Prometheus what each owns, as a leader would see it.
// Whoever may not list pods plans without, as before there is a leader.
func lookAtPods(ctx context.Context, c client.Client, prometheus poll.Fetcher, in input.Inputs, progress io.Writer) input.Observed {
	fleet := discover.All(in.Discovered, in.Now)
	looks := gather.Observer{Reader: c, Clock: clock.RealClock{},
		Scrape: scrape.NewScraper(scrape.Options{Client: &http.Client{Transport: unasked{}}})}
	seen, _ := looks.Observe(ctx, prometheus, in.Workload, fleet)
	if len(seen.Trouble) > 0 {
		say.To(progress, "note: not all that a leader sees of the pods is known: %s\n", say.Listed(seen.Trouble))
		seen.Trouble = nil
	}
	if !seen.Known {
		return input.Observed{}
	}
	return seen
}
