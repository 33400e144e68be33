package apiserver

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Restorable is one of both whose etcd can be copied and put back, as those do who restore a backup: the API server is
// away meanwhile, and comes back on the same port.
type Restorable struct {
	Config *rest.Config

	env    *envtest.Environment
	backup string
}

// StartRestorable starts them until the test ends.
func StartRestorable(t testing.TB) *Restorable {
	t.Helper()
	env, err := newEnvironment(t)
	if err != nil {
		t.Fatal(err)
	}
	// In folders of the test's, which stay when they stop.
	env.ControlPlane.Etcd = &envtest.Etcd{DataDir: filepath.Join(t.TempDir(), "etcd")}
	server := env.ControlPlane.GetAPIServer()
	server.CertDir = t.TempDir()
	server.Configure().Set("request-timeout", "5s") // for so long it waits for the watches, too, before it ends
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	return &Restorable{Config: config, env: env, backup: filepath.Join(t.TempDir(), "backup")}
}

// Backup keeps what etcd holds now.
func (r *Restorable) Backup(t testing.TB) {
	t.Helper()
	r.whileAway(t, func(data string) error { return os.CopyFS(r.backup, os.DirFS(data)) })
}

// Restore has etcd hold what it held at the backup, at the versions of then.
func (r *Restorable) Restore(t testing.TB) {
	t.Helper()
	r.whileAway(t, func(data string) error {
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		return os.Rename(r.backup, data)
	})
}

func (r *Restorable) whileAway(t testing.TB, do func(data string) error) {
	t.Helper()
	server, etcd := r.env.ControlPlane.GetAPIServer(), r.env.ControlPlane.Etcd
	for _, step := range []func() error{server.Stop, etcd.Stop, func() error { return do(etcd.DataDir) }, etcd.Start, server.Start} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}
