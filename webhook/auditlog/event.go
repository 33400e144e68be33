package auditlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"ballast/planner/plan"
	"ballast/webhook/auditlog/fields"
)

// event is what is read of an audit.k8s.io/v1 Event. The objects of a request and its response are left out, so that
// they are never decoded.
type event struct {
	Kind             string      `json:"kind"`
	APIVersion       string      `json:"apiVersion"`
	AuditID          string      `json:"auditID"`
	Stage            string      `json:"stage"`
	RequestURI       string      `json:"requestURI"`
	Verb             string      `json:"verb"`
	User             user        `json:"user"`
	ImpersonatedUser *user       `json:"impersonatedUser"`
	ObjectRef        *objectRef  `json:"objectRef"`
	ResponseStatus   *statusPart `json:"responseStatus"`
	// Received is when the API server had the request; the server sets it, whatever the client sends.
	Received    time.Time         `json:"requestReceivedTimestamp"`
	Annotations map[string]string `json:"annotations"`
}

type user struct {
	Username string              `json:"username"`
	Extra    map[string][]string `json:"extra"` // said by who authenticated it
}

// ofAPod reports whether the token was one of a pod: the kubelet's, or one that somebody had bound to the pod, which
// makesToken tells of.
func (u user) ofAPod() bool { return len(u.Extra["authentication.kubernetes.io/pod-name"]) > 0 }

type objectRef struct {
	Resource    string `json:"resource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	APIGroup    string `json:"apiGroup"`
	Subresource string `json:"subresource"`
}

type statusPart struct {
	Code    int    `json:"code"`
	Message string `json:"message"` // compared, never handed on: it quotes what people sent
}

// The stages in which a request is over.
const (
	stageComplete = "ResponseComplete"
	stagePanic    = "Panic"
)

// failedOpen begins the keys of the annotations whose values name the webhooks that did not answer; mutation those
// whose values tell who changed the object. Each goes on with round_<n>_index_<m>.
const (
	failedOpen = "failed-open.mutation.webhook.admission.k8s.io/"
	mutation   = "mutation.webhook.admission.k8s.io/"
)

var errNoEvent = errors.New("no audit.k8s.io Event")

// parse reads one line. Nothing of ballast's was concerned where ours is false.
func parse(line []byte, p planners) (w Write, ours bool, err error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return w, false, fmt.Errorf("decoding an audit event: %w", err)
	}
	if e.Kind != "Event" || !strings.HasPrefix(e.APIVersion, "audit.k8s.io/") {
		return w, false, errNoEvent
	}
	if e.ObjectRef == nil || e.Stage != stageComplete && e.Stage != stagePanic {
		return w, false, nil
	}
	if webhook, kind := e.ObjectRef.webhook(); webhook != "" {
		w = e.write(kind)
		if e.judge(&w, webhook+"."+plan.Group) {
			return w, true, nil
		}
	}
	if kind := e.unasked(p); kind != "" {
		w = e.write(kind)
		w.Effect, w.Reason, w.Requested, w.Enforced = Unasked, NotAsked, fields.Absent, fields.Absent
		if p.wrote(e) && e.byPlan(kind) {
			w.Effect = Agreed
		}
		return w, true, nil
	}
	return Write{}, false, nil
}

// byPlan reports whether what the planner wrote there is the plan's: sizes of pods, and shards. Of what came by a token
// that no pod has it is not known: under components/fail-closed nobody judges a shard by the planner's name.
func (e event) byPlan(kind string) bool {
	stamped := kind == kindSecret && !e.deletes() && !isOwn(e.ObjectRef.Name)
	return kind == kindPod || stamped && e.User.ofAPod()
}

// webhook is the one that is asked about an object, and the object's kind as people write it; "" for none. An
// annotation of another webhook than the object's own is not ballast's, and none of them has to do with what is the
// planner's alone: whatever label somebody gives it, whatever webhook of such a name somebody registers.
func (o objectRef) webhook() (name, kind string) {
	if o.Name == keyName || o.Name == historyName || o.Name == configName {
		return "", ""
	}
	switch o.APIGroup + "/" + o.Resource + "/" + o.Subresource {
	case "/secrets/":
		return "clusters", kindSecret
	case "/configmaps/":
		return "plan", kindConfigMap
	case "apps/statefulsets/":
		return "controllers", kindStatefulSet
	case "apps/deployments/":
		return "controllers", kindDeployment
	case "apps/statefulsets/scale":
		return "scale", kindStatefulSet
	case "apps/deployments/scale":
		return "scale", kindDeployment
	case "/pods/":
		return "pods", kindPod
	}
	return "", ""
}

func (e event) write(kind string) Write {
	w := Write{
		Time: e.Received.UTC(), AuditID: printText(e.AuditID), User: printText(e.User.Username),
		Verb:      printVerb(e.Verb),
		Namespace: printName(e.ObjectRef.Namespace), Kind: kind, Name: printName(e.ObjectRef.Name),
		Subresource: e.ObjectRef.Subresource,
		DryRun:      e.dryRun(), Panicked: e.Stage == stagePanic,
	}
	if e.ImpersonatedUser != nil {
		w.User, w.By = printText(e.ImpersonatedUser.Username), w.User
	}
	w.Account = AccountOf(w.User)
	if e.ResponseStatus != nil {
		w.Code = e.ResponseStatus.Code
	}
	return w
}

// judge fills in what the webhook of that name said, and reports whether it was concerned at all. Where it answered one
// round and not the next, the write passed as the API server's other webhooks left it: that counts as failed open.
func (e event) judge(w *Write, webhook string) bool {
	reason, answered := e.Annotations[webhook+"/reason"]
	w.Reason = printReason(reason)
	w.Requested = fields.Print(e.Annotations[webhook+"/requested"])
	w.Enforced = fields.Print(e.Annotations[webhook+"/enforced"])
	w.Revision = readRevision(e.Annotations[webhook+"/revision"])
	switch {
	case e.failedOpen(webhook):
		w.Reason = FailedOpen
	case answered:
	case e.failedClosed(webhook):
		w.Reason = FailedClosed
	default:
		return false
	}
	w.Effect = effectOf(w.Reason, w.Requested, w.Enforced)
	switch {
	case w.Effect != Agreed && w.Effect != Passed:
	case e.mutatedAgain(webhook):
		// Its words are those of the first round, when nothing was to be done: another webhook changed the object then.
		w.Effect = Rewritten
	case fields.Steer(w.Enforced):
		w.Effect = Steered
	}
	return true
}

// mutatedAgain reports whether a webhook changed the object in a later round than the first.
func (e event) mutatedAgain(webhook string) bool {
	for key, value := range e.Annotations {
		round, ok := strings.CutPrefix(key, mutation)
		if !ok || strings.HasPrefix(round, "round_0_") {
			continue
		}
		var told struct {
			Webhook string `json:"webhook"`
			Mutated bool   `json:"mutated"`
		}
		if json.Unmarshal([]byte(value), &told) == nil && told.Mutated && told.Webhook == webhook {
			return true
		}
	}
	return false
}

func (e event) failedOpen(webhook string) bool {
	for key, value := range e.Annotations {
		if value == webhook && strings.HasPrefix(key, failedOpen) {
			return true
		}
	}
	return false
}

// failedClosed knows it by the beginning of the API server's own message, where nobody else's words can stand.
func (e event) failedClosed(webhook string) bool {
	const begins = "Internal error occurred: failed calling webhook "
	return e.ResponseStatus != nil && e.ResponseStatus.Code >= 500 &&
		strings.HasPrefix(e.ResponseStatus.Message, fmt.Sprintf("%s%q", begins, webhook))
}

// deletes reports whether the request takes objects away.
func (e event) deletes() bool { return e.Verb == verbDelete || e.Verb == verbDeleteAll }

// dryRun reads the request's own parameter, in whatever way it is escaped. Of a deletion it tells nothing: the API
// server goes by the options in the body where there is one, which no log at level Metadata holds. Nor of a token: the
// API server makes one whatever the parameter says.
func (e event) dryRun() bool {
	token := e.ObjectRef.Resource == "serviceaccounts" && e.ObjectRef.Subresource == "token"
	if e.deletes() || token {
		return false
	}
	_, query, _ := strings.Cut(e.RequestURI, "?")
	values, _ := url.ParseQuery(query) // what can be read of it is what the API server acted on
	return slices.Contains(values["dryRun"], "All")
}
