package answer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const canary = "Q0FOQVJZLVRPS0VO"

// TestNoAnswerQuotesTheObject: of whatever an API server, a webhook or a policy says of a write, why it was refused is
// left, and nothing of what was to be written.
func TestNoAnswerQuotesTheObject(t *testing.T) {
	secrets, kind := schema.GroupResource{Resource: "secrets"}, schema.GroupKind{Kind: "Secret"}
	says := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	quoting, pods := errors.New(canary), schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err  error
		want string // before what is left out
	}{
		"a patch that makes no object": {apierrors.NewInvalid(kind, "", field.ErrorList{field.Invalid(field.NewPath("patch"), canary, canary)}), `Invalid (FieldValueInvalid at "patch"); ` + mend},
		"three rules and more": {apierrors.NewInvalid(kind, "a", field.ErrorList{field.TooLong(field.NewPath("data"), canary, 1), field.Required(field.NewPath("b"), canary),
			field.Required(field.NewPath("c"), canary), field.Required(field.NewPath("d"), canary)}), `Invalid (FieldValueTooLong at "data", FieldValueRequired at "b", FieldValueRequired at "c")`},
		"missing rights":       {apierrors.NewForbidden(secrets, "a", errors.New(`User "u" cannot patch resource "secrets" in API group ""`)), "Forbidden by missing rights"},
		"a quota":              {apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: small, requested: requests.memory="+canary)), "Forbidden by ResourceQuota small"},
		"a quota of limits":    {apierrors.NewForbidden(pods, "a", errors.New("failed quota: small: must specify "+canary)), "Forbidden by ResourceQuota small"},
		"a LimitRange":         {apierrors.NewForbidden(pods, "a", errors.New("maximum memory usage per Container is 1Gi, but limit is "+canary)), "Forbidden by a LimitRange"},
		"two of its bounds":    {apierrors.NewForbidden(pods, "a", errors.New("[minimum cpu usage per Pod is 1, but request is 100m, "+canary+"]")), "Forbidden by a LimitRange"},
		"its ratio":            {apierrors.NewForbidden(pods, "a", errors.New("memory max limit to request ratio per Container is 2, but "+canary)), "Forbidden by a LimitRange"},
		"a quota's name":       {apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: "+canary+", requested")), "Forbidden"},
		"a policy":             {apierrors.NewForbidden(secrets, "a", errors.New("ValidatingAdmissionPolicy 'no.writes' with binding 'b' denied request: "+canary)), "Forbidden by policy no.writes"},
		"a webhook":            {says(400, `admission webhook "a.b.example.com" denied the request: `+canary), "code 400 by webhook a.b.example.com"},
		"a webhook's reason":   {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReason(strings.Repeat("x", 1000)), Message: canary}}, strings.Repeat("x", maxWord-1) + "…"},
		"a webhook that fails": {apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "a.b": %s`, canary)), "InternalError by webhook a.b"},
		"no webhook's name":    {says(400, `admission webhook "`+canary+`" denied the request`), "code 400"},
		"another's write":      {apierrors.NewConflict(secrets, "a", quoting), "Conflict"},
		"a body":               {apierrors.NewRequestEntityTooLargeError(canary), "RequestEntityTooLarge"},
		"etcd's bound":         {says(500, "etcdserver: request is too large"), "RequestEntityTooLarge"},
		"its client's bound":   {says(500, "rpc error: code = ResourceExhausted desc = grpc: trying to send message larger than max (2097306 vs. 2097152)"), "RequestEntityTooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Unquoted(fmt.Errorf("%s: %w", canary, test.err))
			if want := test.want + "; " + left; got.Error() != want {
				t.Errorf("%q, want %q", got, want)
			}
			if again := Unquoted(fmt.Errorf("writing: %w", got)); again.Error() != got.Error() {
				t.Errorf("said again: %q", again)
			}
			var said unquoted
			if !errors.As(got, &said) {
				t.Fatalf("%T", got)
			}
			if whole := fmt.Sprintf("%+v %#v %#v", got, got, said.ErrStatus.Details); strings.Contains(whole, canary) {
				t.Errorf("it holds the canary: %s", whole)
			}
			if before, after := apierrors.ReasonForError(test.err), apierrors.ReasonForError(got); before != "" && len(before) < maxWord && before != after {
				t.Errorf("the reason was %s and is %s", before, after)
			}
		})
	}
	if got := Unquoted(context.Canceled); !errors.Is(got, context.Canceled) {
		t.Errorf("%v", got)
	}
}
