package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/conflicts"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/installation"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/size/inputs"
	"ballast/planner/status"
	"ballast/planner/store"
)

// seen is all that the checks judge: values, and why one is missing.
type seen struct {
	now        time.Time
	namespace  string
	kubernetes string // the API server's version
	notSeen    map[string]error
	config     error // why there is no configuration to go by
	fleet      error // why the fleet or its workload could not be read
	in         input.Inputs
	out        cycle.Outcome
	template   metav1.ObjectMeta // the workload's own
	image      string
	pods       *podTemplate         // nil: not known
	resizes    *bool                // whether the API server has pods/resize; nil: not known
	writers    map[string][]string  // Secrets by the manager that writes their data
	trackers   map[tracker][]string // Secrets by the GitOps tool whose mark they have
	scrapes    []poll.Sample        // seconds between two, by pod
	scrapesErr string
	neighbours []conflicts.Finding
	certs      bool // cert-manager serves its API
	hidden     bool // whether a webhook is installed may not be read
	webhook    *admissionv1.MutatingWebhookConfiguration
	planner    string // the user of the installed planner
	installed  installation.Seen
	installErr error
	said       *status.Status // nil: no leader said anything, or saidErr
	saidErr    error
	denied     []rbacv1.PolicyRule
	rightsErr  error
}

// couldNot keeps why something could not be looked at, and reports whether it could.
func (s *seen) couldNot(what string, err error) bool {
	if err != nil {
		s.notSeen[what] = err
	}
	return err != nil
}

// look reads everything. An error means that there is no API server to ask; all else that cannot be read is a finding.
func (o *options) look(ctx context.Context, cmd *cobra.Command) (*seen, error) {
	c, err := o.source.Client()
	if err != nil {
		return nil, err
	}
	rest, err := o.source.REST()
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", rest.Host, err)
	}
	v, err := d.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking API server %q for its version: %w", rest.Host, err)
	}
	s := &seen{now: time.Now().UTC().Truncate(time.Second), kubernetes: v.GitVersion, notSeen: map[string]error{}}
	progress := cmd.ErrOrStderr()
	s.certs, s.resizes = hasCertManager(d, s), hasResize(d, s)
	var cfg config.PlannerConfig
	if cfg, s.config = o.source.Config(ctx, cmd, c, progress); s.config == nil { // the rest goes by it
		s.namespace = cfg.Target.Namespace
		s.in, s.fleet = o.source.Observe(ctx, c, cfg, progress)
		s.lookAtFleet(ctx, c, progress)
		s.lookAtInstallation(ctx, c)
	}
	return s, nil
}

func hasCertManager(d discovery.DiscoveryInterface, s *seen) bool {
	groups, err := d.ServerGroups()
	if s.couldNot("API groups", err) {
		return false
	}
	return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == "cert-manager.io" })
}

func (s *seen) lookAtFleet(ctx context.Context, c client.Client, progress io.Writer) {
	if s.fleet != nil {
		return
	}
	s.out = cycle.Run(s.in)
	s.lookAtWorkload(ctx, c)
	s.lookAtWriters(ctx, c)
	s.lookAtScrapes(ctx)
	p := s.out.Next
	p.Target = s.target()
	say.To(progress, "looking for autoscalers, disruption budgets and other writers\n")
	found, err := conflicts.Look(ctx, c, p)
	s.couldNot("autoscalers and disruption budgets", err)
	s.neighbours = found
}

func (s *seen) target() plan.Target {
	w := s.in.Workload
	return plan.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Container: w.Container}
}

func (s *seen) lookAtWorkload(ctx context.Context, c client.Client) {
	key := client.ObjectKey{Namespace: s.in.Workload.Namespace, Name: s.in.Workload.Name}
	var spec corev1.PodSpec
	var err error
	if s.in.Workload.Kind == plan.Deployment {
		var live appsv1.Deployment
		err = c.Get(ctx, key, &live)
		s.template, spec = live.ObjectMeta, live.Spec.Template.Spec
	} else {
		var live appsv1.StatefulSet
		err = c.Get(ctx, key, &live)
		s.template, spec = live.ObjectMeta, live.Spec.Template.Spec
	}
	if s.couldNot("the workload", err) {
		return
	}
	if s.pods = templateOf(spec, s.in.Workload.Container); s.pods != nil {
		s.image = s.pods.controller().Image
	}
}

// lookAtWriters reads who writes the Secrets' data: of each its metadata, and none of the data.
func (s *seen) lookAtWriters(ctx context.Context, c client.Client) {
	selector, err := discover.Selector(s.in.Config.Discover.Selector)
	if s.couldNot(ofWriters, err) {
		return
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	s.writers, s.trackers = map[string][]string{}, map[tracker][]string{}
	for {
		err := c.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(500),
			client.Continue(list.Continue))
		if s.couldNot(ofWriters, err) {
			return
		}
		for _, secret := range list.Items {
			if by := trackedBy(secret.ObjectMeta); by.said != "" {
				s.trackers[by] = append(s.trackers[by], secret.Name)
			}
			for _, manager := range writersOf(secret.ManagedFields, "f:data") {
				s.writers[manager] = append(s.writers[manager], secret.Name)
			}
		}
		if list.Continue == "" {
			return
		}
	}
}

// scrapesQuery is the time from a pod's first scrape of twenty minutes to its last, by how many came after the first.
const scrapesQuery = `label_replace(` +
	`(max by ({{.pod}}) (timestamp(process_resident_memory_bytes{ {{.pods}} }))` +
	` - min by ({{.pod}}) (min_over_time(timestamp(process_resident_memory_bytes{ {{.pods}} })[20m:30s])))` +
	` / (max by ({{.pod}}) (count_over_time(process_resident_memory_bytes{ {{.pods}} }[20m])) - 1)` +
	`, "owner", "$1", "{{.pod}}", "(.*)")`

// lookAtScrapes asks how many seconds lie between two scrapes of a pod.
func (s *seen) lookAtScrapes(ctx context.Context) {
	if s.in.Config.Poll.Prometheus == nil {
		return
	}
	f, err := gather.NewFetcher(s.in.Config, s.target())
	if err != nil {
		s.scrapesErr = err.Error()
		return
	}
	got := f.Fetch(ctx, []poll.Metric{{ID: "scrapes", Query: scrapesQuery, Match: poll.Match{Label: "owner"}}}, s.out.Fleet, s.in.Now)
	s.scrapes, s.scrapesErr = got[0].Samples, got[0].Err
}

func (s *seen) lookAtInstallation(ctx context.Context, c client.Client) {
	s.planner = plannerOf(ctx, c, s.namespace, s.in.PlannerUser)
	names := installation.Names{Namespace: s.namespace, Workload: s.in.Workload.Name, Plan: s.in.Config.Plan.ConfigMap,
		Planner: s.planner}
	shipped, err := installation.Shipped(names)
	if s.couldNot(ofShipped, err) {
		return
	}
	var live admissionv1.MutatingWebhookConfiguration
	switch err := c.Get(ctx, client.ObjectKey{Name: shipped.Name}, &live); {
	case apierrors.IsNotFound(err):
		return
	case s.couldNot("MutatingWebhookConfiguration "+shipped.Name, err):
		s.hidden = true
		return
	}
	s.webhook = &live
	version := s.kubernetes
	l := installation.Looker{Reader: c, Version: func(context.Context) (string, error) { return version, nil }, Clock: clock.RealClock{}}
	s.installed, s.installErr = l.Look(ctx, names)
	kept := store.New(store.Options{Client: c, Reader: c, Namespace: s.namespace, Plan: s.in.Config.Plan.ConfigMap,
		History: s.in.Config.Plan.History})
	s.said, s.saidErr = kept.ReadStatus(ctx)
	s.couldNot(ofLeader, s.saidErr)
	s.lookAtRights(ctx, c)
}

// plannerOf is the user of the planner that is installed: of its Deployment, since a plan has the name that wrote it, and before the
// first plan there is none. Where no Deployment, or several, say it, it is the plan's, or else the one that is shipped.
func plannerOf(ctx context.Context, c client.Client, namespace, ofPlan string) string {
	accounts := "system:serviceaccount:" + namespace + ":"
	var found appsv1.DeploymentList
	err := c.List(ctx, &found, client.InNamespace(namespace),
		client.MatchingLabels{"app.kubernetes.io/name": "ballast", "app.kubernetes.io/component": "planner"})
	if err != nil || len(found.Items) != 1 { // who may not list them is answered all the same
		return cmp.Or(ofPlan, accounts+"ballast-planner")
	}
	return accounts + cmp.Or(found.Items[0].Spec.Template.Spec.ServiceAccountName, "default")
}

// lookAtRights asks whether the planner may do what the shipped manifests let it do.
func (s *seen) lookAtRights(ctx context.Context, c client.Client) {
	rights, err := shippedRights(s.namespace, s.in.Workload.Name)
	if err != nil {
		s.rightsErr = err
		return
	}
	if inputs.WantsOf(s.in.Config.Size).Nodes {
		rights = append(rights, rightOf("list", "", "nodes", "", ""))
	}
	for _, right := range rights {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: s.planner,
			ResourceAttributes: &right.attributes}}
		if err := c.Create(ctx, review); err != nil {
			s.rightsErr = err
			return
		}
		if !review.Status.Allowed {
			s.denied = append(s.denied, right.rule)
		}
	}
}
