// Package stage is what the chapters of `make demo` play on: a control plane, an Argo CD, two people, and what the
// audience sees.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"ballast/e2e/assets"
	"ballast/e2e/demo/screen"
	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// Stage is what the chapters share.
type Stage struct {
	Out  *screen.Screen
	Dir  string
	Seed uint64

	Binaries assets.Binaries // the control plane's, kubectl among them
	Site     *site.Site
	Alice    string // her kubeconfig: she works in Argo CD's namespace
	Bob      string // his: he may only read there
	Checks   int
}

// Build makes the control plane's binaries, once a machine, and ballast.
func (s *Stage) Build(ctx context.Context) error {
	s.Out.Heading("What it needs")
	err := s.Building("looking for a control plane in the build cache", func(says io.Writer) (err error) {
		s.Binaries, err = assets.Build(ctx, says)
		return err
	})
	if err != nil {
		return err
	}
	return s.Out.Busy("ballast, from this checkout", func() error { return site.BuildBallast(ctx, s.Ballast(), false) })
}

// Building does what takes a while, and shows the last line that it says meanwhile.
func (s *Stage) Building(what string, build func(says io.Writer) error) error {
	now := &lastLine{text: what}
	stop := s.Out.Ticking(now.String)
	err := build(now)
	stop(err == nil)
	return err
}

// Ballast is the binary's path.
func (s *Stage) Ballast() string { return filepath.Join(s.Dir, "ballast") }

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

// Start brings up the control plane and what ballast expects to find, but ballast.
func (s *Stage) Start(ctx context.Context) error {
	log, err := os.Create(s.Dir + "/plane.log")
	if err != nil {
		return fmt.Errorf("making the plane's log: %w", err)
	}
	err = s.Out.Busy("etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok", func() error {
		// The site has to outlive an interrupted step, so that it can be stopped in order.
		s.Site, err = site.Start(context.WithoutCancel(ctx), site.Options{Binaries: s.Binaries, Ballast: s.Ballast(),
			Fleet: fleet.Options{Seed: s.Seed}, Dir: s.Dir, Log: log})
		return err
	})
	if err != nil {
		return err
	}
	for _, part := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"cert-manager's controllers", s.Site.Plane.StartCertManager},
		{"Argo CD: 24 cluster Secrets, the application-controller's StatefulSet", func(ctx context.Context) error { return s.Site.InstallArgoCD(ctx, nil) }},
		{"Prometheus, with three and a half hours of history", s.Site.Monitor},
		{"alice, of the platform team, and bob, who may only read", s.people},
	} {
		if err := s.Out.Busy(part.what, func() error { return part.do(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) people(ctx context.Context) error {
	var err, also error
	s.Alice, err = s.Site.Person(ctx, "alice")
	s.Bob, also = s.Site.Reader(ctx, "bob")
	return errors.Join(err, also)
}

// Passed counts a check that held and says so.
func (s *Stage) Passed(what string, args ...any) {
	s.Checks++
	s.Out.Check(fmt.Sprintf(what, args...))
}

// AtOnce checks what has to be so already.
const AtOnce = 0

// Holds waits until a check has no error, and says so. The last error, with what was expected and what was found, is
// what the step fails with.
func (s *Stage) Holds(ctx context.Context, within time.Duration, what string, check func(context.Context) error) error {
	err := check(ctx)
	if err != nil && within > AtOnce {
		limited, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		stop := s.Out.Ticking(func() string { return what })
		err = site.Poll(limited, check)
		stop(false)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.Passed("%s", what)
	return nil
}

// Kubectl shows a command, runs it as alice and shows what she sees. It gives the warnings among that.
func (s *Stage) Kubectl(ctx context.Context, args ...string) (warnings []string, err error) {
	args = append([]string{"-n", s.Site.Fleet.Namespace}, args...)
	s.Out.Command("kubectl " + Quote(args))
	stdout, stderr, err := s.Site.Plane.Kubectl(ctx, s.Alice, args...)
	s.Out.Seen(stderr)
	s.Out.Seen(stdout)
	for line := range strings.Lines(stderr) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "Warning: "); ok {
			warnings = append(warnings, text)
		}
	}
	return warnings, err
}

// File writes manifests where alice's kubectl finds them.
func (s *Stage) File(name string, objects ...runtime.Object) error {
	var documents []byte
	for _, o := range objects {
		document, err := yaml.Marshal(o)
		if err != nil {
			return fmt.Errorf("marshalling an object for %q: %w", name, err)
		}
		documents = append(append(documents, "---\n"...), document...)
	}
	if err := os.WriteFile(filepath.Join(s.Site.Plane.Dir(), name), documents, 0o600); err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return nil
}

// Quote writes arguments as they are typed.
func Quote(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = a
		if strings.ContainsAny(a, " {}\"\n$*") {
			quoted[i] = "'" + strings.ReplaceAll(a, "\n", `\n`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// Agrees compares everything that the plan holds with what stands.
func (s *Stage) Agrees(ctx context.Context, p *site.Plan) error {
	shards, err := s.Site.Shards(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(shards)) {
		if want := strconv.Itoa(p.Clusters[name].Replica); shards[name] != want {
			return fmt.Errorf("secret %q has shard %q, want %q", name, shards[name], want)
		}
	}
	sts, err := s.Site.StatefulSet(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		Equal("spec.replicas", p.Replicas, int(*sts.Spec.Replicas)),
		Equal(fleet.ReplicasEnv, strconv.Itoa(p.ControllerReplicas), site.EnvReplicas(sts)))
}

// Plan is the plan ConfigMap, which has to be there.
func (s *Stage) Plan(ctx context.Context) (*site.Plan, error) {
	p, err := s.Site.Plan(ctx)
	if err == nil && p == nil {
		err = errors.New("there is no plan ConfigMap yet")
	}
	return p, err
}

// Equal is an error unless got is what was wanted.
func Equal[T comparable](what string, want, got T) error {
	if want != got {
		return fmt.Errorf("%s: %v, want %v", what, got, want)
	}
	return nil
}
