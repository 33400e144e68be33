package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/version"
	"ballast/e2e/assets"
	"ballast/e2e/site"
)

func options(t *testing.T) Options {
	return Options{Checkout: "../..", Out: filepath.Join(t.TempDir(), "out"), Version: "v1.2.3", Commit: "abcdef0",
		Time: time.Date(2026, 11, 26, 5, 0, 0, 0, time.UTC), Image: "registry.example/ballast", URL: "https://example.com/v1.2.3/"}
}

// small are binaries that take no time to build: one of Go, for the SBOM, and words.
func small(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module small\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", "small", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	binary, err := os.ReadFile(filepath.Join(dir, "small"))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"linux/amd64": binary, "linux/arm64": []byte("linux arm64"), "darwin/amd64": []byte("darwin amd64"), "darwin/arm64": []byte("darwin arm64")}
}

// tree is every file below a folder, by name.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files, err := entries(root, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		got[f.name] = digest(f.data)
	}
	return got
}

func TestTheSameBinariesGiveTheSameBytes(t *testing.T) {
	binaries := small(t)
	one, two := options(t), options(t)
	for _, o := range []Options{one, two} {
		if err := Assemble(o, binaries); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(tree(t, one.Out), tree(t, two.Out)); diff != "" {
		t.Errorf("-once +twice:\n%s", diff)
	}
	var names []string
	entries, err := os.ReadDir(one.Out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{"SHA256SUMS", "ballast-1.2.3.tgz", "ballast-v1.2.3-darwin-amd64.tar.gz", "ballast-v1.2.3-darwin-arm64.tar.gz", "ballast-v1.2.3-image.tar",
		"ballast-v1.2.3-linux-amd64.tar.gz", "ballast-v1.2.3-linux-arm64.tar.gz", "ballast-v1.2.3.spdx.json", "image", "install-self-signed.yaml", "install-watch.yaml", "install.yaml", "krew.yaml"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--strict", "-c", "SHA256SUMS")
	check.Dir = one.Out
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != len(want)-2 {
		t.Errorf("%v\n%s", err, out)
	}
	theImageIsWhole(t, one)
	theKrewManifestIsTrue(t, one)
	theChartIsHelms(t, one)
	for _, name := range []string{"install.yaml", "install-self-signed.yaml", "install-watch.yaml"} {
		text, err := os.ReadFile(filepath.Join(one.Out, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "image: registry.example/ballast:v1.2.3\n") || strings.Contains(string(text), "ballast:dev") {
			t.Errorf("%s names another image", name)
		}
	}
}

// theImageIsWhole by go-containerregistry's own judgement, and of two architectures.
func theImageIsWhole(t *testing.T, o Options) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(filepath.Join(o.Out, "image"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	top, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	both, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := both.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range inner.Manifests {
		img, err := both.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		file, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join([]string{m.Platform.OS, m.Platform.Architecture, file.OS, file.Architecture, file.Config.User, strings.Join(file.Config.Entrypoint, " ")}, " "))
	}
	if diff := cmp.Diff([]string{"linux amd64 linux amd64 65532:65532 /ballast", "linux arm64 linux arm64 65532:65532 /ballast"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func theKrewManifestIsTrue(t *testing.T, o Options) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.Out, "krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Version     string `json:"version"`
			Short       string `json:"shortDescription"`
			Description string `json:"description"`
			Platforms   []struct {
				Selector struct {
					MatchLabels map[string]string `json:"matchLabels"`
				} `json:"selector"`
				URI    string `json:"uri"`
				SHA256 string `json:"sha256"`
				Bin    string `json:"bin"`
			} `json:"platforms"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Metadata.Name != "ballast" || manifest.Spec.Version != "v1.2.3" || len(manifest.Spec.Platforms) != 4 {
		t.Errorf("it is of %q, version %q, for %d platforms", manifest.Metadata.Name, manifest.Spec.Version, len(manifest.Spec.Platforms))
	}
	for _, p := range manifest.Spec.Platforms {
		file, of := strings.CutPrefix(p.URI, "https://example.com/v1.2.3/")
		data, err := os.ReadFile(filepath.Join(o.Out, file))
		if err != nil || !of || digest(data) != p.SHA256 {
			t.Errorf("%s: %v, or of another digest", p.URI, err)
		}
		if files := unpacked(t, bytes.NewReader(data)); string(files[p.Bin].data) == "" || files[p.Bin].mode != 0o755 {
			t.Errorf("%s has no program %q", file, p.Bin)
		}
		if want := o.archive(p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]); file != want {
			t.Errorf("%s is for %s", file, want)
		}
	}
}

func unpacked(t *testing.T, r io.Reader) map[string]entry {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	return untarred(t, z)
}

func untarred(t *testing.T, from io.Reader) map[string]entry {
	t.Helper()
	files := map[string]entry{}
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = entry{h.Name, h.Mode, data}
	}
}

func theChartIsHelms(t *testing.T, o Options) {
	t.Helper()
	helm, err := assets.BuildHelm(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(o.Out, "ballast-1.2.3.tgz")
	if out, err := exec.CommandContext(t.Context(), helm, "lint", "--strict", packed).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	shown, err := exec.CommandContext(t.Context(), helm, "show", "chart", packed).CombinedOutput()
	if err != nil || !strings.Contains(string(shown), "\nversion: 1.2.3\n") || !strings.Contains(string(shown), "appVersion: v1.2.3\n") {
		t.Errorf("%v\n%s", err, shown)
	}
	out, err := exec.CommandContext(t.Context(), helm, "template", "b", packed).CombinedOutput()
	if err != nil || strings.Count(string(out), `image: "registry.example/ballast:v1.2.3"`) != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestVersionsOfTheChart(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3-rc.1", "dc16826": "0.0.0-gdc16826", "0123456-dirty": "0.0.0-g0123456-dirty", "v1": "0.0.0-gv1"} {
		if got := chartVersion(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}

// The image's own binary, out of its unpacked layers, as its user, with nothing beside it: as a container would run it.
func TestTheImagesBinaryRuns(t *testing.T) {
	if err := site.DependOnSources(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := options(t)
	for name, value := range map[string]string{"GOFLAGS": "-tags=odd", "GOAMD64": "v3", "GOARM64": "v8.2", "GOOS": "plan9"} { // of whoever builds it
		t.Setenv(name, value)
	}
	binary, err := Build(t.Context(), o, "linux", runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	isBuiltFor(t, binary, runtime.GOARCH)
	img, err := image(binary, runtime.GOARCH, o)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	unpackImage(t, img, root)
	for args, want := range map[string]string{
		"version":        "ballast v1.2.3\ncommit abcdef0\n" + runtime.Version() + " linux/" + runtime.GOARCH + "\nproven with Kubernetes " + version.ProvenKubernetes + " and Argo CD " + version.ProvenArgoCD + "\n",
		"config default": "kind: PlannerConfig\n",
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, "ballast"), strings.Fields(args)...)
		cmd.Env = []string{}
		if os.Geteuid() == 0 {
			cmd.Path, cmd.Dir = "/ballast", "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532, NoSetGroups: true}}
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("ballast %s: %v\n%s", args, err, out)
		}
	}
	roots, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(roots, []byte("BEGIN CERTIFICATE")); n < 100 || !x509.NewCertPool().AppendCertsFromPEM(roots) {
		t.Errorf("it has %d certificates", n)
	}
	theSBOMIsOf(t, binary, o)
}

// isBuiltFor checks that nothing of the environment is in how a binary was built.
func isBuiltFor(t *testing.T, binary []byte, arch string) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range info.Settings {
		if s.Key != "-ldflags" {
			got[s.Key] = s.Value
		}
	}
	want := map[string]string{"-buildmode": "exe", "-compiler": "gc", "-trimpath": "true", "CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": arch}
	for name, least := range map[string]string{"amd64": "v1", "arm64": "v8.0"} {
		if name == arch {
			want["GO"+strings.ToUpper(name)] = least
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it is built (-want +got):\n%s", diff)
	}
}

func unpackImage(t *testing.T, img v1.Image, root string) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range untarred(t, r) {
			path := filepath.Join(root, name)
			if strings.HasSuffix(name, "/") {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.data, os.FileMode(f.mode)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for dir := root; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { // for the image's user
			t.Fatal(err)
		}
	}
}

func theSBOMIsOf(t *testing.T, binary []byte, o Options) {
	t.Helper()
	text, err := sbom(bytes.NewReader(binary), digest(binary), o)
	if err != nil {
		t.Fatal(err)
	}
	var doc spdx
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"stdlib": strings.TrimPrefix(runtime.Version(), "go"), "ballast": "v1.2.3"}
	for _, module := range []string{"k8s.io/client-go", "github.com/spf13/cobra", "github.com/prometheus/common"} {
		want[module] = regexp.MustCompile(`(?m)^\s*` + module + ` (\S+)`).FindStringSubmatch(string(mod))[1]
	}
	got, ids := map[string]string{}, map[string]bool{}
	for _, p := range doc.Packages {
		if want[p.Name] != "" {
			got[p.Name] = p.Version
		}
		ids[p.ID] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(ids) != len(doc.Packages) || len(doc.Relationships) != len(doc.Packages) {
		t.Errorf("%d packages have %d names and %d relationships", len(doc.Packages), len(ids), len(doc.Relationships))
	}
	if strings.Contains(string(text), "go-containerregistry") {
		t.Error("it lists what the binary is not linked of")
	}
}

// copied is a checkout's files in another folder.
func copied(t *testing.T, checkout string) string {
	t.Helper()
	to := t.TempDir()
	list, err := exec.CommandContext(t.Context(), "git", "-C", checkout, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSpace(name)
		data, err := os.ReadFile(filepath.Join(checkout, name))
		if errors.Is(err, os.ErrNotExist) { // deleted, and not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// One binary, built in two folders, is the same to the byte: nothing of where or when it was built is in it. The second goes by the
// cache of the first, which makes it affordable; TestTwoBuildsAreTheSame compiles everything anew.
func TestABinaryDoesNotSayWhereItWasBuilt(t *testing.T) {
	one := options(t)
	two := one
	two.Checkout = copied(t, one.Checkout)
	var digests []string
	for _, o := range []Options{one, two} {
		binary, err := Build(t.Context(), o, "linux", runtime.GOARCH)
		if err != nil {
			t.Fatal(err)
		}
		for _, where := range []string{two.Checkout, checkout(t)} {
			if bytes.Contains(binary, []byte(where)) {
				t.Errorf("the binary has %s in it", where)
			}
		}
		digests = append(digests, digest(binary))
	}
	if digests[0] != digests[1] {
		t.Errorf("built twice, it is %s and %s", digests[0], digests[1])
	}
}

// checkout is where this one is.
func checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Two releases, made in two folders, are one, byte for byte of all that they consist of. `make soak` has each build its binaries, the
// second with a cache of its own, which takes minutes for each platform; else both have the same small ones.
func TestTwoBuildsAreTheSame(t *testing.T) {
	one, two := options(t), options(t)
	two.Checkout = copied(t, one.Checkout)
	release := func(o Options) error { return Make(t.Context(), o) }
	if os.Getenv("BALLAST_RELEASE_TWICE") == "" {
		binaries := small(t)
		release = func(o Options) error { return Assemble(o, binaries) }
	}
	if err := release(one); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", t.TempDir())
	if err := release(two); err != nil {
		t.Fatal(err)
	}
	once := tree(t, one.Out)
	if diff := cmp.Diff(once, tree(t, two.Out)); diff != "" {
		t.Errorf("-once +twice:\n%s", diff)
	}
	t.Logf("released twice: %d files, SHA256SUMS %s", len(once), once["SHA256SUMS"])
}
