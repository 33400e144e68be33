package webhook

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"
)

// oddReview is a review in text, for what no client library writes.
func oddReview(resource, name, operation, object, old string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","request":{"uid":"u","resource":{"resource":%q},"name":%q,"namespace":"argocd","operation":%q,`+
		`"userInfo":{"username":"ada"},"object":%s,"oldObject":%s}}`, resource, name, operation, object, old)
}

// oddSecret is an update of prod-eu, which the plan has on replica 3, with these members beside its metadata.
func oddSecret(members, old string) string {
	const metadata = `{"metadata":{"name":"prod-eu","labels":{"argocd.argoproj.io/secret-type":"cluster"}},`
	operation := "CREATE"
	if old != "null" {
		operation, old = "UPDATE", metadata+old+"}"
	}
	return oddReview("secrets", "prod-eu", operation, metadata+members+"}", old)
}

// newSecret is one that the plan does not know.
func newSecret(metadata, data string) string {
	return oddReview("secrets", "", "CREATE", `{"metadata":{`+metadata+`,"labels":{"argocd.argoproj.io/secret-type":"cluster"}},"data":{`+data+`}}`, "null")
}

func pinnedSecret(pin string) string {
	return newSecret(`"name":"x","annotations":{"ballast.argoproj.io/pin":`+pin+`}`, `"server":"eA=="`)
}

func oddWorkload(replicas, containers string) string {
	return oddReview("statefulsets", workload, "UPDATE", `{"metadata":{},"spec":{`+replicas+`"template":{"spec":{"containers":[`+containers+`]}}}}`, "null")
}

func oddScale(members string) string {
	return oddReview("statefulsets", workload, "UPDATE", `{"metadata":{}`+members+`}`, "null")
}

// TestOddObjectsAreAnswered: what people, tools and attackers write, and no test of a decision draws. Each is allowed.
func TestOddObjectsAreAnswered(t *testing.T) {
	const (
		addData     = `[{"op":"add","path":"/data","value":{"shard":"Mw=="}}]`
		addShard    = `[{"op":"add","path":"/data/shard","value":"Mw=="}]`
		putShard    = `[{"op":"replace","path":"/data/shard","value":"Mw=="}]`
		addOne      = `[{"op":"add","path":"/data/shard","value":"MQ=="}]`
		stays       = `, 3 stays (plan 17); to pin, add "prod-eu: %d" to data.pins of ConfigMap ballast-plan`
		badPin      = "ballast: annotation ballast.argoproj.io/pin: %s is passed over; a pin is a whole number from 0 to 15"
		noServer    = "ballast: data.server is missing or too long, so no replica can be assigned; the shard is left as written"
		fault       = "ballast: internal fault, write passed unchanged"
		fewReplicas = "ballast: %s replicas were asked, 4 stay (plan 17); to fix a number, set partition.replicas in ballast-config"
		runs        = `"command":["argocd-application-controller"]`
		main        = `{"name":"application-controller",` + runs
		addEnv      = `[{"op":"add","path":"/spec/template/spec/containers/0/env","value":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}]`
		agreed      = "replicas=4 ARGOCD_CONTROLLER_REPLICAS=16"
		askedEnv    = "replicas=4 ARGOCD_CONTROLLER_REPLICAS="
		side        = `{"name":"side","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"1"}]},`
		putReplicas = `{"op":"replace","path":"/spec/replicas","value":4}`
	)
	invalidShard, zeroShard := "ballast: shard invalid was asked"+fmt.Sprintf(stays, 3), "ballast: shard 0 was asked"+fmt.Sprintf(stays, 0)
	for name, tc := range map[string]struct {
		path, body                         string
		reason, requested, enforced, patch string
		warning                            string
	}{
		"data null":                           {"/clusters", oddSecret(`"data":null`, "null"), "Restored", "shard=-", "shard=3", addData, ""},
		"no data":                             {"/clusters", oddSecret(`"type":"Opaque"`, "null"), "Restored", "shard=-", "shard=3", addData, ""},
		"shard null":                          {"/clusters", oddSecret(`"data":{"shard":null,"server":"eA=="}`, "null"), "Restored", "shard=-", "shard=3", addShard, ""},
		"shard a number":                      {"/clusters", oddSecret(`"data":{"shard":3}`, "null"), "Restored", "shard=invalid", "shard=3", putShard, invalidShard},
		"shard a list":                        {"/clusters", oddSecret(`"data":{"shard":["Mw=="]}`, "null"), "Restored", "shard=invalid", "shard=3", putShard, invalidShard},
		"shard empty":                         {"/clusters", oddSecret(`"data":{"shard":""}`, "null"), "Restored", "shard=invalid", "shard=3", putShard, invalidShard},
		"shard no base64":                     {"/clusters", oddSecret(`"data":{"shard":"3"}`, "null"), "Restored", "shard=invalid", "shard=3", putShard, invalidShard},
		"shard +3, which Argo CD reads as 3":  {"/clusters", oddSecret(`"data":{"shard":"KzM="}`, "null"), "Restored", "shard=invalid", "shard=3", putShard, invalidShard},
		"shard 03, which Argo CD reads as 3":  {"/clusters", oddSecret(`"data":{"shard":"MDM="}`, "null"), "Restored", "shard=03", "shard=3", putShard, "ballast: shard 03 was asked" + fmt.Sprintf(stays, 3)},
		"shard with a line break":             {"/clusters", oddSecret(`"data":{"shard":"Mwo="}`, "null"), "Restored", "shard=invalid", "shard=3", putShard, invalidShard},
		"shard with an escape sequence":       {"/clusters", oddSecret(`"data":{"shard":"`+base64Of("\x1b[2J")+`"}`, "null"), "Restored", "shard=invalid", "shard=3", putShard, invalidShard},
		"data twice, the last counts":         {"/clusters", oddSecret(`"data":{"shard":"Mw=="},"data":{}`, "null"), "Restored", "shard=-", "shard=3", addShard, ""},
		"data twice, the last shard counts":   {"/clusters", oddSecret(`"data":{"shard":"Mw=="},"data":{"shard":"MA=="}`, "null"), "Restored", "shard=0", "shard=3", putShard, zeroShard},
		"shard twice, the last counts":        {"/clusters", oddSecret(`"data":{"shard":"Mw==","shard":"MA=="}`, "null"), "Restored", "shard=0", "shard=3", putShard, zeroShard},
		"an escaped key":                      {"/clusters", oddSecret(`"data":{"\u0073hard":"MA=="}`, "null"), "Restored", "shard=0", "shard=3", putShard, zeroShard},
		"a key of another case is not data's": {"/clusters", oddSecret(`"data":{"Shard":"MA==","shard":"Mw=="}`, "null"), "InPlan", "shard=3", "shard=3", "", ""},
		"an escaped label": {"/clusters", oddReview("secrets", "prod-eu", "CREATE", `{"metadata":{"name":"prod-eu","labels":{"argocd.argoproj.io\/secret-type":"cluster"}},"data":{}}`, "null"),
			"Restored", "shard=-", "shard=3", addShard, ""},
		"the label leaves": {"/clusters", oddReview("secrets", "prod-eu", "UPDATE", `{"metadata":{"name":"prod-eu"},"data":{"shard":"MA=="}}`,
			`{"metadata":{"name":"prod-eu","labels":{"argocd.argoproj.io/secret-type":"cluster"}},"data":{"shard":"Mw=="}}`), "Unmanaged", "shard=0 secret-type=-", "secret-type=-", "", ""},
		"immutable from now on":            {"/clusters", oddSecret(`"immutable":true,"data":{"shard":"MA=="}`, `"data":{"shard":"MA=="}`), "Restored", "shard=0", "shard=3", putShard, zeroShard},
		"immutable, and elsewhere":         {"/clusters", oddSecret(`"immutable":true,"data":{"shard":"MA=="}`, `"immutable":true,"data":{"shard":"MA=="}`), "Immutable", "shard=0", "-", "", "ballast: the Secret is immutable: shard 0 stays, plan 17 has 3; re-create it to change that"},
		"immutable, and in place":          {"/clusters", oddSecret(`"immutable":true,"data":{"shard":"Mw=="}`, `"immutable":true,"data":{"shard":"Mw=="}`), "InPlan", "shard=3", "shard=3", "", ""},
		"a pin of -0":                      {"/clusters", pinnedSecret(`"-0"`), "Assigned", "shard=- pin=invalid", "shard=1 pin=-", addOne, fmt.Sprintf(badPin, `"-0"`)},
		"a pin of 20 digits":               {"/clusters", pinnedSecret(`"99999999999999999999"`), "Assigned", "shard=- pin=invalid", "shard=1 pin=-", addOne, fmt.Sprintf(badPin, "its value")},
		"a pin of a megabyte":              {"/clusters", pinnedSecret(`"` + strings.Repeat("9", 1<<20) + `"`), "Assigned", "shard=- pin=invalid", "shard=1 pin=-", addOne, fmt.Sprintf(badPin, "its value")},
		"a pin that is no text":            {"/clusters", pinnedSecret(`2`), "Assigned", "shard=-", "shard=1", addOne, ""},
		"a pin at maxReplicas":             {"/clusters", pinnedSecret(`"16"`), "Assigned", "shard=- pin=16", "shard=1 pin=-", addOne, fmt.Sprintf(badPin, `"16"`)},
		"a pin of a replica to come waits": {"/clusters", pinnedSecret(`"15"`), "Assigned", "shard=- pin=15", "shard=1 pin=15", addOne, ""},
		"a pin":                            {"/clusters", pinnedSecret(`"1"`), "Pinned", "shard=- pin=1", "shard=1 pin=1", addOne, ""},
		"generateName":                     {"/clusters", newSecret(`"generateName":"c-"`, `"server":"aHR0cHM6Ly9jMw=="`), "Assigned", "shard=-", "shard=1", addOne, ""},
		"generateName without a server":    {"/clusters", newSecret(`"generateName":"c-"`, ""), "Unmanaged", "shard=-", "-", "", noServer},
		"another name for a server":        {"/clusters", newSecret(`"name":"new"`, `"server":"`+base64Of("https://us.example/")+`"`), "Assigned", "shard=-", "shard=0", `[{"op":"add","path":"/data/shard","value":"MA=="}]`, ""},
		"a server of 4,000 characters":     {"/clusters", newSecret(`"name":"new"`, `"server":"`+base64Of("https://"+strings.Repeat("a", 4000))+`"`), "Unmanaged", "shard=-", "-", "", noServer},
		"no object":                        {"/clusters", oddReview("secrets", "prod-eu", "UPDATE", "null", "null"), "Faulted", "-", "-", "", fault},
		"a list as the object":             {"/clusters", oddReview("secrets", "prod-eu", "UPDATE", "[]", "null"), "Faulted", "-", "-", "", fault},
		"DELETE":                           {"/clusters", oddReview("secrets", "prod-eu", "DELETE", "null", "null"), "Unmanaged", "-", "-", "", ""},
		"100,000 levels":                   {"/clusters", oddReview("secrets", "prod-eu", "UPDATE", `{"metadata":`+strings.Repeat("[", 100000)+strings.Repeat("]", 100000)+`}`, "null"), "Faulted", "-", "-", "", fault},
		"100,000 levels beside what is read": {"/clusters", oddSecret(`"data":{"shard":"Mw==","config":`+strings.Repeat("[", 100000)+strings.Repeat("]", 100000)+`}`, "null"),
			"InPlan", "shard=3", "shard=3", "", ""},

		"env a reference": {"/controllers", oddWorkload(`"replicas":4,`, main+`,"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","valueFrom":{"fieldRef":{"fieldPath":"x"}}}]}`), "Restored", askedEnv + "reference", agreed,
			`[{"op":"replace","path":"/spec/template/spec/containers/0/env/0","value":{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}}]`, "ballast: ARGOCD_CONTROLLER_REPLICAS reference was asked, 16 stays (plan 17)"},
		"env twice, the last as planned": {"/controllers", oddWorkload(`"replicas":4,`, main+`,"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"3"},{"name":"A"},{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`), "Restored", agreed, agreed,
			`[{"op":"replace","path":"/spec/template/spec/containers/0/env/0/value","value":"16"}]`, ""},
		"env without a value": {"/controllers", oddWorkload(`"replicas":4,`, main+`,"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS"}]}`), "Restored", askedEnv + "-", agreed,
			`[{"op":"add","path":"/spec/template/spec/containers/0/env/0/value","value":"16"}]`, ""},
		"env null":                    {"/controllers", oddWorkload(`"replicas":4,`, main+`,"env":null}`), "Restored", askedEnv + "-", agreed, addEnv, ""},
		"env empty":                   {"/controllers", oddWorkload(`"replicas":4,`, main+`,"env":[]}`), "Restored", askedEnv + "-", agreed, `[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}}]`, ""},
		"envFrom only":                {"/controllers", oddWorkload(`"replicas":4,`, main+`,"envFrom":[{"configMapRef":{"name":"x"}}]}`), "Restored", askedEnv + "-", agreed, addEnv, ""},
		"a sidecar with the env":      {"/controllers", oddWorkload(`"replicas":4,`, side+`{"name":"renamed",`+runs+`}`), "Restored", askedEnv + "-", agreed, strings.Replace(addEnv, "containers/0", "containers/1", 1), ""},
		"a sidecar with the env, too": {"/controllers", oddWorkload(`"replicas":4,`, side+`{"name":"renamed","args":["/usr/local/bin/argocd-application-controller"],"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"1"}]}`), "Restored", askedEnv + "1", agreed, `[{"op":"replace","path":"/spec/template/spec/containers/1/env/0/value","value":"16"}]`, "ballast: ARGOCD_CONTROLLER_REPLICAS 1 was asked, 16 stays (plan 17)"},
		"no replicas":                 {"/controllers", oddWorkload("", main+`,"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`), "Restored", "replicas=- ARGOCD_CONTROLLER_REPLICAS=16", agreed, `[{"op":"add","path":"/spec/replicas","value":4}]`, fmt.Sprintf(fewReplicas, "no")},
		"replicas of 31 bits":         {"/controllers", oddWorkload(`"replicas":2147483647,`, main+`,"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"16"}]}`), "Restored", "replicas=2147483647 ARGOCD_CONTROLLER_REPLICAS=16", agreed, "[" + putReplicas + "]", fmt.Sprintf(fewReplicas, "2147483647")},
		"replicas with an exponent":   {"/controllers", oddWorkload(`"replicas":1e3,`, main+`}`), "Faulted", "-", "-", "", fault},
		"replicas in quotes":          {"/controllers", oddWorkload(`"replicas":"4",`, main+`}`), "Faulted", "-", "-", "", fault},
		"no spec":                     {"/controllers", oddReview("statefulsets", workload, "UPDATE", `{"metadata":{}}`, "null"), "Faulted", "-", "-", "", fault},
		"the binary in an init container": {"/controllers", oddReview("statefulsets", workload, "UPDATE", `{"metadata":{},"spec":{"replicas":4,"template":{"spec":{"initContainers":[`+main+`}],"containers":[{"name":"x"},{"name":"y"}]}}}}`, "null"),
			"InPlan", "replicas=4", "replicas=4", "", "ballast: no container runs argocd-application-controller, so ARGOCD_CONTROLLER_REPLICAS is not held"},
		"another kind of that name": {"/controllers", oddReview("deployments", workload, "UPDATE", `{"metadata":{},"spec":{"replicas":9,"template":{"spec":{"containers":[`+main+`}]}}}}`, "null"),
			"Unmanaged", "replicas=9 ARGOCD_CONTROLLER_REPLICAS=-", "-", "", ""},

		"a scale of nothing":     {"/scale", oddScale(`,"spec":{}`), "Restored", "replicas=0", "replicas=4", `[{"op":"add","path":"/spec/replicas","value":4}]`, fmt.Sprintf(fewReplicas, "0")},
		"a scale to 0":           {"/scale", oddScale(`,"spec":{"replicas":0}`), "Restored", "replicas=0", "replicas=4", "[" + putReplicas + "]", fmt.Sprintf(fewReplicas, "0")},
		"a scale without a spec": {"/scale", oddScale(""), "Restored", "replicas=0", "replicas=4", `[{"op":"add","path":"/spec","value":{"replicas":4}}]`, fmt.Sprintf(fewReplicas, "0")},
		"a scale of spec null":   {"/scale", oddScale(`,"spec":null`), "Restored", "replicas=0", "replicas=4", `[{"op":"add","path":"/spec","value":{"replicas":4}}]`, fmt.Sprintf(fewReplicas, "0")},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
			r := ask(t, h, tc.path, []byte(tc.body))
			got := []string{r.AuditAnnotations["reason"], r.AuditAnnotations["requested"], r.AuditAnnotations["enforced"], string(r.Patch), strings.Join(r.Warnings, "\n")}
			if diff := cmp.Diff([]string{tc.reason, tc.requested, tc.enforced, tc.patch, tc.warning}, got); diff != "" || !r.Allowed {
				t.Errorf("allowed: %t (-want +got):\n%s", r.Allowed, diff)
			}
		})
	}
}

// What is no review has no answer that the API server could read: it is refused as HTTP, and the failure policy judges.
func TestOddRequestsAreRefusedAsHTTP(t *testing.T) {
	review := oddSecret(`"data":{"shard":"MA=="}`, "null")
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(review)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		method, path, encoding, body string
		code                         int
	}{
		"a review":                      {http.MethodPost, "/clusters", "", review, http.StatusOK},
		"GET":                           {http.MethodGet, "/clusters", "", "", http.StatusMethodNotAllowed},
		"another path":                  {http.MethodPost, "/secrets", "", review, http.StatusNotFound},
		"v1beta1":                       {http.MethodPost, "/clusters", "", strings.Replace(review, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), http.StatusBadRequest},
		"no UID":                        {http.MethodPost, "/clusters", "", strings.Replace(review, `"uid":"u"`, `"uid":""`, 1), http.StatusBadRequest},
		"no request":                    {http.MethodPost, "/clusters", "", `{"apiVersion":"admission.k8s.io/v1"}`, http.StatusBadRequest},
		"nothing":                       {http.MethodPost, "/clusters", "", "", http.StatusBadRequest},
		"brackets that do not fit":      {http.MethodPost, "/clusters", "", strings.Replace(review, `"object":{`, `"object":{]]]]`, 1), http.StatusBadRequest},
		"more behind the review":        {http.MethodPost, "/clusters", "", review + "{}", http.StatusBadRequest},
		"gzip, which nobody unpacks":    {http.MethodPost, "/clusters", "gzip", zipped.String(), http.StatusBadRequest},
		"gzip without saying so":        {http.MethodPost, "/clusters", "", zipped.String(), http.StatusBadRequest},
		"a review that says it is gzip": {http.MethodPost, "/clusters", "gzip", review, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
			w, r := httptest.NewRecorder(), httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body))
			if tc.encoding != "" {
				r.Header.Set("Content-Encoding", tc.encoding)
			}
			h.ServeHTTP(w, r)
			if w.Code != tc.code {
				t.Errorf("status %d, want %d: %s", w.Code, tc.code, w.Body)
			}
		})
	}
}

// What whoever reaches the port sends is not sent back: a value that is longer than its field holds is not read.
func TestNoAnswerGrowsWithWhatWasSent(t *testing.T) {
	const size = 2 << 20
	begins := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","namespace":"argocd","operation":"UPDATE",`
	secret := `"resource":{"resource":"secrets"},"object":{"metadata":{"name":"a","labels":{"argocd.argoproj.io/secret-type":"cluster"}},"data":{"shard":"OTk=","server":"aHR0cHM6Ly9h"}}}}`
	planMap := `"resource":{"resource":"configmaps"},"name":"ballast-plan","object":{"metadata":{"name":"ballast-plan"},"data":{}},"oldObject":`
	workload := func(container string) string {
		return begins + `"name":"argocd-application-controller",` + `"resource":{"resource":"statefulsets"},"object":{"metadata":{"name":"argocd-application-controller"},"spec":{"template":{"spec":{"containers":[` + container + `]}}}}}}`
	}
	for name, tc := range map[string]struct{ path, body string }{
		"a uid":          {"/clusters", strings.Replace(begins, `"uid":"u"`, `"uid":"`+long("<", size)+`"`, 1) + `"name":"a",` + secret},
		"a name":         {"/clusters", begins + `"name":"` + long("\x7f", size) + `",` + secret},
		"no UTF-8":       {"/clusters", begins + `"name":"` + long("\xff", size) + `",` + secret},
		"an operation":   {"/clusters", strings.Replace(begins, "UPDATE", long("<", size), 1) + `"name":"a",` + secret},
		"a user":         {"/clusters", begins + `"name":"a","userInfo":{"username":"` + long("<", size) + `"},` + secret},
		"an annotation":  {"/clusters", begins + `"name":"a",` + strings.Replace(secret, `"name":"a",`, `"name":"a","annotations":{"ballast.argoproj.io/pin":"`+long("<", size)+`"},`, 1)},
		"its name":       {"/clusters", begins + `"name":"a",` + strings.Replace(secret, `"name":"a",`, `"name":"a","annotations":{"ballast.argoproj.io/`+long("<", size)+`":"x"},`, 1)},
		"a stored plan":  {"/plan", begins + planMap + `{"metadata":{"name":"ballast-plan"},"data":{"plan":"` + long("<", size) + `"}}}}`},
		"a stored note":  {"/plan", begins + planMap + `{"metadata":{"name":"ballast-plan","annotations":{"ballast.argoproj.io/reason":"` + long("<", size) + `"}},"data":{}}}}`},
		"a container":    {"/controllers", workload(`{"name":"` + long("<", size) + `"}`)},
		"a word":         {"/controllers", workload(`{"name":"a","args":["` + long("<", size) + `"]}`)},
		"an env's value": {"/controllers", workload(`{"name":"argocd-application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"` + long("<", size) + `"}]}`)},
		"a quantity":     {"/controllers", workload(`{"name":"argocd-application-controller","resources":{"limits":{"` + long("c", size) + `":"` + long("1", size) + `"}}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			var logged int
			log := funcr.New(func(_, args string) { logged = max(logged, len(args)) }, funcr.Options{Verbosity: 1})
			h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), log)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, tc.path, strings.NewReader(tc.body)))
			if w.Body.Len() > 8<<10 || logged > 8<<10 {
				t.Errorf("%d bytes were answered and %d logged to %d: %.300s", w.Body.Len(), logged, len(tc.body), w.Body)
			}
		})
	}
}

func long(s string, bytes int) string { return strings.Repeat(s, bytes) }

// A pod template that is too large to be read keeps no writer from the replicas that are held.
func TestReplicasAreHeldUnderATemplateThatIsTooLarge(t *testing.T) {
	many := func(one string, n int) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	limits := `"cpu":"1"`
	for i := range 64 {
		limits += fmt.Sprintf(`,"example.com/r%d":"1"`, i)
	}
	for name, container := range map[string]string{
		"70 entries of the env": `{"name":"a","env":[` + many(`{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"1"}`, 70) + `]}`,
		"5,000 words":           `{"name":"a","args":[` + many(`"x"`, 5000) + `]}`,
		"words of 300 KiB":      `{"name":"a","args":[` + many(`"`+long("x", 60<<10)+`"`, 5) + `]}`,
		"65 limits":             `{"name":"a","resources":{"limits":{` + limits + `}}}`,
		"300 containers":        many(`{"name":"a"}`, 300),
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/controllers", strings.NewReader(oddWorkload(`"replicas":0,`, container))))
			var answered admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &answered); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(`[{"op":"replace","path":"/spec/replicas","value":4}]`, string(answered.Response.Patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			want := []string{"ballast: 0 replicas were asked, 4 stay (plan 17); to fix a number, set partition.replicas in ballast-config",
				"ballast: the pod template is too large to be read here; the planner sets ARGOCD_CONTROLLER_REPLICAS"}
			if diff := cmp.Diff(want, answered.Response.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever names and values a write has, its answer acts on no terminal and holds no credential: names are answered before
// the API server has judged them.
func TestWhateverIsAnsweredIsHarmless(t *testing.T) {
	const secret = "s3cr3t-t0ken"
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x1b[2Ja", "a\u202eb", "a\nb", "\u009b", "https://u:" + secret + "@h", "prod-eu", "16", "-1"}))
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) string { return text.Draw(t, what) }
		quote := func(what string) string { return string(document(t, draw(what))) }
		meta := `{"metadata":{"name":` + quote("name") + `,"labels":{"argocd.argoproj.io/secret-type":"cluster"},"annotations":{"ballast.argoproj.io/pin":` + quote("pin") + `}},`
		pins := string(document(t, quote("key")+": "+draw("value")+"\n"+draw("rest"))) // of YAML, JSON is a part
		h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
		for path, body := range map[string]string{
			"/clusters":    oddReview("secrets", "", "CREATE", meta+`"data":{"server":"`+base64Of(draw("server"))+`","shard":"`+base64Of(draw("shard"))+`"}}`, "null"),
			"/controllers": oddWorkload(`"replicas":9,`, `{"name":`+quote("container")+`,"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":`+quote("env")+`}]}`),
			"/plan":        oddReview("configmaps", "ballast-plan", "UPDATE", `{"metadata":{"name":"ballast-plan"},"data":{"pins":`+pins+`}}`, `{"metadata":{"name":"ballast-plan"},"data":{"pins":""}}`),
		} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
			var answered admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &answered); err != nil || answered.Response == nil {
				t.Fatalf("%s answers %s (%v)", path, w.Body, err)
			}
			r := answered.Response
			said := append([]string{r.AuditAnnotations["reason"], r.AuditAnnotations["requested"], r.AuditAnnotations["enforced"]}, r.Warnings...)
			if r.Result != nil {
				said = append(said, r.Result.Message)
			}
			for _, s := range said {
				if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.Contains(s, secret) {
					t.Fatalf("%s answers %q", path, s)
				}
			}
		}
	})
}
