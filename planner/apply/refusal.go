package apply

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refusal is why the API server takes no write of that object, in its own words: by a rule, or since the object is as
// large as etcd stores one, whatever is written. A conflict is one of all attempts of a write. Timeouts and an API
// server that is away say nothing of the object.
func Refusal(err error) (why string, refused bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", false
	}
	reason, message := apierrors.ReasonForError(err), status.Status().Message
	rules := []metav1.StatusReason{metav1.StatusReasonInvalid, metav1.StatusReasonForbidden, metav1.StatusReasonConflict, metav1.StatusReasonRequestEntityTooLarge}
	switch {
	case slices.Contains(rules, reason):
		return string(reason) + ": " + message, true
	case tooLarge(message):
		return string(metav1.StatusReasonRequestEntityTooLarge) + ": " + message, true
	}
	return "", false
}

// tooLarge goes by the words of etcd and of its client, which the API server passes on without a reason of its own.
func tooLarge(message string) bool {
	return strings.Contains(message, "etcdserver: request is too large") || strings.Contains(message, "trying to send message larger than max")
}
