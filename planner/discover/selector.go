package discover

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Selector converts the configured selector of cluster Secrets. One that would select every Secret of the namespace is
// refused: reading them all is neither needed nor granted.
func Selector(s metav1.LabelSelector) (labels.Selector, error) {
	sel, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of cluster secrets: %w", err)
	}
	if sel.Empty() {
		return nil, errors.New(`reading the selector of cluster secrets: it is empty and would select every Secret; ` +
			`set matchLabels, as in {argocd.argoproj.io/secret-type: cluster}`)
	}
	if sel.Matches(labels.Set{}) {
		return nil, fmt.Errorf("reading the selector of cluster secrets: %q also selects Secrets without any label; require a label that only cluster Secrets have", sel)
	}
	return sel, nil
}
