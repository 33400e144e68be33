package probe

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/answer"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/probing"
)

var epoch = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// answerOfPlan is what the plan's webhook answers at the epoch.
func answerOfPlan() string {
	answer, _ := probing.Answer(probing.Question(strconv.FormatInt(epoch.Unix(), 10)))
	return answer
}

// fleet is a plan and people's wishes, before they are joined to what is held.
type fleet struct {
	plan plan.Plan
	pins plan.Pins
	held Held
}

// newFleet has three clusters on shard 0 of a StatefulSet of three replicas.
func newFleet() *fleet {
	f := &fleet{plan: plan.Plan{Replicas: 3, ControllerReplicas: 3, Clusters: map[string]plan.Row{},
		Target: plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "controller", Container: "main"}},
		held: Held{Workload: discover.Workload{EnvReplicas: ptr.To("3")}, ConfigMap: "ballast-plan", Now: epoch}}
	for _, name := range []string{"c000", "c001", "c002"} {
		f.plan.Clusters[name], f.held.Secrets = plan.Row{}, append(f.held.Secrets, name)
	}
	return f
}

func (f *fleet) move(name string, replica int) { f.plan.Clusters[name] = plan.Row{Replica: replica} }

func (f *fleet) hold() Held {
	f.held.View = plan.NewView(f.plan, f.pins)
	return f.held
}

func TestAProbeAsksForWhatIsHeld(t *testing.T) {
	atZero, ofPlan := "clusters c000 0 not 1, c001 0 not 1, c002 0 not 1", "plan "+answerOfPlan()
	for name, test := range map[string]struct {
		change func(*fleet)
		want   []string
	}{
		"all of it":               {func(*fleet) {}, []string{atZero, "controllers 3", "scale 3", ofPlan}},
		"a fleet without Secrets": {func(f *fleet) { f.held.Secrets = nil }, []string{"controllers 3", "scale 3", ofPlan}},
		"a Secret that no row names": {func(f *fleet) { f.held.Secrets = append([]string{"a"}, f.held.Secrets...) },
			[]string{atZero, "controllers 3", "scale 3", ofPlan}},
		"more Secrets than are tried": {func(f *fleet) {
			for _, name := range []string{"c003", "c004", "c005", "c006"} {
				f.move(name, 0)
				f.held.Secrets = append(f.held.Secrets, name)
			}
		}, []string{"clusters c000 0 not 1, c001 0 not 1, c002 0 not 1, c003 0 not 1, c004 0 not 1, c005 0 not 1", "controllers 3", "scale 3", ofPlan}},
		"Secrets of several shards": {func(f *fleet) { f.move("c002", 1) },
			[]string{"clusters c000 0 not 1, c002 1 not 2, c001 0 not 1", "controllers 3", "scale 3", ofPlan}},
		"the last shard": {func(f *fleet) { f.move("c000", 2) },
			[]string{"clusters c000 2 not 1, c001 0 not 1, c002 0 not 1", "controllers 3", "scale 3", ofPlan}},
		"one replica": {func(f *fleet) { f.plan.Replicas = 1 }, []string{atZero, "controllers 1", "scale 1", ofPlan}},
		"pins, while others have none": {func(f *fleet) { f.pins = plan.Pins{"c000": 2, "c001": 2} },
			[]string{"clusters c002 0 not 1", "controllers 3", "scale 3", ofPlan}},
		"nothing but pins": {func(f *fleet) { f.pins = plan.Pins{"c000": 2, "c001": 2, "c002": 1} },
			[]string{"clusters c000 2 not 1, c002 1 not 2, c001 2 not 1", "controllers 3", "scale 3", ofPlan}},
		"replicas that are people's": {func(f *fleet) { f.plan.FreeReplicas = true },
			[]string{atZero, "controllers 3", ofPlan}},
		"no env that could be held": {func(f *fleet) {
			f.plan.FreeReplicas, f.held.Workload.EnvReplicas = true, nil
		}, []string{atZero, ofPlan}},
		"a plan without an env": {func(f *fleet) {
			f.plan.FreeReplicas, f.plan.ControllerReplicas = true, 0
		}, []string{atZero, ofPlan}},
		"a workload that holds what is no text": {func(f *fleet) { f.held.Workload.NoText = true }, []string{atZero, "scale 3", ofPlan}},
		"such a one of people's replicas":       {func(f *fleet) { f.held.Workload.NoText, f.plan.FreeReplicas = true, true }, []string{atZero, ofPlan}},
		"one without its container":             {func(f *fleet) { f.held.Workload.ContainerGone, f.plan.FreeReplicas = true, true }, []string{atZero, ofPlan}},
		"a workload that opted out":             {func(f *fleet) { f.held.Workload.Unmanaged = true }, []string{atZero, ofPlan}},
		"nothing but the plan": {func(f *fleet) { f.held.Workload.Unmanaged, f.held.Secrets = true, nil },
			[]string{ofPlan}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet()
			test.change(f)
			var got []string
			for _, q := range questions(f.hold(), func(probing.PutBack) {}) {
				said := strings.TrimSuffix(q.webhook, "."+plan.Group)
				if said != "clusters" {
					got = append(got, said+" "+q.of[0].want)
					continue
				}
				var of []string
				for _, o := range q.of {
					of = append(of, o.name+" "+o.want+" not "+string(o.patch["data"].(map[string][]byte)[plan.ShardKey]))
				}
				got = append(got, said+" "+strings.Join(of, ", "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
		})
	}
}

// server is an API server that answers each dry-run with an object, by its kind, name and subresource.
type server struct {
	*testing.T
	objects map[string]map[string]any
	refuses map[string]error
	warns   [][]string // of the writes to one object in turn; the last are said again and again

	mu    sync.Mutex
	asked map[string]int
}

// newServer holds what newFleet has.
func newServer(t *testing.T) *server {
	replicas := map[string]any{"spec": map[string]any{"replicas": int64(3)}}
	answer := map[string]any{probing.AnnotationProbe: answerOfPlan()}
	s := &server{T: t, refuses: map[string]error{}, asked: map[string]int{}, objects: map[string]map[string]any{
		"StatefulSet controller": replicas, "StatefulSet controller scale": replicas,
		"ConfigMap ballast-plan": {"metadata": map[string]any{"annotations": answer}}}}
	for _, name := range newFleet().held.Secrets {
		s.shard(name, "0")
	}
	return s
}

func (s *server) shard(secret, value string) {
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	s.objects["Secret "+secret] = map[string]any{"data": map[string]any{plan.ShardKey: encoded}}
}

// env has the workload's container with an env.
func (s *server) env(container, value string) {
	env := []any{map[string]any{"name": "OTHER", "value": "3"}, map[string]any{"name": plan.EnvReplicas, "value": value}}
	containers := []any{map[string]any{"name": "sidecar"}, map[string]any{"name": container, "env": env}}
	template := map[string]any{"spec": map[string]any{"containers": containers}}
	s.objects["StatefulSet controller"] = map[string]any{"spec": map[string]any{"template": template}}
}

func (s *server) client() client.Client {
	patch := func(ctx context.Context, subresource string, o client.Object, dryRun []string) error {
		if diff := cmp.Diff([]string{"All"}, dryRun); diff != "" {
			s.Errorf("a probe is stored: dryRun (-want +got):\n%s", diff)
		}
		return s.answer(ctx, strings.TrimSpace(o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName()+" "+subresource), o)
	}
	return interceptor.NewClient(nil, interceptor.Funcs{
		Patch: func(ctx context.Context, _ client.WithWatch, o client.Object, _ client.Patch,
			options ...client.PatchOption) error {
			return patch(ctx, "", o, (&client.PatchOptions{}).ApplyOptions(options).DryRun)
		},
		SubResourcePatch: func(ctx context.Context, _ client.Client, sub string, o client.Object, _ client.Patch,
			options ...client.SubResourcePatchOption) error {
			return patch(ctx, sub, o, (&client.SubResourcePatchOptions{}).ApplyOptions(options).DryRun)
		}})
}

func (s *server) answer(ctx context.Context, key string, o client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[key]++
	if n := len(s.warns); n > 0 {
		for _, warning := range s.warns[min(s.asked[key], n)-1] {
			Warnings{}.HandleWarningHeaderWithContext(ctx, 299, "", warning)
		}
	}
	switch err := s.refuses[key]; {
	case errors.Is(err, errPanics):
		panic(err)
	case err != nil:
		return err
	}
	object, found := s.objects[key]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "objects"}, key)
	}
	o.(*unstructured.Unstructured).SetUnstructuredContent(object)
	return nil
}

const canary = "canary"

// errPanics stands for an object that the code which reads it cannot bear.
var errPanics = errors.New(canary)

func TestWhatIsNotHeldIsSaid(t *testing.T) {
	freeReplicas := func(f *fleet) { f.plan.FreeReplicas = true }
	for name, test := range map[string]struct {
		fleet  func(*fleet)
		server func(*server)
		asked  int
		unheld []string
	}{
		"all hold": {nil, nil, 4, nil},
		"none holds": {
			func(f *fleet) { f.plan.Replicas, f.held.Now = 4, epoch.Add(time.Second) },
			func(s *server) { s.shard("c000", canary) },
			4, []string{
				`clusters.ballast.argoproj.io let a wrong shard of Secret "c000" pass a dry-run`,
				`controllers.ballast.argoproj.io let a wrong number of replicas of StatefulSet "controller" pass a dry-run`,
				`scale.ballast.argoproj.io let a wrong number of replicas of StatefulSet "controller" pass a dry-run`,
				`plan.ballast.argoproj.io does not answer a dry-run of ConfigMap "ballast-plan"`}},
		"a Scale of none": {func(f *fleet) { f.plan.Replicas = 0 }, func(s *server) {
			s.objects["StatefulSet controller"] = map[string]any{}
			s.objects["StatefulSet controller scale"] = map[string]any{"spec": map[string]any{}}
		}, 4, nil},
		"a Secret that is gone": {nil, func(s *server) { delete(s.objects, "Secret c000") }, 4, nil},
		"a Secret that is gone, and one that is not held": {nil, func(s *server) {
			delete(s.objects, "Secret c000")
			s.shard("c001", "1")
		}, 4, []string{`clusters.ballast.argoproj.io let a wrong shard of Secret "c001" pass a dry-run`}},
		"no Secret is left": {nil, func(s *server) {
			for _, name := range []string{"c000", "c001", "c002"} {
				delete(s.objects, "Secret "+name)
			}
		}, 4, []string{`clusters.ballast.argoproj.io could not be asked: ` + answer.Unquoted(gone).Error()}},
		"a Secret that takes no write": {nil, func(s *server) { s.refuses["Secret c000"] = full }, 4, nil},
		"Secrets that take no write, and one that is not held": {nil, func(s *server) {
			s.refuses["Secret c000"], s.refuses["Secret c001"] = full, forbidden
			s.shard("c002", "1")
		}, 4, []string{`clusters.ballast.argoproj.io let a wrong shard of Secret "c002" pass a dry-run`}},
		"one that another's webhook denies without a code": {nil, func(s *server) {
			s.refuses["Secret c000"] = denied
			s.shard("c001", "1")
		}, 4, []string{`clusters.ballast.argoproj.io let a wrong shard of Secret "c001" pass a dry-run`}},
		"no Secret takes a write": {nil, func(s *server) {
			s.refuses["Secret c000"], s.refuses["Secret c001"], s.refuses["Secret c002"] = forbidden, forbidden, full
		}, 4, []string{`clusters.ballast.argoproj.io could not be asked: ` + answer.Unquoted(full).Error()}},
		"a webhook that refuses": {nil, func(s *server) { s.refuses["Secret c000"] = ours },
			4, []string{`clusters.ballast.argoproj.io could not be asked: ` + answer.Unquoted(ours).Error()}},
		"a workload that takes no write": {nil, func(s *server) { s.refuses["StatefulSet controller"] = full },
			4, []string{`controllers.ballast.argoproj.io could not be asked: ` + answer.Unquoted(full).Error()}},
		"a Secret that is refused": {nil, func(s *server) { s.refuses["Secret c000"] = errors.New("away") },
			4, []string{`clusters.ballast.argoproj.io could not be asked: away`}},
		"a Secret that panics": {nil, func(s *server) { s.refuses["Secret c000"] = errPanics },
			4, []string{`clusters.ballast.argoproj.io could not be asked: a panic of type *errors.errorString`}},
		"a Secret whose shard is not base64": {nil, func(s *server) {
			s.objects["Secret c000"] = map[string]any{"data": map[string]any{plan.ShardKey: "!" + canary}}
		}, 4, []string{`clusters.ballast.argoproj.io could not be asked: data.shard is not base64`}},
		"a Secret whose data is none": {nil, func(s *server) { s.objects["Secret c000"] = map[string]any{"data": canary} },
			4, []string{`clusters.ballast.argoproj.io could not be asked: data.shard is not base64`}},
		"an env":               {freeReplicas, func(s *server) { s.env("main", "3") }, 3, nil},
		"an env that is wrong": {freeReplicas, func(s *server) { s.env("main", "4") }, 3, []string{wrongEnv}},
		"an env that is gone":  {freeReplicas, func(s *server) { s.env("main", "") }, 3, []string{wrongEnv}},
		"an env of another container": {freeReplicas, func(s *server) { s.env("other", "3") },
			3, []string{`controllers.ballast.argoproj.io could not be asked: no container is called "main"`}},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newFleet(), newServer(t)
			if test.fleet != nil {
				test.fleet(f)
			}
			if test.server != nil {
				test.server(s)
			}
			got := Ask(t.Context(), s.client(), f.hold())
			if diff := cmp.Diff(Result{Asked: test.asked, Unheld: test.unheld}, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("what a probe says (-want +got):\n%s", diff)
			}
			if said := strings.Join(got.Unheld, "\n"); strings.Contains(said, canary) {
				t.Errorf("a Secret's data is told: %s", said)
			}
		})
	}
}

// What an API server refuses of one object, quoting it, and what the webhook itself does.
var (
	gone      = apierrors.NewNotFound(schema.GroupResource{Resource: "objects"}, "Secret c002")
	full      = apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "c000", field.ErrorList{field.Invalid(field.NewPath("patch"), canary, canary)})
	forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "c000", errors.New(canary))
	denied    = &apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Message: `admission webhook "validate.kyverno.svc-fail" denied the request: ` + canary}}
	ours      = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Message: `admission webhook "clusters.ballast.argoproj.io" denied the request: ` + canary}}
)

const wrongEnv = "controllers.ballast.argoproj.io let a wrong ARGOCD_CONTROLLER_REPLICAS of " +
	`StatefulSet "controller" pass a dry-run`

// TestAProbeIsRepeatedUntilItCameOnANewConnection, and no oftener than an API server keeps connections.
func TestAProbeIsRepeatedUntilItCameOnANewConnection(t *testing.T) {
	anew, used := []string{probing.ProbedOnNew}, []string{probing.ProbedOnUsed}
	for name, test := range map[string]struct {
		warns  [][]string
		unheld bool
		want   int
	}{
		"a new one":                            {[][]string{anew}, false, 1},
		"two that were kept, then a new one":   {[][]string{used, used, anew}, false, 3},
		"a kept and a new one for one write":   {[][]string{slices.Concat(used, anew)}, false, 1},
		"none but such as were kept":           {[][]string{used}, false, 26},
		"kept ones, of a webhook that is away": {[][]string{used}, true, 1},
		"an older webhook, which says nothing": {nil, false, 1},
		"others' warnings":                     {[][]string{{"metadata.finalizers: prefer a domain-qualified name"}}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newFleet(), newServer(t)
			s.warns = test.warns
			if test.unheld {
				for key := range s.objects {
					s.refuses[key] = errors.New("away")
				}
			}
			Ask(t.Context(), s.client(), f.hold())
			want := map[string]int{"Secret c000": test.want, "StatefulSet controller": test.want,
				"StatefulSet controller scale": test.want, "ConfigMap ballast-plan": test.want}
			if diff := cmp.Diff(want, s.asked); diff != "" {
				t.Errorf("how often each was asked (-want +got):\n%s", diff)
			}
		})
	}
}
