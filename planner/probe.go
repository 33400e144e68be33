package planner

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/discover"
	"ballast/planner/installation"
	"ballast/planner/plan"
)

const (
	// probeEvery is how long the answer of a probe is believed; one that failed is asked again at the next cycle.
	probeEvery = 5 * time.Minute
	// probeFresh is how old an answer may be on which a rollout begins.
	probeFresh = 10 * time.Second
	// probeTries is one more than the idle connections to a webhook that an API server keeps (client-go, transport/cache.go,
	// idleConnsPerHost): each probe ends the one that it came on.
	probeTries = 26
	// probeSecrets is how many Secrets are tried until one is still there.
	probeSecrets = 3
)

// The webhooks, by their names in the configuration.
const (
	webhookClusters    = "clusters." + plan.Group
	webhookControllers = "controllers." + plan.Group
	webhookScale       = "scale." + plan.Group
	webhookPlan        = "plan." + plan.Group
)

// Probed is what a probe found. Nothing is asked where nothing is to be held.
type Probed struct {
	Asked  int
	Unheld []string // a sentence for each webhook that let a wrong value pass, or could not be asked
}

// Probe asks each webhook whether it is there and holds the plan: it writes a wrong value by a server-side dry-run, and looks
// for the plan's in the answer. That of the plan, which admits whatever the planner writes, is asked a question instead. The
// client's warnings must go to ProbeWarnings. A webhook without a caBundle or a Service without endpoints looks well from everywhere else,
// for its failurePolicy lets writes pass. A webhook never turns the planner back by an old plan: it reads the plan anew, so
// that the answer is that of the plan in force.
func Probe(ctx context.Context, c client.Client, in Inputs) Probed {
	questions := probes(in)
	answers := make([]string, len(questions))
	var all sync.WaitGroup
	for i, q := range questions {
		all.Go(func() { answers[i] = q.ask(ctx, c) }) // a webhook that does not answer takes its whole timeout
	}
	all.Wait()
	p := Probed{Asked: len(questions)}
	for _, a := range answers {
		if a != "" {
			p.Unheld = append(p.Unheld, a)
		}
	}
	return p
}

// probe is one wrong write and what has to become of it.
type probe struct {
	webhook     string
	fails       string // what a webhook does that does not hold the value, to an object: a verb with %s
	kind        schema.GroupVersionKind
	namespace   string
	names       []string // the first that is there is written to
	subresource string
	patchType   types.PatchType
	patch       any
	got         func(*unstructured.Unstructured) (string, error)
	want        string
}

// probes are the questions to ask: of each webhook one for a value that it holds now.
func probes(in Inputs) []probe {
	list := probesOfClusters(in)
	p := *in.InForce
	workload := probe{kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: p.Target.Kind}, namespace: p.Target.Namespace, names: []string{p.Target.Name},
		patchType: types.MergePatchType, patch: map[string]any{"spec": map[string]any{"replicas": p.Replicas + 1}},
		fails: "let a wrong number of replicas of %s pass a dry-run", got: specReplicas, want: strconv.Itoa(p.Replicas)}
	switch {
	case in.Workload.Unmanaged:
	case !p.FreeReplicas:
		controllers, scale := workload, workload
		controllers.webhook = webhookControllers
		scale.webhook, scale.subresource = webhookScale, "scale"
		list = append(list, controllers, scale)
	case p.ControllerReplicas > 0 && in.Workload.EnvReplicas != nil:
		env := workload
		env.webhook, env.fails = webhookControllers, "let a wrong "+plan.EnvReplicas+" of %s pass a dry-run"
		env.patchType, env.patch = types.StrategicMergePatchType, envPatch(p.Target.Container, p.ControllerReplicas+1)
		env.got, env.want = func(u *unstructured.Unstructured) (string, error) { return envOf(u, p.Target.Container) }, strconv.Itoa(p.ControllerReplicas)
		list = append(list, env)
	}
	return append(list, probeOfPlan(in))
}

// probeOfPlan asks by an annotation that the webhook answers in. The time tells the question from the last one.
func probeOfPlan(in Inputs) probe {
	question := plan.ProbeQuestion(strconv.FormatInt(in.Now.Unix(), 10))
	answer, _ := plan.ProbeAnswer(question)
	return probe{webhook: webhookPlan, fails: "does not answer a dry-run of %s", kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		namespace: in.InForce.Target.Namespace, names: []string{in.Config.Plan.ConfigMap}, patchType: types.MergePatchType,
		patch: map[string]any{"metadata": map[string]any{"annotations": map[string]string{plan.AnnotationProbe: question}}},
		got: func(u *unstructured.Unstructured) (string, error) {
			return u.GetAnnotations()[plan.AnnotationProbe], nil
		}, want: answer}
}

// probesOfClusters asks by Secrets of one shard, those without a pin first: a person may change a pin at any moment.
func probesOfClusters(in Inputs) []probe {
	fleet, _, _ := discover.Discover(in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, in.Now) // nothing known, so nothing is lost
	pins := allPins(in.Pins, fleet.Clusters)
	view := plan.NewView(*in.InForce, pins)
	byShard := func(pinned bool) (names []string, shard int) {
		for _, c := range fleet.Clusters {
			name := c.Shard.ID
			replica, _, planned := view.Effective(name)
			if _, pin := pins[name]; pin != pinned || !planned || !managed(c) || c.Immutable || len(names) > 0 && replica != shard {
				continue
			}
			if names, shard = append(names, name), replica; len(names) == probeSecrets {
				break
			}
		}
		return names, shard
	}
	names, shard := byShard(false)
	if len(names) == 0 {
		names, shard = byShard(true)
	}
	if len(names) == 0 {
		return nil
	}
	wrong := shard + 1
	if wrong >= in.InForce.Replicas && shard > 0 {
		wrong = shard - 1 // valid, as far as anything else looks at it
	}
	return []probe{{webhook: webhookClusters, fails: "let a wrong shard of %s pass a dry-run", kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, namespace: in.InForce.Target.Namespace,
		names: names, patchType: types.MergePatchType, patch: map[string]any{"data": map[string][]byte{plan.ShardKey: []byte(strconv.Itoa(wrong))}},
		got: shardOf, want: strconv.Itoa(shard)}}
}

// ask asks until a probe came on a connection that was dialled for it, and answers why the webhook does not hold the value,
// "" where it does. A webhook that does not say how a probe came is one of an older release, and believed.
func (q probe) ask(ctx context.Context, c client.Client) (why string) {
	for range probeTries {
		came := &connections{}
		if why = q.askOnce(context.WithValue(ctx, connectionsKey{}, came), c); why != "" || came.anew || !came.used {
			return why
		}
	}
	return why // others' calls fill up the connections as fast as probes end them, so that they are dialled
}

// askOnce shows nothing of the object.
func (q probe) askOnce(ctx context.Context, c client.Client) string {
	patch, err := json.Marshal(q.patch)
	if err != nil {
		return fmt.Sprintf("%s could not be asked: %v", q.webhook, err)
	}
	for _, name := range q.names {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(q.kind)
		u.SetNamespace(q.namespace)
		u.SetName(name)
		if err = q.write(ctx, c, u, client.RawPatch(q.patchType, patch)); apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			break
		}
		got, err := q.got(u)
		switch {
		case err != nil:
			return fmt.Sprintf("%s could not be asked: %v", q.webhook, err)
		case got != q.want:
			return q.webhook + " " + fmt.Sprintf(q.fails, fmt.Sprintf("%s %q", q.kind.Kind, name))
		}
		return ""
	}
	return fmt.Sprintf("%s could not be asked: %v", q.webhook, err)
}

func (q probe) write(ctx context.Context, c client.Client, u *unstructured.Unstructured, patch client.Patch) error {
	if q.subresource != "" {
		return c.SubResource(q.subresource).Patch(ctx, u, patch, client.DryRunAll)
	}
	return c.Patch(ctx, u, patch, client.DryRunAll)
}

// ProbeWarnings is the warning handler of a client that probes: it tells each probe how it came to the webhook. Nothing else is
// heard, for each probe is warned of the wrong value that it writes.
type ProbeWarnings struct{}

var _ rest.WarningHandlerWithContext = ProbeWarnings{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (ProbeWarnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if came, probes := ctx.Value(connectionsKey{}).(*connections); probes {
		came.anew = came.anew || text == plan.ProbedOnNew
		came.used = came.used || text == plan.ProbedOnUsed
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

func envPatch(container string, replicas int) any {
	env := []any{map[string]any{"name": plan.EnvReplicas, "value": strconv.Itoa(replicas)}}
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": container, "env": env}}}}}}
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

// probed is the last answer of a probe.
type probed struct {
	at    time.Time
	holds bool
}

// enforcement is whether the webhooks hold the plan in force, nil where that cannot be asked: nothing is enforced, or there
// is nothing to hold. Where they do not, it says which. The answer is as old as fresh allows.
func (l *Loop) enforcement(ctx context.Context, in Inputs, fresh time.Duration) (*bool, []string) {
	p := in.InForce
	if l.Probe == nil || p == nil || !p.Mode.Enforced() || in.BreakGlass {
		return l.notAsked()
	}
	age := l.Clock.Since(l.probed.at)
	if l.probed.holds && age >= 0 && age < fresh {
		return &l.probed.holds, nil
	}
	found := l.Probe(ctx, in)
	if found.Asked == 0 {
		return l.notAsked()
	}
	holds := len(found.Unheld) == 0
	if !holds {
		l.Log.Info("a probe of the webhooks failed", "unheld", found.Unheld)
	}
	l.probed = probed{at: l.Clock.Now(), holds: holds}
	l.Metrics.enforcement.WithLabelValues().Set(boolGauge(holds))
	return &holds, found.Unheld
}

func (l *Loop) notAsked() (*bool, []string) {
	l.probed = probed{}
	l.Metrics.enforcement.Reset()
	return nil, nil
}

// installation is where the cluster differs from what ballast was made for. It keeps nothing from being done: the probe says
// whether the webhooks hold the plan, whatever they are configured as.
func (l *Loop) installation(ctx context.Context, in Inputs) []installation.Finding {
	if l.Installed == nil {
		return nil
	}
	names := installation.Names{Namespace: in.Workload.Namespace, Workload: in.Workload.Name, Plan: in.Config.Plan.ConfigMap}
	seen, err := l.Installed(ctx, names)
	if err != nil {
		l.Log.Error(err, "looking at the installation; it is tried again")
	}
	l.Metrics.configured.Reset()
	if seen.Matches != nil {
		l.Metrics.configured.WithLabelValues().Set(boolGauge(*seen.Matches))
	}
	return seen.Findings
}
