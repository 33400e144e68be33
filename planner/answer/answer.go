// Package answer says what an API server answered to a write without what it quotes of the object.
package answer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/printable"
)

const (
	maxCauses = 3   // that are told
	maxWord   = 100 // characters of a reason, a cause's type and a field
)

// left stands where the API server's own words stood: a patch that makes no object is answered with the whole of it,
// and a webhook or a policy may quote what it likes.
const left = "what else the API server said is left out, since it may quote the object"

// mend is for an object whose managers others gave a time that JSON does not have.
const mend = `the API server cannot read it back to patch it; where metadata.managedFields has a time beyond the year 9999, ` +
	`kubectl patch --type=merge -p '{"metadata":{"managedFields":[{}]}}' starts the list anew`

// unquoted is an answer that holds nothing of the object's any more.
type unquoted struct{ *apierrors.StatusError }

// Unquoted is an API server's error by its reason, its causes' types and fields, and who refused the write: nothing
// that may be of the object's content. errors.As finds a status that holds no more either. Any other error stays.
func Unquoted(err error) error {
	var already unquoted
	if errors.As(err, &already) {
		return already
	}
	var found apierrors.APIStatus
	if !errors.As(err, &found) {
		return err
	}
	s := found.Status()
	said := metav1.Status{Status: s.Status, Code: s.Code, Reason: metav1.StatusReason(word(string(s.Reason)))}
	if largeForEtcd(s.Message) {
		said.Reason = metav1.StatusReasonRequestEntityTooLarge
	}
	if d := s.Details; d != nil {
		said.Details = &metav1.StatusDetails{Name: d.Name, Group: d.Group, Kind: d.Kind,
			RetryAfterSeconds: d.RetryAfterSeconds}
		for _, c := range d.Causes {
			said.Details.Causes = append(said.Details.Causes,
				metav1.StatusCause{Type: metav1.CauseType(word(string(c.Type))), Field: word(c.Field)})
		}
	}
	said.Message = words(said, refuser(s.Message))
	clients := s.Code >= 400 && s.Code < 500
	if s.Reason == "" && clients && byDenial.MatchString(s.Message) {
		said.Reason = metav1.StatusReasonForbidden // a webhook that denies without a code is answered by 400 and no reason
	}
	return unquoted{&apierrors.StatusError{ErrStatus: said}}
}

// largeForEtcd goes by the words of etcd and of its client, which the API server passes on without a reason of its own.
func largeForEtcd(message string) bool {
	return strings.Contains(message, "etcdserver: request is too large") ||
		strings.Contains(message, "trying to send message larger than max")
}

// TooLarge reports whether a write was refused for its size: by the request, by validation (1 MiB of data, 256 KiB of
// annotations), or by etcd (1.5 MiB), whose answer comes as an internal error.
func TooLarge(err error) bool {
	var found apierrors.APIStatus
	if !errors.As(err, &found) {
		return false
	}
	if apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(found.Status().Message, "request is too large") {
		return true
	}
	details := found.Status().Details
	return details != nil && slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseType(field.ErrorTypeTooLong)
	})
}

func word(s string) string { return printable.Text(s, maxWord) }

func words(s metav1.Status, by string) string {
	reason := string(s.Reason)
	if reason == "" {
		reason = fmt.Sprintf("code %d", s.Code)
	}
	var causes []string
	unread := false
	if s.Details != nil {
		for _, c := range s.Details.Causes[:min(maxCauses, len(s.Details.Causes))] {
			if text := strings.TrimSpace(fmt.Sprintf("%s at %q", c.Type, c.Field)); c.Field != "" {
				causes = append(causes, text)
			}
		}
		unread = slices.Contains(s.Details.Causes,
			metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "patch"})
	}
	parts := []string{reason}
	if len(causes) > 0 {
		parts[0] += " (" + strings.Join(causes, ", ") + ")"
	}
	if by != "" {
		parts[0] += " by " + by
	}
	if unread {
		parts = append(parts, mend)
	}
	return strings.Join(append(parts, left), "; ")
}

// Beginnings that the API server itself writes, of messages by which a write is refused.
var (
	byWebhook = regexp.MustCompile(`^(?:admission webhook|Internal error occurred: failed calling webhook) "([a-z0-9.-]{1,253})"`)
	byDenial  = regexp.MustCompile(`^admission webhook "[a-z0-9.-]{1,253}" denied the request`)
	byPolicy  = regexp.MustCompile(`^[a-z.]{1,100} "[^"]{0,253}" is forbidden: ValidatingAdmissionPolicy '([a-z0-9.-]{1,253})'`)
	byQuota   = regexp.MustCompile(`^pods "[^"]{0,253}" is forbidden: (?:exceeded|failed) quota: ([a-z0-9.-]{1,253})[,:]`)
	byLimits  = regexp.MustCompile(`^pods "[^"]{0,253}" is forbidden: \[?` +
		`(?:(?:maximum|minimum) \S{1,253} usage|\S{1,253} max limit to request ratio) per (?:Pod|Container) is `)
	byRights = regexp.MustCompile(`^[a-z.]{1,100} "[^"]{0,253}" is forbidden: User "`)
)

// Webhook is the webhook that refused a write, or could not be asked; empty where that is nobody or somebody else.
func Webhook(err error) string {
	var found apierrors.APIStatus
	if !errors.As(err, &found) {
		return ""
	}
	if m := byWebhook.FindStringSubmatch(found.Status().Message); m != nil {
		return m[1]
	}
	return ""
}

// refuser is who refused a write, as far as that can be told from such a beginning.
func refuser(message string) string {
	if m := byWebhook.FindStringSubmatch(message); m != nil {
		return "webhook " + m[1]
	}
	if m := byPolicy.FindStringSubmatch(message); m != nil {
		return "policy " + m[1]
	}
	if m := byQuota.FindStringSubmatch(message); m != nil {
		return "ResourceQuota " + m[1]
	}
	if byLimits.MatchString(message) {
		return "a LimitRange"
	}
	if byRights.MatchString(message) {
		return "missing rights"
	}
	return ""
}
