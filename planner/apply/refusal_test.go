package apply

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWhatIsRefusedForGood: what the API server says of an object, and not of itself.
func TestWhatIsRefusedForGood(t *testing.T) {
	const left = "; what else the API server said is left out, since it may quote the object"
	secrets := schema.GroupResource{Resource: "secrets"}
	says := func(code int32, message string) error {
		return fmt.Errorf("writing: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}})
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"none":                {nil, ""},
		"a rule":              {apierrors.NewForbidden(secrets, "a", errors.New("a policy")), "Forbidden" + left},
		"another's write":     {apierrors.NewConflict(secrets, "a", errors.New("it changed")), "Conflict" + left},
		"a body":              {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "RequestEntityTooLarge" + left},
		"etcd's bound":        {says(500, "etcdserver: request is too large"), "RequestEntityTooLarge" + left},
		"its client's bound":  {says(500, "rpc error: code = ResourceExhausted desc = grpc: trying to send message larger than max (2097306 vs. 2097152)"), "RequestEntityTooLarge" + left},
		"etcd without leader": {says(500, "etcdserver: leader changed"), ""},
		"busy":                {apierrors.NewTooManyRequests("later", 1), ""},
		"a timeout":           {apierrors.NewTimeoutError("too long", 1), ""},
		"no answer":           {context.DeadlineExceeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if why, refused := Refusal(test.err); why != test.want || refused != (test.want != "") {
				t.Errorf("%q, %t; want %q", why, refused, test.want)
			}
		})
	}
}
