// Package release makes what a release consists of, without a container engine: binaries, an image, the chart, YAML to
// apply, a krew manifest, an SBOM and checksums. The same sources and Options give the same bytes.
package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Options say what is released.
type Options struct {
	Checkout string    // where the sources are
	Out      string    // the folder that is filled
	Version  string    // as people know it: v1.2.3
	Commit   string    // of the sources
	Time     time.Time // of the commit; nothing has another
	Image    string    // where the image will be pulled from, without a tag
	URL      string    // where the archives will be downloaded from, a folder
}

func (o Options) name() string { return "ballast-" + o.Version }

func (o Options) write(name string, data []byte) error {
	if err := os.WriteFile(filepath.Join(o.Out, name), data, 0o644); err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return nil
}

var (
	systems       = []string{"darwin", "linux"}
	architectures = []string{"amd64", "arm64"}
)

// Make builds all of it.
func Make(ctx context.Context, o Options) error {
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	binaries := map[string][]byte{}
	for _, system := range systems {
		for _, arch := range architectures {
			binary, err := Build(ctx, o, system, arch)
			if err != nil {
				return err
			}
			binaries[system+"/"+arch] = binary
		}
	}
	return Assemble(o, binaries)
}

// Build is a static binary, by Go alone.
func Build(ctx context.Context, o Options, system, arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "ballast-release-")
	if err != nil {
		return nil, fmt.Errorf("making a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "ballast")
	const stamp = "ballast/cmd/ballast/version."
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X "+stamp+"version="+o.Version+" -X "+stamp+"commit="+o.Commit, "-o", out, "./cmd/ballast")
	cmd.Dir = o.Checkout
	cmd.Env = append(os.Environ(), environment(system, arch)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building for %s/%s: %w: %s", system, arch, err, text)
	}
	return os.ReadFile(out)
}

// environment is all of a person's that another binary would follow from: flags, experiments, and the least CPU that it
// runs on.
func environment(system, arch string) []string {
	return []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch, "GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=",
		"GOAMD64=v1", "GOARM64=v8.0"}
}

// Assemble makes everything of the binaries, by system and architecture.
func Assemble(o Options, binaries map[string][]byte) error {
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	digests, err := archives(o, binaries)
	if err != nil {
		return err
	}
	linux := binaries["linux/amd64"]
	list, err := sbom(bytes.NewReader(linux), digest(linux), o)
	if err != nil {
		return err
	}
	if err := o.write(o.name()+".spdx.json", list); err != nil {
		return err
	}
	if err := o.write("krew.yaml", []byte(krew(o, digests))); err != nil {
		return err
	}
	if err := writeImages(binaries, o); err != nil {
		return err
	}
	if err := chart(o); err != nil {
		return err
	}
	if err := install(o); err != nil {
		return err
	}
	return checksums(o)
}

// archives are a tarball for each platform, and their digests.
func archives(o Options, binaries map[string][]byte) (map[string]string, error) {
	license, err := os.ReadFile(filepath.Join(o.Checkout, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("reading the license: %w", err)
	}
	digests := map[string]string{}
	for platform, binary := range binaries {
		packed, err := zipped([]entry{{"LICENSE", 0o644, license}, {"ballast", 0o755, binary}}, o.Time)
		if err != nil {
			return nil, err
		}
		if err := o.write(o.archive(platform), packed); err != nil {
			return nil, err
		}
		digests[platform] = digest(packed)
	}
	return digests, nil
}

func (o Options) archive(platform string) string {
	return o.name() + "-" + strings.ReplaceAll(platform, "/", "-") + ".tar.gz"
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// checksums are of every file beside them, as sha256sum -c reads them.
func checksums(o Options) error {
	var lines strings.Builder
	entries, err := os.ReadDir(o.Out)
	if err != nil {
		return fmt.Errorf("listing what was made: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() || e.Name() == "SHA256SUMS" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(o.Out, e.Name()))
		if err != nil {
			return fmt.Errorf("reading what was made: %w", err)
		}
		lines.WriteString(digest(data) + "  " + e.Name() + "\n")
	}
	return o.write("SHA256SUMS", []byte(lines.String()))
}

var semantic = regexp.MustCompile(`^v?((0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]*)?)$`)

// chartVersion is the version as Helm wants it; a build between releases is before the first one.
func chartVersion(version string) string {
	if m := semantic.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	return "0.0.0-g" + regexp.MustCompile(`[^0-9A-Za-z.-]`).ReplaceAllString(version, "-")
}

// chart packs manifests/chart with the release's version and image.
func chart(o Options) error {
	files, err := entries(filepath.Join(o.Checkout, "manifests", "chart"), "ballast/")
	if err != nil {
		return err
	}
	version := chartVersion(o.Version)
	for name, lines := range map[string][][2]string{
		"ballast/Chart.yaml": {{`(?m)^version: .*$`, "version: " + version},
			{`(?m)^appVersion: .*$`, `appVersion: "` + o.Version + `"`}},
		"ballast/values.yaml":        {{`(?m)^  repository: ballast$`, "  repository: " + o.Image}},
		"ballast/values.schema.json": {{`"default": "ballast"`, `"default": "` + o.Image + `"`}},
	} {
		at := slices.IndexFunc(files, func(e entry) bool { return e.name == name })
		if at < 0 {
			return fmt.Errorf("packing the chart: it has no %q", name)
		}
		for _, line := range lines {
			pattern := regexp.MustCompile(line[0])
			if !pattern.Match(files[at].data) {
				return fmt.Errorf("packing the chart: %q has no line %s", name, line[0])
			}
			files[at].data = pattern.ReplaceAllLiteral(files[at].data, []byte(line[1]))
		}
	}
	packed, err := zipped(files, o.Time)
	if err != nil {
		return err
	}
	return o.write("ballast-"+version+".tgz", packed)
}
