package plane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// installCRDs creates cert-manager's CRDs and waits until they are served.
func (p *Plane) installCRDs(ctx context.Context, config *rest.Config) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of CRDs: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(p.binaries.CRDs(), "*.yaml"))
	if err != nil {
		return fmt.Errorf("listing CRD files: %w", err)
	}
	creates := make([]func() error, 0, len(files))
	for _, path := range files {
		creates = append(creates, func() error { return installCRD(ctx, client.CustomResourceDefinitions(), path) })
	}
	for _, err := range together(creates...) {
		if err != nil {
			return err
		}
	}
	return nil
}

func installCRD(ctx context.Context, client apiextensions.CustomResourceDefinitionInterface, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading CRD file %q: %w", path, err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return fmt.Errorf("parsing CRD file %q: %w", path, err)
	}
	if _, err := client.Create(ctx, &crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating CRD %q: %w", crd.Name, err)
	}
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		got, err := client.Get(ctx, crd.Name, metav1.GetOptions{})
		return err == nil && established(got), err
	})
	if err != nil {
		return fmt.Errorf("waiting for CRD %q: %w", crd.Name, err)
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
