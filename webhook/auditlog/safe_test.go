package auditlog

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"ballast/webhook/auditlog/fields"
)

// What may be printed, written a second time and otherwise.
var (
	count     = `(-|invalid|-?[0-9]{1,10})`
	fieldForm = regexp.MustCompile(`\A(invalid|(shard|replicas)=` + count + `|ARGOCD_CONTROLLER_REPLICAS=(reference|` + count + `)|plan=(-|invalid|[0-9a-f]{12})|` +
		`(accept-discovery|pin|pins|rollback-to)=(-|invalid|-?[0-9]{1,10})|cordon=(-|invalid|[0-9]{1,6}(,[0-9]{1,6}){0,20}(,\+[0-9]{1,6})?)|enforcement=(-|invalid|off|on)|` +
		`(paused|unmanaged)=(-|invalid|true|false)|tripped=(-|invalid|set)|rebase=(-|invalid|true|false|undo)|selected=(-|invalid|true)|secret-type=(-|invalid|cluster)|` +
		`(pins|clusters)\.[a-z0-9.-]{1,253}=` + count + `|(requests|limits)\.[a-z0-9./-]{1,63}=(-|invalid|[0-9.eEkKMGTPinmu+-]{1,24}))\z`)
	nameForm = regexp.MustCompile(`\A(|invalid|[a-z0-9.-]{1,253})\z`)
)

type failer interface {
	Helper()
	Errorf(string, ...any)
}

// checkSafe holds for every Write, whatever the log holds.
func checkSafe(t failer, w Write) {
	t.Helper()
	for what, good := range map[string]bool{
		"requested":   areFields(w.Requested),
		"enforced":    areFields(w.Enforced),
		"reason":      slices.Contains(Reasons(), w.Reason),
		"effect":      slices.Contains([]Effect{Agreed, Passed, Rewritten, Refused, Faulted, Bypassed, Steered, Unasked, Unknown}, w.Effect),
		"verb":        slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection", Invalid}, w.Verb),
		"kind":        slices.Contains(kinds(), w.Kind),
		"subresource": w.Subresource == "" || w.Subresource == "scale",
		"revision":    w.Revision >= 0,
		"name":        nameForm.MatchString(w.Name),
		"namespace":   nameForm.MatchString(w.Namespace),
		"user":        isSafeText(w.User),
		"by":          isSafeText(w.By),
		"audit ID":    isSafeText(w.AuditID),
	} {
		if !good {
			t.Errorf("the %s is not safe to print: %+v", what, w)
		}
	}
}

func kinds() []string {
	return []string{"secret", "configmap", "statefulset", "deployment", "pod", "serviceaccount", "mutatingwebhookconfiguration", "validatingadmissionpolicy", "validatingadmissionpolicybinding"}
}

func areFields(s string) bool {
	pairs := strings.Split(s, " ")
	return s == "-" || len(pairs) <= fields.Most+1 && !slices.ContainsFunc(pairs, func(p string) bool { return !fieldForm.MatchString(p) })
}

func isSafeText(s string) bool {
	return len([]rune(s)) <= maxText && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// annotation draws what a webhook might have written, and what nobody should.
func annotation() *rapid.Generator[string] {
	names := rapid.SampledFrom([]string{"shard", "replicas", "ARGOCD_CONTROLLER_REPLICAS", "plan", "pins.a", "pins.", "pins.A", "clusters.b-1", "requests.cpu", "limits.nvidia.com/gpu", "limits.a/b/c", "token", "",
		"accept-discovery", "cordon", "enforcement", "paused", "pin", "pins", "rebase", "rollback-to", "secret-type", "selected", "tripped", "unmanaged"})
	values := rapid.OneOf(rapid.SampledFrom([]string{"-", "", "3", "-1", "+3", "invalid", "reference", "0123456789ab", "0123456789AB", "1500m", "1Gi", "99999999999", "eyJhbGciOi", "off", "true", "set", "1,3", "1,+2", "+2", "1,,2", "1,+2,3", "cluster"}), rapid.String())
	pair := rapid.Custom(func(t *rapid.T) string { return names.Draw(t, "name") + "=" + values.Draw(t, "value") })
	return rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(pair, 0, 80).Draw(t, "pairs"), " ")
	}))
}

func TestWhateverTheLogHoldsIsSafeToPrint(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.String()
		line := secretWrite(t, map[string]any{
			"verb": text.Draw(r, "verb"), "auditID": text.Draw(r, "id"), "user": map[string]any{"username": text.Draw(r, "user")},
			"objectRef":   object("", "secrets", "", text.Draw(r, "name")),
			"annotations": said("clusters", text.Draw(r, "reason"), annotation().Draw(r, "requested"), annotation().Draw(r, "enforced")),
		})
		w, _, err := parse(line, nil)
		if err != nil {
			r.Fatal(err)
		}
		checkSafe(r, w)
	})
}

func TestPrintingFieldsTwiceChangesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		once := fields.Print(annotation().Draw(r, "annotation"))
		if twice := fields.Print(once); twice != once {
			r.Errorf("printed once it is %q, twice %q", once, twice)
		}
	})
}
