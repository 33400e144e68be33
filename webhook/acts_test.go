package webhook

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"ballast/planner/plan"
	"ballast/webhook/decision"
	"ballast/webhook/rawjson"
)

func TestAnOptedOutWorkloadIsNoted(t *testing.T) {
	body := func(notes string) string {
		return strings.Replace(workloadWith("4", `{"name":"application-controller"}`), `"metadata":{`, `"metadata":{"annotations":{`+notes+`},`, 1)
	}
	const opted, wrong, elsewhere = `"ballast.argoproj.io/unmanaged":"true"`, `"ballast.argoproj.io/unmanaged":"yes"`, `"ballast.argoproj.io/pin":"3"`
	const absent = "null" // the old object of a workload that is made
	for name, tc := range map[string]struct {
		object, old         string
		requested, enforced string // behind the replicas and the env
		warnings            []string
	}{
		"it opts out":            {opted, "", " unmanaged=true", "unmanaged=true", nil},
		"it has opted out":       {opted, opted, "", "-", nil},
		"it is made opted out":   {opted, absent, " unmanaged=true", "unmanaged=true", nil},
		"it opts in":             {"", opted, " unmanaged=-", "replicas=4 ARGOCD_CONTROLLER_REPLICAS=16 unmanaged=-", nil},
		"it means to opt out":    {wrong, "", " unmanaged=invalid", "replicas=4 ARGOCD_CONTROLLER_REPLICAS=16 unmanaged=-", []string{`ballast: annotation ballast.argoproj.io/unmanaged: "yes" is passed over; write "true" to opt out`}},
		"a pin in a wrong place": {elsewhere, "", "", "replicas=4 ARGOCD_CONTROLLER_REPLICAS=16", []string{"ballast: annotation pin belongs on a cluster Secret; on the plan, pins stand in data.pins"}},
	} {
		t.Run(name, func(t *testing.T) {
			rv := review{Request: decision.Request{Kind: plan.StatefulSet, Namespace: "argocd", Name: workload, User: person}, object: mustParse(t, body(tc.object)), old: mustParse(t, body(tc.old))}
			if tc.old == absent {
				rv.Create, rv.old = true, rawjson.Node(absent)
			}
			v, err := reviewController(withPlan(nil, nil), &rv)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := decision.PrintFields(v.Requested), "replicas=4 ARGOCD_CONTROLLER_REPLICAS=-"+tc.requested; got != want {
				t.Errorf("requested %s, want %s", got, want)
			}
			if got := decision.PrintFields(v.Enforced); got != tc.enforced {
				t.Errorf("enforced %s, want %s", got, tc.enforced)
			}
			if diff := cmp.Diff(tc.warnings, v.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnActIsLogged: who switched enforcement off stands in the webhook's log too, where no audit log is kept.
func TestAnActIsLogged(t *testing.T) {
	var log bytes.Buffer
	stands := object(t, fleet(), "")
	h := NewHandler(&plans{known: knowing(t, stands)}, NewMetrics(prometheus.NewRegistry()), funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
	configMap := func(enforcement string) []byte {
		return fmt.Appendf(nil, `{"metadata":{"name":"ballast-plan","namespace":"argocd","annotations":{%q:%q}}}`, plan.AnnotationEnforcement, enforcement)
	}
	ask(t, h, "/plan", admissionRequest(t, func(r *admissionv1.AdmissionRequest) {
		r.Name, r.Object.Raw, r.OldObject.Raw = "ballast-plan", configMap("off"), configMap("")
	}))
	if want := `"user"="ada"`; !strings.Contains(log.String(), want) || !strings.Contains(log.String(), "enforcement=off") {
		t.Errorf("logged %q, want enforcement=off and %s", log.String(), want)
	}
}
