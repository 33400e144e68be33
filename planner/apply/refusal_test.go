package apply

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ballast/planner/answer"
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
		"none":                   {nil, ""},
		"a rule":                 {apierrors.NewForbidden(secrets, "a", errors.New("a policy")), "Forbidden" + left},
		"a webhook's":            {says(400, `admission webhook "validate.kyverno.svc-fail" denied the request: it is protected`), `code 400 by webhook validate.kyverno.svc-fail` + left},
		"a webhook that is away": {says(500, `Internal error occurred: failed calling webhook "a.example.com": no endpoints`), ""},
		"another's write":        {apierrors.NewConflict(secrets, "a", errors.New("it changed")), "Conflict" + left},
		"a body":                 {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "RequestEntityTooLarge" + left},
		"etcd's bound":           {says(500, "etcdserver: request is too large"), "RequestEntityTooLarge" + left},
		"its client's bound":     {says(500, "rpc error: code = ResourceExhausted desc = grpc: trying to send message larger than max (2097306 vs. 2097152)"), "RequestEntityTooLarge" + left},
		"etcd without leader":    {says(500, "etcdserver: leader changed"), ""},
		"busy":                   {apierrors.NewTooManyRequests("later", 1), ""},
		"a timeout":              {apierrors.NewTimeoutError("too long", 1), ""},
		"no answer":              {context.DeadlineExceeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if why, refused := Refusal(test.err); why != test.want || refused != (test.want != "") {
				t.Errorf("%q, %t; want %q", why, refused, test.want)
			}
		})
	}
}

// Of what the API server refuses only what its node cannot give is a matter of room, also where nothing is quoted.
func TestWhatIsRefusedForANodesRoom(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	because := func(cause metav1.CauseType) error {
		err := apierrors.NewForbidden(pods, "a", errors.New("node didn't have enough allocatable resources"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: cause}}
		return answer.Unquoted(fmt.Errorf("sizing: %w", err))
	}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                {nil, false},
		"its node's capacity": {because("NodeCapacity"), true},
		"its platform":        {because("UnsupportedPlatform"), false},
		"a quota":             {apierrors.NewForbidden(pods, "a", errors.New("exceeded quota")), false},
		"busy":                {apierrors.NewTooManyRequests("later", 1), false},
	} {
		if got := RefusedForRoom(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
