// Package assets builds the binaries that tests and the demo run on, once, into a
// cache: the control plane, Argo CD's part, and Helm.
package assets

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ballast/e2e/plane/process"
)

// kubernetesVersion is what the Kubernetes commands say they are. It must name
// the release of e2e/kube/go.mod: kubectl refuses to parse the version of an
// unstamped build. The date is that release's own, so that a build is a
// function of its sources.
const (
	kubernetesVersion = "v1.36.1"
	kubernetesDate    = "2026-05-12T09:51:33Z"
)

// Names of the binaries in a Binaries folder. The first three are the ones
// that controller-runtime's envtest looks for in KUBEBUILDER_ASSETS.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	Kubectl           = "kubectl"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	CertManager       = "cert-manager"
	Prometheus        = "prometheus"
	Promtool          = "promtool"
)

// component is one binary: which nested module of e2e/ builds it, and how.
type component struct {
	name   string
	module string
	pkg    string
	flags  []string
}

// set is what is built together, into one folder of the cache.
type set struct {
	// components stand longest build first: the first ones fill the build cache
	// that the later ones draw on, and a wait is worst at the end.
	components []component
	// modules are the nested modules whose sources decide the outcome.
	modules []string
	// files copies what is needed beside the binaries out of the modules that
	// they are built from.
	files func(ctx context.Context, e2e, dir string) error
	// takes is more than a first build takes on two cores.
	takes time.Duration
}

// planeSet is the control plane. What only some tests need is a set of its own:
// a change there builds nothing of this one anew.
var planeSet = set{components: components, modules: []string{"kube", "prometheus", "tools"}, files: copyCertManagerCRDs,
	takes: 15 * time.Minute}

var components = []component{
	{APIServer, "kube", "k8s.io/kubernetes/cmd/kube-apiserver", kubernetesFlags()},
	{Prometheus, "prometheus", "github.com/prometheus/prometheus/cmd/prometheus", prometheusFlags()},
	{ControllerManager, "kube", "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesFlags()},
	{Kubectl, "kube", "k8s.io/kubernetes/cmd/kubectl", kubernetesFlags()},
	{CertManager, "tools", "./cert-manager", plainFlags()},
	{Kwok, "tools", "sigs.k8s.io/kwok/cmd/kwok", plainFlags()},
	{Etcd, "kube", "go.etcd.io/etcd/server/v3", plainFlags()},
	{Scheduler, "kube", "k8s.io/kubernetes/cmd/kube-scheduler", kubernetesFlags()},
	{Promtool, "prometheus", "github.com/prometheus/prometheus/cmd/promtool", prometheusFlags()},
}

// buildEnv makes a build independent of the caller's settings: a workspace,
// cgo or extra flags would give other binaries under the same hash.
var buildEnv = []string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly -trimpath -buildvcs=false", "GOWORK=off"}

func plainFlags() []string { return []string{"-ldflags", "-s -w"} }

// prometheusFlags leave the cloud service discoveries out: they are two thirds
// of the build time, and file and static ones are all that a plane needs.
func prometheusFlags() []string { return append([]string{"-tags", "remove_all_sd"}, plainFlags()...) }

func kubernetesFlags() []string {
	var b strings.Builder
	b.WriteString("-s -w")
	stamps := [][2]string{
		{"gitVersion", kubernetesVersion}, {"gitCommit", kubernetesVersion}, {"gitTreeState", "clean"},
		{"gitMajor", "1"}, {"gitMinor", "36"}, {"buildDate", kubernetesDate},
	}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, s := range stamps {
			fmt.Fprintf(&b, " -X %s.%s=%s", pkg, s[0], s[1])
		}
	}
	return []string{"-ldflags", b.String()}
}

// Binaries is a complete set of the parts of a control plane on disk.
type Binaries struct {
	// Dir holds one executable a part, under the names that envtest expects of
	// KUBEBUILDER_ASSETS.
	Dir string
}

// Path is where the named binary stands.
func (b Binaries) Path(name string) string { return filepath.Join(b.Dir, name) }

// CRDs is the folder of cert-manager's CustomResourceDefinitions, copied from
// its module so that a start needs no go command.
func (b Binaries) CRDs() string { return filepath.Join(filepath.Dir(b.Dir), "crds") }

// Build makes every binary once and keeps them in the cache folder
// (BALLAST_CACHE, or ballast in the user's cache) under a hash of the nested
// modules, the Go version and the flags. Two builders wait for each other, and
// a folder appears under its name only when it is whole. The first build takes
// some 7 minutes on two cores, and a warm call milliseconds.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	dir, err := planeSet.build(ctx, progress)
	return Binaries{Dir: filepath.Join(dir, "bin")}, err
}

// enough refuses a build that a test's own end would cut off: by default go test ends a package after ten minutes.
func (s set) enough(timeout time.Duration) error {
	if timeout == 0 || timeout >= s.takes {
		return nil
	}
	return fmt.Errorf("the binaries that this test runs are not built yet, which takes up to %s once, and go test ends this package after %s: "+
		"run `make binaries` first, or go test -timeout 35m", s.takes, timeout)
}

// testTimeout is when go test ends this process; 0: never, or it is no test.
func testTimeout() time.Duration {
	if f := flag.Lookup("test.timeout"); f != nil {
		if timeout, ok := f.Value.(flag.Getter).Get().(time.Duration); ok {
			return timeout
		}
	}
	return 0
}

// build gives the set's folder, which has the binaries in bin.
func (s set) build(ctx context.Context, progress io.Writer) (string, error) {
	root, err := repoRoot()
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	key, err := s.sourceHash(filepath.Join(root, "e2e"))
	if err != nil {
		return "", err
	}
	final := filepath.Join(cache, key)
	if exists(final) {
		return final, nil
	}
	if err := s.enough(testTimeout()); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, final+".lock", progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(final) {
		return final, nil
	}
	return final, s.buildAll(ctx, filepath.Join(root, "e2e"), final, progress)
}

// buildAll builds into a folder beside final and renames it at the end.
func (s set) buildAll(ctx context.Context, e2e, final string, progress io.Writer) error {
	dir, err := os.MkdirTemp(filepath.Dir(final), "building-")
	if err != nil {
		return fmt.Errorf("making a build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // after the rename there is nothing
	for i, c := range s.components {
		fmt.Fprintf(progress, "building %s (%d of %d)\n", c.name, i+1, len(s.components))
		start := time.Now()
		if err := buildOne(ctx, e2e, filepath.Join(dir, "bin"), c); err != nil {
			return err
		}
		fmt.Fprintf(progress, "built %s in %.1f s\n", c.name, time.Since(start).Seconds())
	}
	if err := s.files(ctx, e2e, dir); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("opening the build folder to other users: %w", err)
	}
	if err := os.Rename(dir, final); err != nil {
		return fmt.Errorf("putting the finished build in its place: %w", err)
	}
	return nil
}

func buildOne(ctx context.Context, e2e, bin string, c component) error {
	args := append([]string{"build"}, c.flags...)
	args = append(args, "-o", filepath.Join(bin, c.name), c.pkg)
	if _, err := goCommand(ctx, filepath.Join(e2e, c.module), args...); err != nil {
		return fmt.Errorf("building %q: %w", c.name, err)
	}
	return nil
}

// copyCertManagerCRDs takes the CRDs out of the very module version that the
// controllers are built from.
func copyCertManagerCRDs(ctx context.Context, e2e, dir string) error {
	return copyModuleFiles(ctx, filepath.Join(e2e, "tools"), "github.com/cert-manager/cert-manager",
		filepath.Join(dir, "crds"), "deploy/crds/*.yaml")
}

// copyModuleFiles copies files of a dependency of the nested module into a
// folder, by patterns below the dependency's own.
func copyModuleFiles(ctx context.Context, module, dependency, to string, patterns ...string) error {
	out, err := goCommand(ctx, module, "list", "-m", "-f", "{{.Dir}}", dependency)
	if err != nil {
		return fmt.Errorf("finding the sources of %q: %w", dependency, err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("making the folder of files of %q: %w", dependency, err)
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), pattern))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("finding %q of %q: %w", pattern, dependency, errors.Join(fs.ErrNotExist, err))
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, filepath.Base(f)), data, 0o644)
			}
			if err != nil {
				return fmt.Errorf("copying %q of %q: %w", filepath.Base(f), dependency, err)
			}
		}
	}
	return nil
}

// goCommand answers what the command printed, and gives the end of its error
// output as the error. A cancelled build takes its compilers with it.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), buildEnv...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("running go %s: %w: %s", args[0], err, process.Tail(stderr.String()))
	}
	return stdout.Bytes(), nil
}
