package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"ballast/e2e/demo/audit"
	"ballast/e2e/demo/live"
	"ballast/e2e/demo/screen"
	"ballast/e2e/demo/stage"
)

// story is the chapters, on one stage.
type story struct {
	*stage.Stage
	second live.Live // the control plane of the last steps
	began  time.Time
}

// step is a chapter: it says what happens, does it as a person would, and checks what it said.
type step struct {
	title string
	run   func(context.Context) error
}

func (s *story) steps() []step {
	return []step{
		{"A fleet", s.aFleet},
		{"Before, and what ballast makes of it", s.takesHold},
		{"People edit by hand", s.handEdits},
		{"A person pins a cluster", s.pin},
		{"Clusters are added without a shard", s.newClusters},
		{"The planner's leader is killed", s.leaderKilled},
		{"The API server's audit log: who tried what, and what was enforced",
			func(ctx context.Context) error { return audit.Read(ctx, s.Stage) }},
		{"A replica more, live, with Argo CD's own application-controllers", s.second.Rollout},
		{"A replica grows, in place", s.second.Resize},
	}
}

// tell runs the steps in turn and stops at the first that does not do what it says.
func (s *story) tell(ctx context.Context) error {
	s.Out.Print(s.Out.Paint(screen.Bold, "ballast: keeping an Argo CD fleet level, on a real Kubernetes control plane"))
	if err := s.Build(ctx); err != nil {
		return fmt.Errorf("✗ Building: %w", err)
	}
	s.began = time.Now()
	if err := s.Start(ctx); err != nil {
		return fmt.Errorf("✗ Starting: %w", err)
	}
	steps := s.steps()
	for i, step := range steps {
		s.Out.Heading(fmt.Sprintf("%d/%d  %s", i+1, len(steps), step.title))
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("✗ Step %d (%s) did not do what it says:\n  %w", i+1, step.title, err)
		}
	}
	s.Out.Print("", s.Out.Paint(screen.Green, fmt.Sprintf("%d checks passed in %.0f s.", s.Checks,
		time.Since(s.began).Seconds())))
	return nil
}

// stay leaves everything up until the context ends.
func (s *story) stay(ctx context.Context) {
	s.Out.Heading("Everything stays up")
	s.Out.Say("export KUBECONFIG=%s", s.Site.Plane.KubeconfigPath())
	s.Out.Say("export PATH=%s:%s:$PATH", s.Dir, s.Binaries.Dir)
	s.Out.Say("kubectl -n argocd get secrets,statefulsets,pods,configmaps; ballast status")
	s.Out.Print("")
	s.Out.Table([][]string{
		{"API server", s.Site.Plane.URL()},
		{"Prometheus", s.Site.Prometheus},
		{"alice's kubeconfig", s.Alice},
		{"audit log", s.Site.Plane.AuditLogPath()},
		{"logs", s.Dir},
	})
	s.Out.Print("", fmt.Sprintf("  Ctrl-C stops it, or: kill %d", os.Getpid()))
	<-ctx.Done()
	s.Out.Print("")
}
