package nudge

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ForbiddenError says what RBAC does not let the planner do with Applications. Component nudge grants it in Argo CD's
// namespace, component nudge-any-namespace in all.
type ForbiddenError struct {
	Verb      string
	Namespace string // empty: all
	Err       error
}

// Error is the API server's answer in words.
func (e *ForbiddenError) Error() string { return e.Err.Error() }

// Unwrap is the API server's answer.
func (e *ForbiddenError) Unwrap() error { return e.Err }

func refused(verb, namespace string, err error) error {
	if apierrors.IsForbidden(err) {
		return &ForbiddenError{Verb: verb, Namespace: namespace, Err: err}
	}
	return err
}

func isForbidden(err error) bool {
	var f *ForbiddenError
	return errors.As(err, &f)
}
