package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/webhook/decision"
	"ballast/webhook/objects"
	"ballast/webhook/rawjson"
)

// review is an AdmissionReview request, read in place: its nodes live as long as the body.
type review struct {
	decision.Request
	uid         string
	operation   string
	dryRun      bool
	object, old rawjson.Node
}

// errNoReview says that a body is no AdmissionReview; there is no request to answer then.
var errNoReview = errors.New("the body is no admission.k8s.io/v1 AdmissionReview with a request")

// The longest values that a review's fields hold: names are DNS names, and a uid is of 36 characters. Kubernetes bounds
// no user's name; a longer one than this is nobody's that we know.
const (
	maxUID  = 64
	maxUser = 4 << 10
)

func parseReview(body []byte) (review, error) {
	var rv review
	root, err := rawjson.Parse(body)
	if err != nil {
		return rv, errNoReview
	}
	request, version := rawjson.Node(nil), rawjson.Node(nil)
	for key, value := range root.Members {
		switch {
		case key.Is("apiVersion"):
			version = value
		case key.Is("request"):
			request = value
		}
	}
	rv.read(request)
	if !version.Is("admission.k8s.io/v1") || rv.uid == "" {
		return rv, errNoReview
	}
	return rv, nil
}

func (rv *review) read(request rawjson.Node) {
	var uid, resource, name, namespace, operation, user rawjson.Node
	for key, value := range request.Members {
		switch {
		case key.Is("uid"):
			uid = value
		case key.Is("resource"):
			resource = value
		case key.Is("name"):
			name = value
		case key.Is("namespace"):
			namespace = value
		case key.Is("operation"):
			operation = value
		case key.Is("userInfo"):
			user = value
		case key.Is("object"):
			rv.object = value
		case key.Is("oldObject"):
			rv.old = value
		case key.Is("dryRun"):
			rv.dryRun = value.True()
		}
	}
	rv.uid, rv.Name, rv.Namespace = uid.Text(maxUID), name.Text(objects.MaxName), namespace.Text(objects.MaxName)
	rv.Kind, rv.User = kindOf(resource.Field("resource")), user.Field("username").Legible(maxUser)
	rv.operation = operation.Text(len(operationUpdate))
	rv.Create = rv.operation == operationCreate
}

// The operations that the webhooks are registered for.
const (
	operationCreate = "CREATE"
	operationUpdate = "UPDATE"
)

// kindOf is the workload kind of a resource; a scale subresource has that of its workload.
func kindOf(resource rawjson.Node) string {
	switch {
	case resource.Is("statefulsets"):
		return plan.StatefulSet
	case resource.Is("deployments"):
		return plan.Deployment
	}
	return ""
}

// answer is the AdmissionReview that goes back.
type answer struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Response   response `json:"response"`
}

type response struct {
	UID       string   `json:"uid"`
	Allowed   bool     `json:"allowed"`
	Status    *status  `json:"status,omitempty"`
	Patch     []byte   `json:"patch,omitempty"` // base64 in JSON
	PatchType string   `json:"patchType,omitempty"`
	Audit     audit    `json:"auditAnnotations"`
	Warnings  []string `json:"warnings,omitempty"`
}

type status struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// audit are the annotations of the API server's audit event; the keys are a contract, and each is there on every call.
type audit struct {
	Reason    plan.Reason `json:"reason"`
	Revision  string      `json:"revision"`
	Requested string      `json:"requested"`
	Enforced  string      `json:"enforced"`
}

// encodeAnswer writes a verdict as the API server reads it.
func encodeAnswer(uid string, v decision.Verdict) ([]byte, error) {
	r := response{UID: uid, Allowed: v.Denied == "", Warnings: v.Warnings,
		Audit: audit{v.Reason, decision.PrintRevision(v.Revision), decision.PrintFields(v.Requested),
			decision.PrintFields(v.Enforced)}}
	if v.Denied != "" {
		r.Status = &status{Code: 422, Reason: "Invalid", Message: printable.Text(v.Denied, decision.MaxMessage)}
	} else if len(v.Patches) > 0 {
		patch, err := marshal(v.Patches)
		if err != nil {
			return nil, fmt.Errorf("encoding the patch: %w", err)
		}
		r.Patch, r.PatchType = patch, "JSONPatch"
	}
	return marshal(answer{"admission.k8s.io/v1", "AdmissionReview", r})
}

// marshal writes JSON that is not for a page: '<' stays one byte, where json.Marshal makes it six.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
