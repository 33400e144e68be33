package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/plan"
)

// fieldManager is the name under which what people write by this command stands in managedFields.
const fieldManager = "ballast"

// steerOptions are shared by the commands that steer the planner: by annotations on the plan ConfigMap, which the
// leader acts on, and never by writing the plan.
type steerOptions struct {
	cluster clusterOptions
	plan    string
	config  string // empty for the commands that read no Secrets
	output  string
	now     func() time.Time
}

func (o *steerOptions) register(cmd *cobra.Command) {
	o.now = time.Now
	o.cluster.register(cmd)
	cmd.Flags().StringVar(&o.plan, "plan-configmap", "ballast-plan", "name of the plan ConfigMap")
	cmd.Flags().StringVarP(&o.output, "output", "o", asTable, "table, json or yaml")
}

// registerConfig is for the commands that read Secrets.
func (o *steerOptions) registerConfig(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.config, "config-configmap", "ballast-config",
		"name of the ConfigMap with the planner's configuration, whose discover.selector says which Secrets are ballast's")
}

// open connects to the plan ConfigMap.
func (o *steerOptions) open() (*planMap, error) {
	if err := checkForm(o.output); err != nil {
		return nil, err
	}
	c, err := o.cluster.client()
	if err != nil {
		return nil, err
	}
	return &planMap{Client: c, key: client.ObjectKey{Namespace: o.cluster.namespace, Name: o.plan}, config: o.config}, nil
}

// writer is a result that has a table beside its JSON.
type writer interface{ write(io.Writer) error }

// print writes a result in the form that was asked for.
func (o *steerOptions) print(w io.Writer, result writer) error {
	if o.output == asTable {
		return result.write(w)
	}
	return sayAs(o.output, w, result)
}

// planMap is the plan ConfigMap and the way to it.
type planMap struct {
	client.Client
	key    client.ObjectKey
	config string // name of the planner's configuration; empty: the default one counts
}

// planState is the plan ConfigMap at one moment.
type planState struct {
	plan.Document
	annotations map[string]string
	uid         types.UID
	version     string
}

// needPlan refuses where there is no plan to act on.
func (s planState) needPlan() (*plan.Plan, error) {
	switch {
	case s.PlanErr != nil:
		return nil, fmt.Errorf("the plan cannot be read: %w; the planner mends it within a cycle, see `ballast status`", s.PlanErr)
	case s.Plan == nil:
		return nil, fmt.Errorf("there is no plan yet: the planner makes the first one when it leads, see `ballast status`")
	}
	return s.Plan, nil
}

// needEnforce refuses what only mode Enforce does.
func (s planState) needEnforce() (*plan.Plan, error) {
	p, err := s.needPlan()
	if err == nil && p.Mode != plan.Enforce {
		return nil, fmt.Errorf("the mode is %s, in which nothing moves: set mode: Enforce in the planner's configuration", p.Mode)
	}
	return p, err
}

// waits says why what a person asks for is not taken up now; empty: it is. Neither a freeze nor a trip keeps the
// planner from what people ask for.
func (s planState) waits() string {
	if s.BreakGlass {
		return fmt.Sprintf("enforcement is off (annotation %s), and the planner moves nothing until that is removed", plan.AnnotationEnforcement)
	}
	return ""
}

func stateOf(cm *corev1.ConfigMap) planState {
	return planState{Document: plan.ParseDocument(cm.Data, cm.Annotations), annotations: cm.Annotations, uid: cm.UID, version: cm.ResourceVersion}
}

func (m *planMap) read(ctx context.Context) (planState, error) {
	var cm corev1.ConfigMap
	err := m.Get(ctx, m.key, &cm)
	if err != nil {
		return planState{}, m.explain("reading", err)
	}
	return stateOf(&cm), nil
}

func (m *planMap) explain(doing string, err error) error {
	mend := ""
	switch {
	case apierrors.IsNotFound(err):
		mend = "\nis ballast installed there? --namespace and --plan-configmap say where to look"
	case apierrors.IsForbidden(err):
		mend = "\nthis needs get and patch on that ConfigMap, and no other right to write"
	}
	return fmt.Errorf("%s the plan ConfigMap %q in %q: %w%s", doing, m.key.Name, m.key.Namespace, err, mend)
}

// edits are annotations to write; nil takes one away.
type edits map[string]*string

// annotate lets decide say what is to change in what stands, and writes that for no other state: a lost race is read
// and decided anew. It answers what stands then, and whether anything was written.
func (m *planMap) annotate(ctx context.Context, decide func(planState) (edits, error)) (state planState, written bool, err error) {
	once := func() error {
		if state, err = m.read(ctx); err != nil {
			return err
		}
		change, err := decide(state)
		if err != nil || !change.differ(state.annotations) {
			return err
		}
		state, err = m.patch(ctx, state, change)
		written = err == nil
		return err
	}
	// RetryOnConflict answers nil for a call that timed out, which it takes for the end of its own retries.
	var last error
	_ = retry.RetryOnConflict(retry.DefaultBackoff, func() error { last = once(); return last })
	return state, written, last
}

func (e edits) differ(annotations map[string]string) bool {
	for name, value := range e {
		if got, there := annotations[name]; there != (value != nil) || there && got != *value {
			return true
		}
	}
	return false
}

func (m *planMap) patch(ctx context.Context, base planState, change edits) (planState, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": base.uid, "resourceVersion": base.version, "annotations": change}})
	if err != nil {
		return base, fmt.Errorf("encoding the annotations: %w", err)
	}
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = m.key.Namespace, m.key.Name
	if err := m.Patch(ctx, cm, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldManager)); err != nil {
		return base, m.explain("annotating", err)
	}
	if change.differ(cm.Annotations) {
		return stateOf(cm), fmt.Errorf("annotating the plan ConfigMap %q in %q: something changed the annotations on their way; "+
			"look for other webhooks on ConfigMaps", m.key.Name, m.key.Namespace)
	}
	return stateOf(cm), nil
}
