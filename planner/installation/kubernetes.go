package installation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// LowestKubernetes is the oldest version that ballast is made for: the first with ValidatingAdmissionPolicies and
// matchConditions for everybody (both became stable there).
const LowestKubernetes = "1.30"

// Kubernetes judges the version of an API server, as its /version has it.
func Kubernetes(gitVersion string) ([]Finding, error) {
	v, err := version.ParseGeneric(gitVersion)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's version %q: %w", gitVersion, err)
	}
	if !v.LessThan(version.MustParseGeneric(LowestKubernetes)) {
		return nil, nil
	}
	running := fmt.Sprintf("%d.%d", v.Major(), v.Minor())
	return []Finding{{Kind: TooOld, Subject: "Kubernetes", Message: fmt.Sprintf(
		"the API server is Kubernetes %s, and ballast needs %s or newer: no ValidatingAdmissionPolicy bounds what ballast's own accounts may write, none refuses "+
			"another writer of the plan while no webhook answers, filler, oversize, immutable, owners or another writer of the history, and "+
			"webhooks may be asked without matchConditions; the plan is enforced all the same; upgrade Kubernetes",
		running, LowestKubernetes)}}, nil
}
