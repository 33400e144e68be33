package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ballast/e2e/demo/stage"
	"ballast/e2e/site"
)

// quiet waits until nothing would change by itself for a while, whoever leads: an election takes two votes, so a plan
// that has stood for three cycles stands until something else is measured. New clusters weigh more with each step of
// five minutes that Prometheus's subqueries take: the last one must have been measured, and the next one be far enough.
func (s *story) quiet(ctx context.Context) error {
	const step, needed, calm = 5 * time.Minute, time.Minute, 30 * time.Second
	var version string
	var since time.Time
	return s.Out.Busy("the new clusters are measured, and nothing is left to level out", func() error {
		limited, cancel := context.WithTimeout(ctx, 4*time.Minute)
		defer cancel()
		return site.Poll(limited, func(ctx context.Context) error {
			p, err := s.Plan(ctx)
			if err != nil {
				return err
			}
			now := time.Now()
			if p.ResourceVersion != version {
				version, since = p.ResourceVersion, now
			}
			if err := s.Site.Settled(ctx, since); err != nil {
				return err
			}
			now = time.Now() // a busy machine takes long to say so
			passed := now.Sub(now.Truncate(step))
			if now.Sub(since) < calm || passed < calm || step-passed < needed {
				return fmt.Errorf("the plan has stood for %s, and the measurements took their last step %s ago",
					now.Sub(since), passed)
			}
			return nil
		})
	})
}

// leaderKilled is step 6.
func (s *story) leaderKilled(ctx context.Context) error {
	if err := s.quiet(ctx); err != nil {
		return err
	}
	pod, err := s.Site.Leader(ctx)
	if err != nil {
		return err
	}
	if pod == "" {
		return errors.New("no planner leads")
	}
	holder, err := s.Site.LeaseHolder(ctx)
	if err != nil {
		return err
	}
	before, err := s.Versions(ctx)
	if err != nil {
		return err
	}
	p, err := s.Plan(ctx)
	if err != nil {
		return err
	}
	s.Out.Command(fmt.Sprintf("kill -9 %d   # %s, which leads, and again as often as it restarts",
		s.Site.Plane.PodPID(s.Site.Fleet.Namespace, pod), pod))
	var leader string
	if err := s.Out.Busy("the other planner waits for the lease to run out", func() error {
		limited, cancel := context.WithTimeout(ctx, 60*time.Second)
		defer cancel()
		leader, err = s.Site.Crash(limited, pod)
		return err
	}); err != nil {
		return err
	}
	s.Passed("%s took over, from the ConfigMap alone", leader)
	if err := s.Holds(ctx, 10*time.Second, "the lease has another holder", func(ctx context.Context) error {
		now, err := s.Site.LeaseHolder(ctx)
		if err == nil && now == holder {
			err = fmt.Errorf("the lease is held by %q, want another holder", now)
		}
		return err
	}); err != nil {
		return err
	}
	// Within the first cycle of the new leader anything that it sees differently would move.
	if err := s.Out.Busy("the new leader's first cycles", func() error { return pause(ctx, 12*time.Second) }); err != nil {
		return err
	}
	after, err := s.Plan(ctx)
	if err != nil {
		return err
	}
	if err := stage.Equal("the plan's digest", p.Annotation("digest"), after.Annotation("digest")); err != nil {
		return err
	}
	s.Passed("the plan is the same, byte for byte")
	if err := s.Untouched(ctx, "nothing moved", before); err != nil {
		return err
	}
	return s.status(ctx)
}

// status is how a person asks how things are.
func (s *story) status(ctx context.Context) error {
	s.Out.Command("ballast status")
	var stdout, stderr string
	// What is measured meanwhile may be levelled out just now: a busy machine takes longer than quiet waits for.
	err := s.Holds(ctx, 60*time.Second, "nothing differs from the plan", func(ctx context.Context) (err error) {
		stdout, stderr, err = s.Site.RunBallast(ctx, s.Bob, "status")
		if agrees := "Nothing differs from the plan."; err == nil && !strings.Contains(stdout, agrees) {
			err = fmt.Errorf("ballast status does not say %q", agrees)
		}
		return err
	})
	s.Out.Seen(stderr + stdout)
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
