package assets

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// argocdVersion must name the release of e2e/argocd/go.mod.
const argocdVersion = "v3.2.11"

// Names of the binaries in an ArgoCD folder.
const (
	applicationControllerBinary = "argocd-application-controller"
	redisBinary                 = "redis"
	viewsBinary                 = "views"
)

// ArgoCD is Argo CD's own code on disk, as far as it decides who owns a cluster.
type ArgoCD struct {
	dir string
}

// ApplicationController is the binary, for RunProgram.
func (a ArgoCD) ApplicationController() string {
	return filepath.Join(a.dir, "bin", applicationControllerBinary)
}

// Redis is the binary that StartRedis runs.
func (a ArgoCD) Redis() string { return filepath.Join(a.dir, "bin", redisBinary) }

// Views is the program that answers whose a cluster is by Argo CD's sharding
// package: the command e2e/argocd/views.
func (a ArgoCD) Views() string { return filepath.Join(a.dir, "bin", viewsBinary) }

// Manifests is the folder of upstream's manifests of an application-controller
// and of what it needs, copied from its module.
func (a ArgoCD) Manifests() string { return filepath.Join(a.dir, "manifests") }

// argocdSet takes some 3 minutes on two cores, and few tests need it.
func argocdSet() set {
	flags := []string{"-ldflags", "-s -w -X github.com/argoproj/argo-cd/v3/common.version=" +
		strings.TrimPrefix(argocdVersion, "v")}
	return set{
		takes: 10 * time.Minute,
		components: []component{
			{applicationControllerBinary, "argocd", "./application-controller", flags},
			{viewsBinary, "argocd", "./views", flags},
			{redisBinary, "argocd", "./redis", plainFlags()},
		},
		modules: []string{"argocd"},
		files:   copyArgoCDManifests,
	}
}

// BuildArgoCD is Build for Argo CD's part.
func BuildArgoCD(ctx context.Context, progress io.Writer) (ArgoCD, error) {
	dir, err := argocdSet().build(ctx, progress)
	return ArgoCD{dir: dir}, err
}

// copyArgoCDManifests leaves out what does not run here: the other components,
// and NetworkPolicies.
func copyArgoCDManifests(ctx context.Context, e2e, dir string) error {
	return copyModuleFiles(ctx, filepath.Join(e2e, "argocd"), "github.com/argoproj/argo-cd/v3",
		filepath.Join(dir, "manifests"),
		"manifests/crds/application-crd.yaml", "manifests/crds/appproject-crd.yaml",
		"manifests/base/config/argocd-cm.yaml", "manifests/base/config/argocd-cmd-params-cm.yaml",
		"manifests/base/application-controller-roles/argocd-application-controller-*.yaml",
		"manifests/cluster-rbac/application-controller/argocd-application-controller-*.yaml",
		"manifests/base/application-controller/argocd-application-controller-statefulset.yaml",
		"manifests/base/application-controller-deployment/argocd-application-controller-deployment.yaml")
}
