// Package uninstall is `ballast uninstall`.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/uninstall/configmaps"
	"ballast/cmd/ballast/uninstall/objects"
	"ballast/planner/apply"
	"ballast/planner/config"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/discover/workload"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/printable"
)

type options struct {
	cluster  connect.Options
	plan     string
	history  string
	webhooks string
	yes      bool
	keepPlan bool
	timeout  time.Duration
	every    time.Duration // between two looks at a rollout
	now      func() time.Time

	heartbeat heartbeat
	foreign   []client.Object // that stay, of the step that goes on
	sizes     string          // what becomes of those that the plan holds
	nothing   bool            // of ballast was found
	gone      bool            // there is no application-controller, as it was looked for last
	otherwise string          // what the step that goes on does, where that is not what it said before it waited
}

// NewCommand makes `ballast uninstall`.
func NewCommand() *cobra.Command {
	o := &options{every: time.Second, now: time.Now}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Take ballast out, and leave every cluster with its owner",
		Long: `uninstall takes ballast out in the order that leaves no cluster without an owner:

  0. a rollout under way ends, and nothing begins after it: a freeze has the planner end its wave, and replicas that
     rollout.x0y stopped come back; a person's rollback or drain goes on in spite of it, and is waited for; where it does not
     end within --timeout, the command that ends it is named, and nothing is taken out;
     where no planner leads (for a minute none renews its Lease), nobody ends it, and what is done stays
  1. break-glass: every write passes but one to data.plan, and what the API server's policies refuse; the planner stops writing
  2. ARGOCD_CONTROLLER_REPLICAS becomes spec.replicas, so that Argo CD's own algorithm finds an owner for clusters added later;
     where it differs, this restarts the application-controller once. A workload that opted out of ballast keeps its own, and
     where nothing of ballast is found, which is said first, so does any
  3. the webhook configuration, so that no write asks for what is about to go
  4. the Deployments, their Lease, accounts, roles, services, NetworkPolicies, certificates and alerts, the admission policies, the priority
     class; then the plan, its history and status, and their key in Secret ballast-plan-key, which --keep-plan keeps: break-glass ends instead,
     and pins, a freeze, a cordon and a trip last as long as that plan: who deletes it before the next installation takes them back

Cluster Secrets keep their shard: each cluster stays where it is. Pods keep their sizes: it says which ones the pod template, which a pod that
is made anew goes by, has otherwise. Another installation in the cluster is not touched: of what has no
namespace, uninstall takes what calls, binds or is named after its own. What has ballast's label under a name that ballast's manifests
do not give is told, and stays. It runs with your own rights: list and delete on all of
these (Secrets and the Lease are deleted by name, without list; the Lease takes get, and list where no workload is left to name it by),
get and patch on the plan ConfigMap, patch on the history's under --keep-plan, and list and patch on the workload.`,
		Example: `  ballast uninstall -n argocd               # says what it does, and asks first
  ballast uninstall -n argocd --keep-plan   # for an installation to come`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	o.cluster.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan-configmap", "ballast-plan", "name of the plan ConfigMap")
	f.StringVar(&o.history, "history-configmap", "ballast-history", "name of the history ConfigMap")
	f.StringVar(&o.webhooks, "webhook-configuration", "",
		"name of the MutatingWebhookConfiguration, where it does not have ballast's label")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.keepPlan, "keep-plan", false, "keep the plan, its history and their key, for an installation to come")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute,
		"how long a rollout under way may take to end, and the application-controller to restart")
	return cmd
}

func (o *options) run(ctx context.Context, in io.Reader, out io.Writer) error {
	c, err := o.cluster.Client()
	if err != nil {
		return err
	}
	target, w, goesOn, err := o.agreed(ctx, c, in, out)
	if err != nil {
		return err
	}
	if goesOn {
		say.To(out, "- a rollout is under way: it ends first, and nothing begins after it "+
			"(where the planner's Lease is not renewed for %s, nobody ends it)\n", leads)
		if target, w, err = o.settled(ctx, c, target.Name); err != nil {
			return err
		}
	}
	if err := o.carryOut(ctx, c, o.steps(target, w), out); err != nil {
		return err
	}
	say.To(out, "ballast is gone. Every cluster Secret keeps its shard.\n")
	if o.sizes != "" {
		say.To(out, "Sizes: %s.\n", o.sizes)
	}
	return nil
}

// agreed is what target answers once the person agrees: a rollout may have begun while they thought, and is not to be
// cut.
func (o *options) agreed(ctx context.Context, c client.Client, in io.Reader, out io.Writer) (plan.Target, discover.Workload, bool, error) {
	target, w, goesOn, err := o.target(ctx, c)
	if err != nil {
		return target, w, goesOn, err
	}
	if o.nothing {
		say.To(out, "Nothing of ballast was found in %s: no plan, history or status, no Lease, and nothing that its manifests make. "+
			"Is this the cluster and the namespace that you mean?\n", o.cluster.Namespace)
	}
	if o.yes {
		return target, w, goesOn, nil
	}
	o.cluster.SayWhere(out)
	if o.sizes != "" {
		say.To(out, "Sizes: %s.\n", o.sizes)
	}
	question := fmt.Sprintf("Take ballast out of %s, where %s %s has %s?",
		o.cluster.Namespace, w.Kind, w.Name, say.Plural(w.Replicas, "replica"))
	if o.gone {
		question = fmt.Sprintf("Take ballast out of %s, where %s?", o.cluster.Namespace, isGone(target))
	}
	if !say.Confirm(in, out, question) {
		return target, w, false, errors.New("nothing was changed")
	}
	return o.target(ctx, c)
}

func (o *options) carryOut(ctx context.Context, c client.Client, steps []uninstallStep, out io.Writer) error {
	for _, step := range steps {
		say.To(out, "- %s\n", step.what)
		err := step.do(ctx, c)
		objects.Tell(out, o.foreign)
		o.foreign = nil
		if o.otherwise != "" {
			say.To(out, "  by now %s\n", o.otherwise)
			o.otherwise = ""
		}
		if err != nil {
			return fmt.Errorf("%s: %w\nwhat went before is done; run uninstall again to go on", step.what, err)
		}
	}
	return nil
}

// uninstallStep is one of the steps, which come in an order.
type uninstallStep struct {
	what string
	do   func(context.Context, client.Client) error
}

func (o *options) steps(target plan.Target, w discover.Workload) []uninstallStep {
	env := o.envStep(target, w)
	align := func(ctx context.Context, c client.Client) error {
		if o.nothing {
			return nil
		}
		var err error
		if target, w, err = o.alignEnv(ctx, c, target); err != nil {
			return err
		}
		if does := o.envStep(target, w); does != env {
			o.otherwise = does
		}
		return nil
	}
	webhooks := func(ctx context.Context, c client.Client) (err error) {
		o.foreign, err = o.objects().DeleteWebhooks(ctx, c)
		return err
	}
	rest := func(ctx context.Context, c client.Client) (err error) {
		if o.foreign, err = o.objects().DeleteRest(ctx, c); err != nil {
			return err
		}
		if err := o.objects().NoneLeft(ctx, c); err != nil {
			return err
		}
		target, err := o.leftRunning(ctx, c, target)
		if err != nil {
			return err
		}
		return o.objects().DeleteLease(ctx, c, target.Name)
	}
	last := uninstallStep{"the plan, its history and their key", o.maps().Delete}
	if o.keepPlan {
		last = uninstallStep{"the plan, its history and their key stay; break-glass ends, for an installation to come",
			o.maps().Keep}
	}
	return []uninstallStep{
		{"break-glass: from here on every write passes but one to data.plan, and what the API server's policies refuse",
			o.breakGlass},
		{env, align},
		{"the webhook configuration", webhooks},
		{"the Deployments and what belongs to them", rest},
		last,
	}
}

// envStep says what becomes of the env of the workload, as it was looked at last.
func (o *options) envStep(target plan.Target, w discover.Workload) string {
	switch {
	case o.gone:
		return fmt.Sprintf("%s, so that it has no %s to change", isGone(target), plan.EnvReplicas)
	case o.nothing: // it may be another cluster than the person means, and the env another one's
		return fmt.Sprintf("%s of %s %s stays as it is, since nothing of ballast was found", plan.EnvReplicas, w.Kind,
			w.Name)
	case w.Unmanaged: // nobody of ballast writes to it, and what is right for it its owners know
		return fmt.Sprintf("%s %s opted out of ballast, and its %s stays as it is: "+
			"where it is not spec.replicas (%d), clusters added later may have no owner, or several, until you make it so",
			w.Kind, w.Name, plan.EnvReplicas, w.Replicas)
	}
	return fmt.Sprintf("%s = spec.replicas (%d), and the pods that read it", plan.EnvReplicas, w.Replicas)
}

func (o *options) maps() configmaps.Maps {
	return configmaps.Maps{Namespace: o.cluster.Namespace, Plan: o.plan, History: o.history, Every: o.every}
}

func (o *options) objects() objects.Installation {
	return objects.Installation{Namespace: o.cluster.Namespace, Plan: o.plan, History: o.history, Webhooks: o.webhooks}
}

func (o *options) config() config.PlannerConfig {
	cfg := config.Default()
	cfg.Target.Namespace, cfg.Plan.ConfigMap = o.cluster.Namespace, o.plan
	return cfg
}

// target is the plan's, else the one that is found; goesOn says that a rollout of it is to end first.
func (o *options) target(ctx context.Context, c client.Client) (target plan.Target, w discover.Workload, goesOn bool, err error) {
	if err := errors.Join(o.maps().OnlyOwn(ctx, c), o.objects().AllKnown(ctx, c)); err != nil {
		return plan.Target{}, discover.Workload{}, false, err
	}
	doc, err := connect.ReadDocument(ctx, c, o.config())
	if err != nil {
		return plan.Target{}, discover.Workload{}, false, err
	}
	target, w, goesOn, err = o.judge(ctx, c, doc)
	if o.nothing = false; err == nil && doc.Plan == nil {
		o.nothing, err = o.objects().Nothing(ctx, c, target.Name)
	}
	return target, w, goesOn, err
}

// judge is target by what stands in the plan ConfigMap.
func (o *options) judge(ctx context.Context, c client.Client, doc configmap.Document) (target plan.Target, w discover.Workload, goesOn bool, err error) {
	target, w, err = o.find(ctx, c, doc, o.config().Target)
	if err != nil || o.gone { // nobody has a cluster, and no rollout comes to an end
		return target, w, false, err
	}
	o.sizes = sizesLeft(doc.Plan, w)
	if goesOn, err = o.underWay(ctx, c, doc, target.Name); err == nil && !goesOn {
		err = o.standsStill(doc, w)
	}
	return target, w, goesOn, err
}

// find is the workload as it stands now: the plan's, without a plan the one that is wanted. Each wait may see another
// one, or none.
func (o *options) find(ctx context.Context, c client.Client, doc configmap.Document, want plan.Target) (plan.Target, discover.Workload, error) {
	if doc.Plan != nil {
		want = doc.Plan.Target
	}
	if want.Namespace != o.cluster.Namespace { // who forged it would have us write there, with a person's rights
		return plan.Target{}, discover.Workload{},
			fmt.Errorf("the plan names a workload of namespace %q, and no plan of %q does: "+
				"delete ConfigMap %q, and run uninstall again",
				want.Namespace, o.cluster.Namespace, o.plan)
	}
	target, w, err := workload.FindTarget(ctx, c, want, doc.Plan)
	if o.gone = err != nil && missing(ctx, c, want, err); o.gone {
		return want, w, nil
	}
	return target, w, err
}

// missing reports whether there is no workload that ballast could have held: the plan's is not there, or without a plan
// none that fits.
func missing(ctx context.Context, c client.Client, want plan.Target, found error) bool {
	if want.Name == "" {
		return workload.IsMissing(found)
	}
	gone, _ := workload.IsGone(ctx, c, want)
	return gone
}

// vanished reports whether the workload whose rollout goes on is not there any more: that rollout comes to no end.
func vanished(ctx context.Context, c client.Client, doc configmap.Document) bool {
	return missing(ctx, c, doc.Plan.Target, nil)
}

// isGone says of a workload that is not there which one it is.
func isGone(target plan.Target) string {
	if target.Name == "" {
		return "there is no application-controller"
	}
	return fmt.Sprintf("%s %s is not there any more", target.Kind, printable.Text(target.Name, 253))
}

// standsStill refuses to leave a workload without replicas: rollout.x0y stops all of them for a while, and nobody would
// bring them back.
func (o *options) standsStill(doc configmap.Document, w discover.Workload) error {
	switch {
	case w.Replicas > 0 && stops(doc):
		return fmt.Errorf("rollout.x0y stops every replica of %s %s at this moment, and nobody would bring them back: wait until `ballast status` shows no rollout; "+
			"where no planner runs any more, kubectl -n %s annotate configmap %s %s=off, and run uninstall again",
			w.Kind, w.Name, o.cluster.Namespace, o.plan, plan.AnnotationEnforcement)
	case w.Replicas > 0:
		return nil
	}
	back := 1
	if doc.Plan != nil && doc.Plan.Rollout != nil {
		back = max(back, doc.Plan.Rollout.From.Replicas)
	}
	return fmt.Errorf("%s %s has no replicas, and nobody would bring them back: wait until `ballast status` shows no rollout; where no planner runs any more,"+
		" kubectl -n %s annotate configmap %s %s=off, then kubectl -n %s scale %s %s --replicas=%d, and run uninstall again",
		w.Kind, w.Name, o.cluster.Namespace, o.plan, plan.AnnotationEnforcement, o.cluster.Namespace,
		strings.ToLower(w.Kind), w.Name, back)
}

// stops reports whether the plan has no replicas, for the time of an x0y, and is in force.
func stops(doc configmap.Document) bool {
	return doc.Plan != nil && !doc.BreakGlass && doc.Plan.Rollout != nil && doc.Plan.Replicas == 0
}

// errGoesOn is that a rollout began since the last look.
var errGoesOn = errors.New("a rollout began meanwhile")

// breakGlass is for the plan that was judged, and for no other: a stop of all replicas that begins at the same time
// ends first. Where it does not come to stand, the freeze goes under which a rollout ended.
func (o *options) breakGlass(ctx context.Context, c client.Client) error {
	var name string
	once := func() error {
		return o.maps().Annotate(ctx, c, func(cm *corev1.ConfigMap) (map[string]*string, error) {
			target, _, goesOn, err := o.judge(ctx, c, configmap.Parse(cm.Data, cm.Annotations))
			if name = target.Name; err == nil && goesOn {
				err = errGoesOn
			}
			return map[string]*string{plan.AnnotationEnforcement: ptr.To("off")}, err
		})
	}
	err := once()
	if errors.Is(err, errGoesOn) {
		if _, _, err := o.settled(ctx, c, name); err != nil {
			return err
		}
		err = once()
	}
	if err != nil {
		return o.thawed(ctx, c, err)
	}
	o.cluster.OwesNothing()
	return nil
}

// alignEnv writes the env where it differs and waits until every pod runs with it. A webhook replica sees the
// break-glass within a moment; until it does it puts the old value back, so that the write is repeated. A stop of all
// replicas that a planner decided on before it saw the break-glass ends first: under that the planner brings them back.
// What opts out meanwhile is left alone, and what goes is not waited for.
func (o *options) alignEnv(ctx context.Context, c client.Client, target plan.Target) (plan.Target, discover.Workload, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	applier := apply.New(apply.Options{Client: c, Reader: c})
	var w discover.Workload
	err := wait.PollUntilContextCancel(ctx, o.every, true, func(ctx context.Context) (bool, error) {
		doc, err := connect.ReadDocument(ctx, c, o.config())
		if err != nil {
			return false, err
		}
		goesOn, err := o.underWay(ctx, c, doc, target.Name)
		if waits := goesOn && !vanished(ctx, c, doc); err != nil || waits {
			return false, err
		}
		target, w, err = o.find(ctx, c, doc, target)
		if leaves := o.gone || w.Unmanaged; err != nil || leaves {
			return leaves, err
		}
		if err := o.standsStill(doc, w); err != nil {
			return false, err
		}
		if w.EnvReplicas == nil || *w.EnvReplicas == fmt.Sprint(w.Replicas) {
			return w.ReadyReplicas >= w.Replicas && w.UpdatedReplicas >= w.Replicas &&
				w.ObservedGeneration >= w.Generation, nil
		}
		step := diff.PatchWorkload{ControllerReplicas: &w.Replicas, Why: diff.Rolling}
		for _, result := range applier.Apply(ctx, target, []diff.Step{step}).Results {
			if result.Outcome == apply.Failed || result.Outcome == apply.Refused {
				return false, result.Err
			}
		}
		return false, nil
	})
	return target, w, err
}

// leftRunning refuses to go on where nobody of ballast runs any more to bring back replicas that were stopped
// meanwhile.
func (o *options) leftRunning(ctx context.Context, c client.Client, target plan.Target) (plan.Target, error) {
	doc, err := connect.ReadDocument(ctx, c, o.config())
	if err != nil {
		return target, err
	}
	target, w, err := o.find(ctx, c, doc, target)
	if err != nil || o.gone {
		return target, err
	}
	return target, o.standsStill(doc, w)
}
