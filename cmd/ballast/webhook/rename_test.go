package webhook

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/fixture"
	"ballast/e2e/site"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/store"
)

// TestAPlannerUnderAnotherServiceAccountGoesOn runs the webhook with the arguments that components/retarget gives it, under a
// plan that names the planner as it was called before.
func TestAPlannerUnderAnotherServiceAccountGoesOn(t *testing.T) {
	env := fixture.StartWithWebhook(t)
	const before, after = site.PlannerUser, "system:serviceaccount:argocd:my-argo-ballast-planner"
	as := func(user string) *store.Store {
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
		c, err := client.New(config, client.Options{})
		fixture.MustDo(t, err)
		return store.New(store.Options{Client: c, Reader: c, Namespace: "argocd", Plan: site.PlanConfigMap, History: "ballast-history"})
	}
	fixture.MustDo(t, as(before).Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}}))
	writeBy := func(s *store.Store, user string, p plan.Plan) (store.Snapshot, error) {
		base, err := s.Read(t.Context())
		fixture.MustDo(t, err)
		return s.WritePlan(t.Context(), base, p, 0, configmap.Meta{DecidedBy: user})
	}
	write := func(user string, p plan.Plan) (store.Snapshot, error) { return writeBy(as(user), user, p) }
	next := func(user string, replica int) plan.Plan {
		return plan.Plan{Mode: plan.Enforce, PlannerUser: user, Replicas: 4, ControllerReplicas: 4, MaxReplicas: 16,
			Target:   plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: fixture.ControllerName, Container: "application-controller"},
			Clusters: map[string]plan.Row{"prod-eu": {Replica: replica}}}
	}
	_, err := write(before, next(before, 1)) // the webhooks know the new name from their start, and nobody else by an old plan
	fixture.MustDo(t, err)
	runRetargeted(t, env)
	asks := as("alice") // by dry runs: a write that passes before the webhook knows the plan leaves nothing behind
	asks.Client = client.NewDryRunClient(asks.Client)
	fixture.WaitFor(t, "the plan is in force", func() bool {
		_, err := writeBy(asks, "alice", next("alice", 3))
		return errors.Is(err, store.ErrNotKept)
	})
	for i, replica := range []int{2, 3} {
		s, err := write(after, next(after, replica))
		if err != nil {
			t.Fatalf("under its new name the planner is turned back: %v", err)
		}
		if p := s.Document.Plan; p.Revision != int64(i+2) || p.PlannerUser != after || p.Clusters["prod-eu"].Replica != replica {
			t.Errorf("what stands is revision %d of %s, %v", p.Revision, p.PlannerUser, p.Clusters)
		}
	}
}

// runRetargeted runs the webhook as the shipped example of another ServiceAccount does, until the test ends.
func runRetargeted(t *testing.T, env *envtest.Environment) {
	t.Helper()
	runHere(t, fixture.KubeconfigOf(t, env), &env.WebhookInstallOptions, retargetedArgs(t)...)
}

// runHere runs the command in the test's own process until the test ends, and answers the address of its metrics when it is ready.
func runHere(t *testing.T, kubeconfig string, at *envtest.WebhookInstallOptions, args ...string) (metrics string) {
	t.Helper()
	health, shown := fixture.FreePort(t), fixture.FreePort(t)
	args = append(args, "--bind-address="+at.LocalServingHost, "--port="+strconv.Itoa(at.LocalServingPort),
		"--metrics-port="+shown, "--health-port="+health, "--cert-dir="+at.LocalServingCertDir, "--lame-duck=0s")
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("GOGC", "100") // the test's own
	root := fixture.RootOf(NewCommand())
	root.SetArgs(args)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the webhook ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("the webhook does not end")
		}
	})
	awaitReady(t, net.JoinHostPort(at.LocalServingHost, health))
	return net.JoinHostPort(at.LocalServingHost, shown)
}

// retargetedArgs are the webhook's in the shipped example, in a pod of namespace argocd.
func retargetedArgs(t *testing.T) []string {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), fixture.Checkout(t, "manifests", "overlays", "retarget-example"))
	fixture.MustDo(t, err)
	for _, r := range built.Resources() {
		if r.GetKind() != "Deployment" || r.GetName() != "ballast-webhook" {
			continue
		}
		text, err := r.AsYAML()
		fixture.MustDo(t, err)
		var d appsv1.Deployment
		fixture.MustDo(t, yaml.UnmarshalStrict(text, &d))
		args := d.Spec.Template.Spec.Containers[0].Args
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$(POD_NAMESPACE)", "argocd")
		}
		return args
	}
	t.Fatal("the example has no webhook")
	return nil
}
