package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"ballast/e2e/assets"
	"ballast/e2e/demo/screen"
	"ballast/e2e/fleet"
	"ballast/e2e/gaps"
	"ballast/e2e/site"
)

// story is what the steps share.
type story struct {
	out  *screen.Screen
	dir  string
	seed uint64

	bin      string // the control plane's binaries, kubectl among them
	binaries assets.Binaries
	site     *site.Site
	second   *gaps.Site // the control plane of the last step
	alice    string     // her kubeconfig: she works in Argo CD's namespace
	bob      string     // his: he may only read there
	checks   int
	began    time.Time
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
		{"The API server's audit log: who tried what, and what was enforced", s.audit},
		{"A replica more, live, with Argo CD's own application-controllers", s.live},
		{"A replica grows, in place", s.resize},
	}
}

// tell runs the steps in turn and stops at the first that does not do what it says.
func (s *story) tell(ctx context.Context) error {
	s.out.Print(s.out.Paint(screen.Bold, "ballast: keeping an Argo CD fleet level, on a real Kubernetes control plane"))
	binaries, err := s.build(ctx)
	if err != nil {
		return fmt.Errorf("✗ Building: %w", err)
	}
	s.binaries, s.bin, s.began = binaries, binaries.Dir, time.Now()
	if err := s.start(ctx, binaries); err != nil {
		return fmt.Errorf("✗ Starting: %w", err)
	}
	steps := s.steps()
	for i, step := range steps {
		s.out.Heading(fmt.Sprintf("%d/%d  %s", i+1, len(steps), step.title))
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("✗ Step %d (%s) did not do what it says:\n  %w", i+1, step.title, err)
		}
	}
	s.out.Print("", s.out.Paint(screen.Green, fmt.Sprintf("%d checks passed in %.0f s.", s.checks, time.Since(s.began).Seconds())))
	return nil
}

// build makes the control plane's binaries, once a machine, and ballast.
func (s *story) build(ctx context.Context) (binaries assets.Binaries, err error) {
	s.out.Heading("What it needs")
	now := &lastLine{text: "looking for a control plane in the build cache"}
	stop := s.out.Ticking(now.String)
	binaries, err = assets.Build(ctx, now)
	stop(err == nil)
	if err != nil {
		return binaries, err
	}
	return binaries, s.out.Busy("ballast, from this checkout", func() error { return site.BuildBallast(ctx, s.ballast(), false) })
}

func (s *story) ballast() string { return filepath.Join(s.dir, "ballast") }

// lastLine keeps the last line that was written, for a display of what is going on.
type lastLine struct {
	mu   sync.Mutex
	text string
}

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lines := strings.Split(strings.TrimSpace(string(p)), "\n"); lines[len(lines)-1] != "" {
		l.text = lines[len(lines)-1]
	}
	return len(p), nil
}

func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

// start brings up the control plane and what ballast expects to find, but ballast.
func (s *story) start(ctx context.Context, binaries assets.Binaries) error {
	log, err := os.Create(s.dir + "/plane.log")
	if err != nil {
		return fmt.Errorf("making the plane's log: %w", err)
	}
	err = s.out.Busy("etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok", func() error {
		// The site has to outlive an interrupted step, so that it can be stopped in order.
		s.site, err = site.Start(context.WithoutCancel(ctx), site.Options{Binaries: binaries, Ballast: s.ballast(), Fleet: fleet.Options{Seed: s.seed}, Dir: s.dir, Log: log})
		return err
	})
	if err != nil {
		return err
	}
	for _, part := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"cert-manager's controllers", s.site.Plane.StartCertManager},
		{"Argo CD: 24 cluster Secrets, the application-controller's StatefulSet", func(ctx context.Context) error { return s.site.InstallArgoCD(ctx, nil) }},
		{"Prometheus, with three and a half hours of history", s.site.Monitor},
		{"alice, of the platform team, and bob, who may only read", s.people},
	} {
		if err := s.out.Busy(part.what, func() error { return part.do(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) people(ctx context.Context) error {
	var err, also error
	s.alice, err = s.site.Person(ctx, "alice")
	s.bob, also = s.site.Reader(ctx, "bob")
	return errors.Join(err, also)
}

// passed counts a check that held and says so.
func (s *story) passed(what string, args ...any) {
	s.checks++
	s.out.Check(fmt.Sprintf(what, args...))
}

// atOnce checks what has to be so already.
const atOnce = 0

// holds waits until a check has no error, and says so. The last error, with what was expected and what was found, is
// what the step fails with.
func (s *story) holds(ctx context.Context, within time.Duration, what string, check func(context.Context) error) error {
	err := check(ctx)
	if err != nil && within > atOnce {
		limited, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		stop := s.out.Ticking(func() string { return what })
		err = site.Poll(limited, check)
		stop(false)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.passed("%s", what)
	return nil
}

// kubectl shows a command, runs it as alice and shows what she sees. It gives the warnings among that.
func (s *story) kubectl(ctx context.Context, args ...string) (warnings []string, err error) {
	args = append([]string{"-n", s.site.Fleet.Namespace}, args...)
	s.out.Command("kubectl " + quote(args))
	stdout, stderr, err := s.site.Plane.Kubectl(ctx, s.alice, args...)
	s.out.Seen(stderr)
	s.out.Seen(stdout)
	for line := range strings.Lines(stderr) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "Warning: "); ok {
			warnings = append(warnings, text)
		}
	}
	return warnings, err
}

// file writes manifests where alice's kubectl finds them.
func (s *story) file(name string, objects ...runtime.Object) error {
	var documents []byte
	for _, o := range objects {
		document, err := yaml.Marshal(o)
		if err != nil {
			return fmt.Errorf("marshalling an object for %q: %w", name, err)
		}
		documents = append(append(documents, "---\n"...), document...)
	}
	if err := os.WriteFile(filepath.Join(s.site.Plane.Dir(), name), documents, 0o600); err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return nil
}

// Quote writes arguments as they are typed.
func quote(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = a
		if strings.ContainsAny(a, " {}\"\n$*") {
			quoted[i] = "'" + strings.ReplaceAll(a, "\n", `\n`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// stay leaves everything up until the context ends.
func (s *story) stay(ctx context.Context) {
	s.out.Heading("Everything stays up")
	s.out.Say("export KUBECONFIG=%s", s.site.Plane.KubeconfigPath())
	s.out.Say("export PATH=%s:%s:$PATH", s.dir, s.bin)
	s.out.Say("kubectl -n argocd get secrets,statefulsets,pods,configmaps; ballast status")
	s.out.Print("")
	s.out.Table([][]string{
		{"API server", s.site.Plane.URL()},
		{"Prometheus", s.site.Prometheus},
		{"alice's kubeconfig", s.alice},
		{"audit log", s.site.Plane.AuditLogPath()},
		{"logs", s.dir},
	})
	s.out.Print("", fmt.Sprintf("  Ctrl-C stops it, or: kill %d", os.Getpid()))
	<-ctx.Done()
	s.out.Print("")
}
