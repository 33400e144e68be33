package plane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
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
	etcdBinary              = "etcd"
	apiserverBinary         = "kube-apiserver"
	kubectlBinary           = "kubectl"
	controllerManagerBinary = "kube-controller-manager"
	schedulerBinary         = "kube-scheduler"
	kwokBinary              = "kwok"
	certManagerBinary       = "cert-manager"
	prometheusBinary        = "prometheus"
	promtoolBinary          = "promtool"
)

// component is one binary: which nested module of e2e/ builds it, and how.
type component struct {
	name   string
	module string
	pkg    string
	flags  []string
}

// components stand longest build first: the first ones fill the build cache
// that the later ones draw on, and a wait is worst at the end.
var components = []component{
	{apiserverBinary, "kube", "k8s.io/kubernetes/cmd/kube-apiserver", kubernetesFlags()},
	{prometheusBinary, "prometheus", "github.com/prometheus/prometheus/cmd/prometheus", prometheusFlags()},
	{controllerManagerBinary, "kube", "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesFlags()},
	{kubectlBinary, "kube", "k8s.io/kubernetes/cmd/kubectl", kubernetesFlags()},
	{certManagerBinary, "tools", "./cert-manager", plainFlags()},
	{kwokBinary, "tools", "sigs.k8s.io/kwok/cmd/kwok", plainFlags()},
	{etcdBinary, "kube", "go.etcd.io/etcd/server/v3", plainFlags()},
	{schedulerBinary, "kube", "k8s.io/kubernetes/cmd/kube-scheduler", kubernetesFlags()},
	{promtoolBinary, "prometheus", "github.com/prometheus/prometheus/cmd/promtool", prometheusFlags()},
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
	root, err := repoRoot()
	if err != nil {
		return Binaries{}, err
	}
	cache, err := cacheDir()
	if err != nil {
		return Binaries{}, err
	}
	key, err := sourceHash(filepath.Join(root, "e2e"))
	if err != nil {
		return Binaries{}, err
	}
	final := filepath.Join(cache, key)
	b := Binaries{Dir: filepath.Join(final, "bin")}
	if exists(final) {
		return b, nil
	}
	unlock, err := lock(ctx, final+".lock", progress)
	if err != nil {
		return Binaries{}, err
	}
	defer unlock()
	if exists(final) {
		return b, nil
	}
	return b, buildAll(ctx, filepath.Join(root, "e2e"), final, progress)
}

// buildAll builds into a folder beside final and renames it at the end.
func buildAll(ctx context.Context, e2e, final string, progress io.Writer) error {
	dir, err := os.MkdirTemp(filepath.Dir(final), "building-")
	if err != nil {
		return fmt.Errorf("making a build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // after the rename there is nothing
	for i, c := range components {
		fmt.Fprintf(progress, "building %s (%d of %d)\n", c.name, i+1, len(components))
		start := time.Now()
		if err := buildOne(ctx, e2e, filepath.Join(dir, "bin"), c); err != nil {
			return err
		}
		fmt.Fprintf(progress, "built %s in %.1f s\n", c.name, time.Since(start).Seconds())
	}
	if err := copyCRDs(ctx, filepath.Join(e2e, "tools"), filepath.Join(dir, "crds")); err != nil {
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

// copyCRDs takes the CRDs out of the very module version that the controllers
// are built from.
func copyCRDs(ctx context.Context, module, to string) error {
	out, err := goCommand(ctx, module, "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	if err != nil {
		return fmt.Errorf("finding cert-manager's module: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "deploy", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("finding cert-manager's CRDs: %w", errors.Join(fs.ErrNotExist, err))
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("making the CRD folder: %w", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(f)), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("copying CRD %q: %w", filepath.Base(f), err)
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
		return nil, fmt.Errorf("running go %s: %w: %s", args[0], err, tail(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// lock takes the file's lock, waiting while another process builds. The lock
// ends with its holder, so a killed build blocks nobody.
func lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the cache folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking the build: %w", err), f.Close())
		}
		if !told {
			fmt.Fprintln(progress, "waiting for another process that builds the same binaries")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for the build lock: %w", ctx.Err()), f.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// sourceHash names a build by everything that decides its outcome.
func sourceHash(e2e string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, buildEnv)
	for _, c := range components {
		fmt.Fprintf(h, "%q\n", []string{c.name, c.module, c.pkg, strings.Join(c.flags, "\n")})
	}
	for _, module := range []string{"kube", "prometheus", "tools"} {
		err := filepath.WalkDir(filepath.Join(e2e, module), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !isSource(d.Name()) {
				return err
			}
			data, err := os.ReadFile(path)
			fmt.Fprintf(h, "%s/%s %d\n%s", module, d.Name(), len(data), data)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("hashing the sources of %q: %w", module, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func isSource(name string) bool {
	return name == "go.mod" || name == "go.sum" || filepath.Ext(name) == ".go"
}

// repoRoot walks up from the working folder, which for a test is its package,
// to the go.mod of this module, past those of the nested ones.
func repoRoot() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working folder: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte("module ballast\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding ballast's go.mod above %q: %w", wd, fs.ErrNotExist)
		}
	}
}

func cacheDir() (string, error) {
	if dir := os.Getenv("BALLAST_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	return filepath.Join(dir, "ballast"), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// tail is the end of a text, where commands say why they failed.
func tail(s string) string {
	const limit = 2000
	s = strings.TrimSpace(s)
	if len(s) <= limit {
		return s
	}
	return "..." + s[len(s)-limit:]
}
