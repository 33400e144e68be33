// Package apiserver starts a real kube-apiserver with its etcd, and nothing else, for tests of what one client does to
// it. Package plane is the whole control plane.
package apiserver

import (
	"io"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ballast/e2e/plane"
)

// Start starts them until the test ends, on the binaries that the plane builds once. The client that comes of the
// configuration is not slowed down.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	binaries, err := plane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{BinaryAssetsDirectory: binaries.Dir}
	env.ControlPlane.GetAPIServer().Out, env.ControlPlane.GetAPIServer().Err = io.Discard, io.Discard
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS, config.Burst = 1000, 2000
	return config
}
