// Package look gathers all that the checks of `ballast doctor` judge. It only reads.
package look

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
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

	"ballast/cmd/ballast/doctor/gitops"
	"ballast/cmd/ballast/doctor/rights"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/source"
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

// Of NotSeen, what is not only asked for, but also read from what is written somewhere.
const (
	OfWriters = "who writes the Secrets"
	OfShipped = "the webhook configuration"
	OfLeader  = "what the leader says"
)

// Seen is all that the checks judge: values, and why one is missing.
type Seen struct {
	Now        time.Time
	Namespace  string
	Kubernetes string // the API server's version
	NotSeen    map[string]error
	NoConfig   error // why there is no configuration to go by
	NoFleet    error // why the fleet or its workload could not be read
	In         input.Inputs
	Out        cycle.Outcome
	Template   metav1.ObjectMeta // the workload's own
	Image      string
	Pods       *PodTemplate                // nil: not known
	Resizes    *bool                       // whether the API server has pods/resize; nil: not known
	Writers    map[string][]string         // Secrets by the manager that writes their data
	Trackers   map[gitops.Tracker][]string // Secrets by the GitOps tool whose mark they have
	Scrapes    []poll.Sample               // seconds between two, by pod
	ScrapesErr string
	Conflicts  []conflicts.Finding
	Certs      bool // cert-manager serves its API
	Hidden     bool // whether a webhook is installed may not be read
	Webhook    *admissionv1.MutatingWebhookConfiguration
	Planner    string // the user of the installed planner
	Installed  installation.Seen
	InstallErr error
	Said       *status.Status // nil: no leader said anything, or SaidErr
	SaidErr    error
	Denied     []rbacv1.PolicyRule
	RightsErr  error
}

// Kubectl is a command in Argo CD's namespace. Where it is for one object alone, NAME becomes that.
func (s *Seen) Kubectl(command string, of []string) string {
	if len(of) == 1 {
		command = strings.ReplaceAll(command, "NAME", of[0])
	}
	return "kubectl -n " + s.Namespace + " " + command
}

// couldNot keeps why something could not be looked at, and reports whether it could.
func (s *Seen) couldNot(what string, err error) bool {
	if err != nil {
		s.NotSeen[what] = err
	}
	return err != nil
}

// At reads everything. An error means that there is no API server to ask; all else that cannot be read is a finding.
func At(ctx context.Context, cmd *cobra.Command, from *source.Source) (*Seen, error) {
	c, err := from.Client()
	if err != nil {
		return nil, err
	}
	rest, err := from.REST()
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
	s := &Seen{Now: time.Now().UTC().Truncate(time.Second), Kubernetes: v.GitVersion, NotSeen: map[string]error{}}
	progress := cmd.ErrOrStderr()
	s.Certs, s.Resizes = hasCertManager(d, s), hasResize(d, s)
	var cfg config.PlannerConfig
	if cfg, s.NoConfig = from.Config(ctx, cmd, c, progress); s.NoConfig == nil { // the rest goes by it
		s.Namespace = cfg.Target.Namespace
		s.In, s.NoFleet = from.Observe(ctx, c, cfg, progress)
		s.lookAtFleet(ctx, c, progress)
		s.lookAtInstallation(ctx, c)
	}
	return s, nil
}

// hasResize is whether the API server has pods/resize; nil where that could not be seen.
func hasResize(d discovery.DiscoveryInterface, s *Seen) *bool {
	list, err := d.ServerResourcesForGroupVersion("v1")
	if s.couldNot("what the API server has of pods", err) {
		return nil
	}
	has := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" })
	return &has
}

func hasCertManager(d discovery.DiscoveryInterface, s *Seen) bool {
	groups, err := d.ServerGroups()
	if s.couldNot("API groups", err) {
		return false
	}
	return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == "cert-manager.io" })
}

func (s *Seen) lookAtFleet(ctx context.Context, c client.Client, progress io.Writer) {
	if s.NoFleet != nil {
		return
	}
	s.Out = cycle.Run(s.In)
	s.lookAtWorkload(ctx, c)
	s.lookAtWriters(ctx, c)
	s.lookAtScrapes(ctx)
	p := s.Out.Next
	p.Target = s.target()
	say.To(progress, "looking for autoscalers, disruption budgets and other writers\n")
	found, err := conflicts.Look(ctx, c, p)
	s.couldNot("autoscalers and disruption budgets", err)
	s.Conflicts = found
}

func (s *Seen) target() plan.Target {
	w := s.In.Workload
	return plan.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Container: w.Container}
}

func (s *Seen) lookAtWorkload(ctx context.Context, c client.Client) {
	key := client.ObjectKey{Namespace: s.In.Workload.Namespace, Name: s.In.Workload.Name}
	var spec corev1.PodSpec
	var err error
	if s.In.Workload.Kind == plan.Deployment {
		var live appsv1.Deployment
		err = c.Get(ctx, key, &live)
		s.Template, spec = live.ObjectMeta, live.Spec.Template.Spec
	} else {
		var live appsv1.StatefulSet
		err = c.Get(ctx, key, &live)
		s.Template, spec = live.ObjectMeta, live.Spec.Template.Spec
	}
	if s.couldNot("the workload", err) {
		return
	}
	if s.Pods = TemplateOf(spec, s.In.Workload.Container); s.Pods != nil {
		s.Image = s.Pods.Controller().Image
	}
}

// lookAtWriters reads who writes the Secrets' data: of each its metadata, and none of the data.
func (s *Seen) lookAtWriters(ctx context.Context, c client.Client) {
	selector, err := discover.Selector(s.In.Config.Discover.Selector)
	if s.couldNot(OfWriters, err) {
		return
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	s.Writers, s.Trackers = map[string][]string{}, map[gitops.Tracker][]string{}
	for {
		err := c.List(ctx, list, client.InNamespace(s.Namespace), client.MatchingLabelsSelector{Selector: selector},
			client.Limit(500),
			client.Continue(list.Continue))
		if s.couldNot(OfWriters, err) {
			return
		}
		for _, secret := range list.Items {
			if by := gitops.TrackedBy(secret.ObjectMeta); by.Said != "" {
				s.Trackers[by] = append(s.Trackers[by], secret.Name)
			}
			for _, manager := range gitops.WritersOf(secret.ManagedFields, "f:data") {
				s.Writers[manager] = append(s.Writers[manager], secret.Name)
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
func (s *Seen) lookAtScrapes(ctx context.Context) {
	if s.In.Config.Poll.Prometheus == nil {
		return
	}
	f, err := gather.NewFetcher(s.In.Config, s.target())
	if err != nil {
		s.ScrapesErr = err.Error()
		return
	}
	got := f.Fetch(ctx, []poll.Metric{{ID: "scrapes", Query: scrapesQuery, Match: poll.Match{Label: "owner"}}},
		s.Out.Fleet, s.In.Now)
	s.Scrapes, s.ScrapesErr = got[0].Samples, got[0].Err
}

func (s *Seen) lookAtInstallation(ctx context.Context, c client.Client) {
	s.Planner = plannerOf(ctx, c, s.Namespace, s.In.PlannerUser)
	names := installation.Names{Namespace: s.Namespace, Workload: s.In.Workload.Name, Plan: s.In.Config.Plan.ConfigMap,
		Planner: s.Planner}
	shipped, err := installation.Shipped(names)
	if s.couldNot(OfShipped, err) {
		return
	}
	var live admissionv1.MutatingWebhookConfiguration
	switch err := c.Get(ctx, client.ObjectKey{Name: shipped.Name}, &live); {
	case apierrors.IsNotFound(err):
		return
	case s.couldNot("MutatingWebhookConfiguration "+shipped.Name, err):
		s.Hidden = true
		return
	}
	s.Webhook = &live
	version := s.Kubernetes
	l := installation.Looker{Reader: c, Version: func(context.Context) (string, error) { return version, nil }, Clock: clock.RealClock{}}
	s.Installed, s.InstallErr = l.Look(ctx, names)
	kept := store.New(store.Options{Client: c, Reader: c, Namespace: s.Namespace, Plan: s.In.Config.Plan.ConfigMap,
		History: s.In.Config.Plan.History})
	s.Said, s.SaidErr = kept.ReadStatus(ctx)
	s.couldNot(OfLeader, s.SaidErr)
	s.lookAtRights(ctx, c)
}

// plannerOf is the user of the planner that is installed: of its Deployment, since a plan has the name that wrote it,
// and before the first plan there is none. Where no Deployment, or several, say it, it is the plan's, or else the one
// that is shipped.
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
func (s *Seen) lookAtRights(ctx context.Context, c client.Client) {
	asked, err := rights.Shipped(s.Namespace, s.In.Workload.Name)
	if err != nil {
		s.RightsErr = err
		return
	}
	if inputs.WantsOf(s.In.Config.Size).Nodes {
		asked = append(asked, rights.Of("list", "", "nodes", "", ""))
	}
	for _, right := range asked {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: s.Planner,
			ResourceAttributes: &right.Attributes}}
		if err := c.Create(ctx, review); err != nil {
			s.RightsErr = err
			return
		}
		if !review.Status.Allowed {
			s.Denied = append(s.Denied, right.Rule)
		}
	}
}
