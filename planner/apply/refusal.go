package apply

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/answer"
)

// Refusal is why the API server takes no write of that object, without what it quotes of it: by a rule, or since the
// object is as large as etcd stores one, whatever is written. A conflict is one of all attempts of a write. Timeouts
// and an API server that is away say nothing of the object.
func Refusal(err error) (why string, refused bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", false
	}
	said := answer.Unquoted(err)
	rules := []metav1.StatusReason{metav1.StatusReasonInvalid, metav1.StatusReasonForbidden,
		metav1.StatusReasonConflict, metav1.StatusReasonRequestEntityTooLarge}
	if !slices.Contains(rules, apierrors.ReasonForError(said)) {
		return "", false
	}
	return said.Error(), true
}

// nodeCapacity is the cause that Kubernetes 1.36 and newer give where a pod's new size is more than its node can give
// any pod.
const nodeCapacity metav1.CauseType = "NodeCapacity"

// RefusedForRoom reports whether the API server refuses a pod's size since its node has less to give. Any other rule, a
// quota say, is none of the node's.
func RefusedForRoom(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool { return c.Type == nodeCapacity })
}
