package assets

import (
	"context"
	"io"
	"path/filepath"
	"time"
)

// helmVersion must name the release of e2e/helm/go.mod.
const helmVersion = "v3.21.4"

const helmBinary = "helm"

// helmFlags name the Kubernetes that charts are checked against, as Helm's own releases do.
func helmFlags() []string {
	stamps := "-s -w -X helm.sh/helm/v3/internal/version.version=" + helmVersion
	for _, pkg := range []string{"helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules"} {
		stamps += " -X " + pkg + ".k8sVersionMajor=1 -X " + pkg + ".k8sVersionMinor=36"
	}
	return []string{"-ldflags", stamps}
}

// helmSet takes some 3 minutes on two cores.
func helmSet() set {
	return set{
		takes:      8 * time.Minute,
		components: []component{{helmBinary, "helm", "helm.sh/helm/v3/cmd/helm", helmFlags()}},
		modules:    []string{"helm"},
		files:      func(context.Context, string, string) error { return nil },
	}
}

// BuildHelm is Build for Helm's command, and gives its path.
func BuildHelm(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := helmSet().build(ctx, progress)
	return filepath.Join(dir, "bin", helmBinary), err
}
