// Package probe asks the webhooks whether they are there and hold the plan.
package probe

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/probing"
)

const (
	// maxTries is one more than the idle connections to a webhook that an API server keeps (client-go,
	// transport/cache.go, idleConnsPerHost): each probe ends the one that it came on.
	maxTries = 26
	// maxSecrets is how many Secrets are tried until one is still there and takes a write.
	maxSecrets = 6
)

// Held is what the webhooks hold.
type Held struct {
	View      *plan.View // the plan in force, with people's pins
	Secrets   []string   // the cluster Secrets that may be written, in the order in which they are tried
	Workload  discover.Workload
	ConfigMap string    // the plan's
	Now       time.Time // tells this question to the plan's webhook from the last one
}

// Result is what a probe found. Nothing is asked where nothing is held.
type Result struct {
	Asked  int
	Unheld []string // a sentence for each webhook that let a wrong value pass, or could not be asked

	PutBack []probing.PutBack // what the plan's webhook says of whose writes it put back, by those of its pods that were asked
}

// Ask asks each webhook whether it is there and holds the plan: it writes a wrong value by a server-side dry-run, and
// looks for the plan's in the answer. The plan's webhook, which admits whatever the planner writes, is asked a question
// instead. The client's warnings must go to Warnings. A webhook without a caBundle or a Service without endpoints looks
// well from everywhere else, for its failurePolicy lets writes pass. No webhook answers with an old plan: it reads the
// plan anew for the planner.
func Ask(ctx context.Context, c client.Client, h Held) Result {
	var told []probing.PutBack // by one question alone, whose answers come one after the other
	list := questions(h, func(p probing.PutBack) { told = append(told, p) })
	answers := make([]string, len(list))
	var all sync.WaitGroup
	for i, q := range list {
		all.Go(func() { answers[i] = q.ask(ctx, c) }) // a webhook that does not answer takes its whole timeout
	}
	all.Wait()
	return Result{Asked: len(list), PutBack: told, Unheld: slices.DeleteFunc(answers, func(why string) bool { return why == "" })}
}

// question is one wrong write and what has to become of it.
type question struct {
	webhook     string // its name in the configuration
	fails       string // what a webhook does that does not hold the value, to an object: a verb with %s
	kind        schema.GroupVersionKind
	namespace   string
	subresource string
	patchType   types.PatchType
	of          []object // the first that is there and takes a write is written to
	got         func(*unstructured.Unstructured) (string, error)
}

// object is one that may be written to, the wrong write, and the value that it holds.
type object struct {
	name  string
	patch map[string]any
	want  string
}

// questions has one to each webhook, for a value that it holds now.
func questions(h Held, heard func(probing.PutBack)) []question {
	return slices.Concat(ofClusters(h), ofWorkload(h), []question{ofPlan(h, heard)})
}

// ofWorkload asks by one replica too many.
func ofWorkload(h Held) []question {
	p := h.View.Plan
	q := question{webhook: "controllers." + plan.Group, fails: "let a wrong number of replicas of %s pass a dry-run",
		kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: p.Target.Kind}, namespace: p.Target.Namespace,
		patchType: types.MergePatchType, got: specReplicas, of: []object{{p.Target.Name,
			ofTheWorkload(map[string]any{"replicas": p.Replicas + 1,
				"template": map[string]any{"metadata": noTimes()}}), strconv.Itoa(p.Replicas)}}}
	switch {
	case h.Workload.Unmanaged:
	case !p.FreeReplicas:
		scale := q
		scale.webhook, scale.subresource = "scale."+plan.Group, "scale"
		scale.of = []object{{p.Target.Name, map[string]any{"metadata": noManagers(),
			"spec": map[string]any{"replicas": p.Replicas + 1}}, strconv.Itoa(p.Replicas)}}
		if h.Workload.NoText {
			return []question{scale}
		}
		return []question{q, scale}
	case h.Workload.NoText || h.Workload.ContainerGone: // what the webhook answers goes by JSON, and would change what the planner may not
	case p.ControllerReplicas > 0 && h.Workload.EnvReplicas != nil:
		q.fails = "let a wrong " + plan.EnvReplicas + " of %s pass a dry-run"
		q.patchType = types.StrategicMergePatchType
		q.got = func(u *unstructured.Unstructured) (string, error) { return envOf(u, p.Target.Container) }
		held := p.ControllerReplicas
		if stands, err := strconv.Atoi(*h.Workload.EnvReplicas); err == nil && p.Awaits(stands) {
			held = stands
		}
		q.of = []object{{p.Target.Name, envPatch(p.Target.Container, held+1), strconv.Itoa(held)}}
		return []question{q}
	}
	return nil
}

// ofPlan asks by an annotation that the webhook answers in. By another one it asks whose writes were put back, to which
// a webhook of an older release says nothing.
func ofPlan(h Held, heard func(probing.PutBack)) question {
	asked := probing.Question(strconv.FormatInt(h.Now.Unix(), 10))
	want, _ := probing.Answer(asked)
	meta := noManagers()
	meta["annotations"] = map[string]string{probing.AnnotationProbe: asked,
		probing.AnnotationPutBack: probing.PutBackAsked}
	return question{webhook: "plan." + plan.Group, fails: "does not answer a dry-run of %s",
		kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, namespace: h.View.Plan.Target.Namespace,
		patchType: types.MergePatchType, of: []object{{h.ConfigMap, map[string]any{"metadata": meta}, want}},
		got: func(u *unstructured.Unstructured) (string, error) {
			if p, told := probing.ParsePutBack(u.GetAnnotations()[probing.AnnotationPutBack]); told {
				heard(p)
			}
			return u.GetAnnotations()[probing.AnnotationProbe], nil
		}}
}

// ofClusters asks by Secrets without a pin, if there is one: a person may change a pin at any moment.
func ofClusters(h Held) []question {
	tried := spread(h, false)
	if len(tried) == 0 {
		tried = spread(h, true)
	}
	if len(tried) == 0 {
		return nil
	}
	return []question{{webhook: "clusters." + plan.Group, fails: "let a wrong shard of %s pass a dry-run",
		kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, namespace: h.View.Plan.Target.Namespace,
		patchType: types.MergePatchType, of: tried, got: shardOf}}
}

// spread is the first Secrets that have a pin, or none, of every replica by turns: whoever has some Secrets of one must
// not be all that are asked.
func spread(h Held, pinned bool) []object {
	type candidate struct {
		turn, shard int
		name        string
	}
	var list []candidate
	turns := map[int]int{}
	for _, name := range h.Secrets {
		shard, _, planned := h.View.Effective(name)
		if _, pin := h.View.Pin(name); pin != pinned || !planned {
			continue
		}
		list = append(list, candidate{turns[shard], shard, name})
		turns[shard]++
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.turn, b.turn) })
	var tried []object
	for _, c := range list[:min(maxSecrets, len(list))] {
		wrong := []byte(strconv.Itoa(wrongFor(c.shard, h.View.Plan.Replicas)))
		tried = append(tried, object{c.name, map[string]any{"metadata": noManagers(),
			"data": map[string][]byte{plan.ShardKey: wrong}}, strconv.Itoa(c.shard)})
	}
	return tried
}

// wrongFor is another shard that is valid, as far as anything else looks at it.
func wrongFor(shard, replicas int) int {
	wrong := shard + 1
	longer := len(strconv.Itoa(wrong)) > len(strconv.Itoa(shard)) // a Secret may be full to its last byte
	if shard > 0 && (longer || wrong >= replicas) {
		return shard - 1
	}
	return wrong
}

// noManagers has the API server go without what it keeps of an object's managers, which somebody may have made too many
// to merge in time, or none that it can read back. A dry-run forgets none.
func noManagers() map[string]any { return map[string]any{"managedFields": []struct{}{{}}} }

// ofTheWorkload is the patch of a workload's spec without what of its status and managers may be of no use to the API
// server: somebody may have brought times that JSON does not have.
func ofTheWorkload(spec map[string]any) map[string]any {
	return map[string]any{"metadata": noManagers(), "spec": spec, "status": nil}
}

// noTimes has the API server go without the times of a pod template's metadata, which say nothing.
func noTimes() map[string]any {
	return map[string]any{"creationTimestamp": nil, "deletionTimestamp": nil, "managedFields": nil}
}

// ask asks until a probe came on a connection that was dialled for it, and answers why the webhook does not hold the
// value, "" where it does. A webhook that does not say how a probe came is one of an older release, and believed.
func (q question) ask(ctx context.Context, c client.Client) (why string) {
	defer func() {
		if p := recover(); p != nil { // it reads what others wrote, in a goroutine of its own
			why = fmt.Sprintf("%s could not be asked: a panic of type %T", q.webhook, p)
		}
	}()
	for range maxTries {
		came := &connections{}
		if why = q.askOnce(context.WithValue(ctx, connectionsKey{}, came), c); why != "" || came.anew || !came.used {
			return why
		}
	}
	return why // others' calls fill up the connections as fast as probes end them, so that they are dialled
}

// askOnce shows nothing of the object.
func (q question) askOnce(ctx context.Context, c client.Client) string {
	var err error
	for _, o := range q.of {
		patch, e := json.Marshal(o.patch)
		if e != nil {
			return fmt.Sprintf("%s could not be asked: %v", q.webhook, e)
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(q.kind)
		u.SetNamespace(q.namespace)
		u.SetName(o.name)
		if err = q.write(ctx, c, u, client.RawPatch(q.patchType, patch)); err == nil {
			return q.judge(u, o)
		}
		if !q.ofTheObject(err) {
			break
		}
	}
	return fmt.Sprintf("%s could not be asked: %v", q.webhook, answer.Unquoted(err))
}

// judge answers why the webhook does not hold the value, "" where it does.
func (q question) judge(u *unstructured.Unstructured, o object) string {
	got, err := q.got(u)
	switch {
	case err != nil:
		return fmt.Sprintf("%s could not be asked: %v", q.webhook, err)
	case got != o.want:
		return q.webhook + " " + fmt.Sprintf(q.fails, fmt.Sprintf("%s %q", q.kind.Kind, o.name))
	}
	return ""
}

// ofTheObject reports whether an error says something of that object alone, so that another one may answer: it is gone,
// or somebody made it one that takes no write. What the webhook itself refuses it refuses of any.
func (q question) ofTheObject(err error) bool {
	reasons := []metav1.StatusReason{metav1.StatusReasonNotFound, metav1.StatusReasonInvalid,
		metav1.StatusReasonForbidden, metav1.StatusReasonRequestEntityTooLarge}
	return answer.Webhook(err) != q.webhook && slices.Contains(reasons, apierrors.ReasonForError(answer.Unquoted(err)))
}

func (q question) write(ctx context.Context, c client.Client, u *unstructured.Unstructured, patch client.Patch) error {
	if q.subresource != "" {
		return c.SubResource(q.subresource).Patch(ctx, u, patch, client.DryRunAll)
	}
	return c.Patch(ctx, u, patch, client.DryRunAll)
}

// Warnings is the warning handler of a client that probes: it tells each probe how it came to the webhook. Nothing else
// is heard, for each probe is warned of the wrong value that it writes.
type Warnings struct{}

var _ rest.WarningHandlerWithContext = Warnings{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (Warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if came, probes := ctx.Value(connectionsKey{}).(*connections); probes {
		came.anew = came.anew || text == probing.ProbedOnNew
		came.used = came.used || text == probing.ProbedOnUsed
	}
}

// connections are those on which a probe came: several where the API server asked more than once.
type connections struct{ anew, used bool }

type connectionsKey struct{}

// specReplicas is 0 where the field is absent, as it is in a Scale of 0.
func specReplicas(u *unstructured.Unstructured) (string, error) {
	n, _, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return strconv.FormatInt(n, 10), err
}

var errNoShard = errors.New("data.shard is not base64")

func shardOf(u *unstructured.Unstructured) (string, error) {
	encoded, _, err := unstructured.NestedString(u.Object, "data", plan.ShardKey)
	if err != nil {
		return "", errNoShard
	}
	shard, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", errNoShard
	}
	return string(shard), nil
}

func envPatch(container string, replicas int) map[string]any {
	env := []any{map[string]any{"name": plan.EnvReplicas, "value": strconv.Itoa(replicas)}}
	return ofTheWorkload(map[string]any{"template": map[string]any{"metadata": noTimes(), "spec": map[string]any{
		"containers": []any{map[string]any{"name": container, "env": env}}}}})
}

// envOf is the replicas that the container is told.
func envOf(u *unstructured.Unstructured, container string) (string, error) {
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return "", err
	}
	for _, c := range containers {
		if fields, ok := c.(map[string]any); ok && fields["name"] == container {
			return envIn(fields), nil
		}
	}
	return "", fmt.Errorf("no container is called %q", container)
}

func envIn(container map[string]any) string {
	env, _, _ := unstructured.NestedSlice(container, "env")
	for _, e := range env {
		if entry, ok := e.(map[string]any); ok && entry["name"] == plan.EnvReplicas {
			value, _ := entry["value"].(string)
			return value
		}
	}
	return ""
}
