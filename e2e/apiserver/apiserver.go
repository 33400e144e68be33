// Package apiserver starts a real kube-apiserver with its etcd, and nothing else, for tests of what one client does to
// it. Package plane is the whole control plane.
package apiserver

import (
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ballast/e2e/assets"
)

// Start starts them until the test ends, on the binaries that the plane builds once. The client that comes of the
// configuration is not slowed down.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	var s Shared
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s.Start(t)
}

// Shared is one of both for all tests of a package that keep to namespaces of their own: a start takes seconds.
type Shared struct {
	mu     sync.Mutex
	env    *envtest.Environment // nil: not started
	config *rest.Config
}

// Start starts them for the first test that asks. TestMain stops them.
func (s *Shared) Start(t testing.TB) *rest.Config {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.env == nil {
		env, err := newEnvironment(t)
		if err != nil {
			t.Fatal(err)
		}
		if s.config, err = env.Start(); err != nil {
			t.Fatal(err)
		}
		s.config.QPS, s.config.Burst = 1000, 2000
		s.env = env
	}
	return rest.CopyConfig(s.config)
}

// newEnvironment is of the binaries that the plane builds once.
func newEnvironment(t testing.TB) (*envtest.Environment, error) {
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{BinaryAssetsDirectory: binaries.Dir,
		ControlPlaneStartTimeout: 5 * time.Minute, ControlPlaneStopTimeout: 2 * time.Minute}
	env.ControlPlane.GetAPIServer().Out, env.ControlPlane.GetAPIServer().Err = io.Discard, io.Discard
	return env, nil
}

// Stop stops them if they were started.
func (s *Shared) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.env == nil {
		return nil
	}
	return s.env.Stop()
}
