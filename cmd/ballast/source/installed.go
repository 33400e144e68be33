package source

import (
	"context"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/config"
)

// Installed is the configuration by which the installed planner goes, of the ConfigMap of that name, and the default one
// where none is installed.
func Installed(ctx context.Context, c client.Client, namespace, name string, progress io.Writer) (config.PlannerConfig, error) {
	s := &Source{installed: name}
	s.cluster.Namespace = namespace
	return s.fromCluster(ctx, c, progress)
}
