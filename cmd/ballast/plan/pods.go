package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/controller/gather"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/poll"
	"ballast/planner/poll/pods"
)

// fromPlanner is what a planner that runs with poll.pods made of its looks at the pods. A command that looks once has no
// rates, nor is it likely to reach the pods at all.
func fromPlanner(ctx context.Context, c client.Client, cfg config.PlannerConfig, in input.Inputs, progress io.Writer) ([]poll.Fetched, error) {
	h, _, err := keptBy(c, cfg).ReadHistory(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading what the planner saw of the pods: %w", err)
	}
	part, kept := h.Parts[pods.HistoryPart]
	if !kept {
		return nil, fmt.Errorf("poll.pods: there is no Prometheus to ask, and ConfigMap %q in %q has nothing yet that a planner saw of the pods: "+
			"let it run for a quarter of an hour, name a Prometheus by --prometheus, or run saved inputs by --inputs", cfg.Plan.History, cfg.Target.Namespace)
	}
	fleet, _, _ := discover.Discover(in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, in.Now) // nothing known, so nothing is lost
	fetched, last, err := pods.OfSaved(part, fleet)
	if err != nil {
		return nil, fmt.Errorf("reading what the planner saw of the pods, in ConfigMap %q in %q: %w", cfg.Plan.History, cfg.Target.Namespace, err)
	}
	say.To(progress, "by what the planner saw of the pods until %s\n", last.UTC().Format(time.RFC3339))
	return fetched, nil
}

// unasked is why no pod is asked: a person's machine reaches none, and Prometheus says what each showed.
type unasked struct{}

func (unasked) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("pods are not asked from here")
}

// lookAtPods is what the application-controllers' pods are, and by Prometheus what each owns, as a leader would see it. Whoever may not
// list pods plans without, as before there is a leader.
func lookAtPods(ctx context.Context, c client.Client, prometheus wiring.Fetcher, in input.Inputs, progress io.Writer) input.Observed {
	fleet, _, _ := discover.Discover(in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, in.Now) // nothing known, so nothing is lost
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
