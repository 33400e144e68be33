package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/conflicts"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/ownership/podlist"
	"ballast/planner/plan"
	"ballast/planner/status"
	"ballast/planner/store"
	"ballast/planner/store/history"
)

// observation is all that a status is made of.
type observation struct {
	now        time.Time
	state      steer.State
	config     config.PlannerConfig
	input      discover.Input
	workload   discover.Workload
	lease      *coordinationv1.Lease
	known      discover.Known
	records    []history.Record     // earlier plans, newest first
	said       *status.Status       // nil: no leader said anything, or it may not be read
	pods       *podlist.Controllers // nil: they could not be listed
	neighbours []conflicts.Finding
	unseen     []string // what may not be read
	unread     []string // what could not be read for another reason
}

// note takes a failure of what is only worth showing: a status without it serves.
func (s *observation) note(what string, err error) {
	switch {
	case apierrors.IsForbidden(err):
		s.unseen = append(s.unseen, what)
	case err != nil && !apierrors.IsNotFound(err):
		s.unread = append(s.unread, say.OneLine(err.Error()))
	}
}

func (o *options) read(ctx context.Context, c client.Client) (*observation, error) {
	s := &observation{now: o.now().UTC().Truncate(time.Second)}
	m := &steer.PlanMap{Client: c, Key: client.ObjectKey{Namespace: o.cluster.Namespace, Name: o.plan}}
	var cm corev1.ConfigMap
	if err := c.Get(ctx, m.Key, &cm); err != nil {
		mend := ""
		if apierrors.IsNotFound(err) {
			mend = "\nis ballast installed there? --namespace and --plan-configmap say where to look; the first plan takes about a minute"
		}
		return nil, fmt.Errorf("reading the plan ConfigMap %q in %q: %w%s", o.plan, o.cluster.Namespace, err, mend)
	}
	s.state = steer.StateOf(&cm)
	s.readConfig(ctx, c, o)
	s.readLeaders(ctx, c)
	var err error
	if s.input, s.workload, err = gather.Look(ctx, c, s.config, s.known, s.state.Plan); err != nil {
		return nil, connect.ExplainDenied(err, o.cluster.Namespace)
	}
	s.readLease(ctx, c)
	pods, err := podlist.List(ctx, c, s.target(), s.workload.UID, s.now)
	if s.note("pods", err); err == nil {
		s.pods = &pods
	}
	s.readNeighbours(ctx, c)
	return s, nil
}

// target is the plan's, else the workload that was found.
func (s *observation) target() plan.Target {
	if s.state.Plan != nil {
		return s.state.Plan.Target
	}
	w := s.workload
	return plan.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Container: w.Container}
}

// readConfig reads the planner's configuration where the shipped manifests put it. The names and the namespace that
// were given, and the plan's target, go before what it says.
func (s *observation) readConfig(ctx context.Context, c client.Reader, o *options) {
	var cm corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: o.cluster.Namespace, Name: o.config}, &cm)
	if err == nil {
		s.config, err = configfile.Parse([]byte(cm.Data["config.yaml"]))
	}
	if err != nil {
		s.config = config.Default()
		s.unread = append(s.unread, say.OneLine(fmt.Sprintf("which Secrets are clusters is taken from the default configuration: reading ConfigMap %q: %v", o.config, err)))
	}
	s.config.Target.Namespace, s.config.Plan.ConfigMap = o.cluster.Namespace, o.plan
	if s.state.Plan != nil {
		s.config.Target = s.state.Plan.Target
	}
}

func (s *observation) readLease(ctx context.Context, c client.Reader) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: s.config.Target.Namespace, Name: "ballast-" + s.workload.Name}, lease)
	if s.note("leases.coordination.k8s.io", err); err == nil {
		s.lease = lease
	}
}

// readLeaders reads what the leader says, and which clusters it knows.
func (s *observation) readLeaders(ctx context.Context, c client.Client) {
	name := s.config.Plan.History
	kept := store.New(store.Options{Client: c, Reader: c, Namespace: s.config.Target.Namespace,
		Plan: s.config.Plan.ConfigMap, History: name})
	var err error
	s.said, err = kept.ReadStatus(ctx)
	s.note("configmap "+status.Name(s.config.Plan.ConfigMap), err)
	if s.said == nil && err == nil {
		s.unread = append(s.unread, fmt.Sprintf("no leader has said yet how things are (ConfigMap %q)",
			status.Name(s.config.Plan.ConfigMap)))
	}
	h, problems, err := kept.ReadHistory(ctx)
	s.note("configmap "+name, err)
	s.records = h.Plans
	saved, dropped := memory.OfSaved(h.Parts)
	s.known = saved.Known
	if len(dropped) > 0 {
		problems = append(problems, errors.Join(dropped...).Error())
	}
	for _, p := range problems {
		s.unread = append(s.unread, say.OneLine(fmt.Sprintf("reading ConfigMap %q: %s", name, p)))
	}
}

// readNeighbours looks for what else has a say. What the person may not list is said in the same words as all else of
// that kind: the findings speak of the planner's rights.
func (s *observation) readNeighbours(ctx context.Context, c client.Reader) {
	if s.state.Plan == nil {
		return
	}
	found, err := conflicts.Look(ctx, c, *s.state.Plan)
	s.note("neighbours", err)
	for _, f := range found {
		if f.Kind == conflicts.CannotLook {
			s.unseen = append(s.unseen, f.Subject)
			continue
		}
		s.neighbours = append(s.neighbours, f)
	}
}
