// Package steer is what the commands share that steer the planner: the plan ConfigMap as it stands, and annotations on
// it.
package steer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/say"
	"ballast/planner/answer"
	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/people"
)

// Cordons are those that are not over.
func (s State) Cordons(now time.Time) ([]people.Cordon, error) {
	cordons, err := people.ParseCordons(s.Cordon)
	if err != nil {
		return nil, fmt.Errorf("annotation %s of the plan ConfigMap: %w\nmend it there, or take the annotation away",
			plan.AnnotationCordon, err)
	}
	return slices.DeleteFunc(cordons, func(c people.Cordon) bool { return !c.Until.After(now) }), nil
}

// Cordoned is a replica that people want empty.
type Cordoned struct {
	Replica  int       `json:"replica"`
	Until    time.Time `json:"until"`
	Clusters int       `json:"clusters"` // that it still has, those that stay among them
}

// User is the name by which the API server knows who asks; empty where it does not say.
func (m *PlanMap) User(ctx context.Context) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := m.Create(ctx, review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// FrozenByUninstall is the reason of the freeze by which `ballast uninstall` has a rollout end; it takes that freeze
// away again.
const FrozenByUninstall = "ballast uninstall"

// FrozenBy says who froze it and why, as far as that is written, and beside what where it stopped itself; empty where
// nobody did.
func (s State) FrozenBy() string {
	if !s.Paused {
		return ""
	}
	who, why := cmp.Or(say.OneLine(s.Annotations[plan.AnnotationPausedBy]), "somebody"),
		say.OneLine(s.Annotations[plan.AnnotationPausedReason])
	did := " froze it"
	if s.Tripped != "" {
		did += " beside"
	}
	if why == "" {
		return who + did
	}
	return who + did + ": " + why
}

// fieldManager is the name under which what people write by this command stands in managedFields.
const fieldManager = "ballast"

// Options are shared by the commands that steer the planner: by annotations on the plan ConfigMap, which the
// leader acts on, and never by writing the plan.
type Options struct {
	Cluster connect.Options
	Plan    string
	Config  string // empty for the commands that read no Secrets
	Output  string
	Now     func() time.Time
}

// Register adds the flags.
func (o *Options) Register(cmd *cobra.Command) {
	o.Now = time.Now
	o.Cluster.Register(cmd)
	cmd.Flags().StringVar(&o.Plan, "plan-configmap", "ballast-plan", "name of the plan ConfigMap")
	cmd.Flags().StringVarP(&o.Output, "output", "o", say.AsTable, "table, json or yaml")
}

// RegisterConfig is for the commands that read Secrets.
func (o *Options) RegisterConfig(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Config, "config-configmap", "ballast-config",
		"name of the ConfigMap with the planner's configuration, whose discover.selector says which Secrets are ballast's")
}

// Open connects to the plan ConfigMap.
func (o *Options) Open() (*PlanMap, error) {
	if err := say.CheckForm(o.Output); err != nil {
		return nil, err
	}
	c, err := o.Cluster.Client()
	if err != nil {
		return nil, err
	}
	return &PlanMap{Client: c, Key: client.ObjectKey{Namespace: o.Cluster.Namespace, Name: o.Plan}, config: o.Config},
		nil
}

// PlanMap is the plan ConfigMap and the way to it.
type PlanMap struct {
	client.Client
	Key    client.ObjectKey
	config string // name of the planner's configuration; empty: the default one counts
}

// State is the plan ConfigMap at one moment.
type State struct {
	configmap.Document
	Annotations map[string]string
	uid         types.UID
	Version     string
	managers    []struct{} // that a patch has to bring, so that the API server takes it
}

// NeedPlan refuses where there is no plan to act on.
func (s State) NeedPlan() (*plan.Plan, error) {
	switch {
	case s.PlanErr != nil:
		return nil, fmt.Errorf("the plan cannot be read: %w; the planner mends it within a cycle, see `ballast status`",
			s.PlanErr)
	case s.Plan == nil:
		return nil, fmt.Errorf("there is no plan yet: the planner makes the first one when it leads, see `ballast status`")
	}
	return s.Plan, nil
}

// NeedEnforce refuses what only mode Enforce does.
func (s State) NeedEnforce() (*plan.Plan, error) {
	p, err := s.NeedPlan()
	if err == nil && p.Mode != plan.Enforce {
		return nil, fmt.Errorf("the mode is %s, in which nothing moves: set mode: Enforce in the planner's configuration", p.Mode)
	}
	return p, err
}

// Waits says why what a person asks for is not taken up now; empty: it is. Neither a freeze nor a trip keeps the
// planner from what people ask for.
func (s State) Waits() string {
	if s.BreakGlass {
		return fmt.Sprintf("enforcement is off (annotation %s), and the planner moves nothing until that is removed",
			plan.AnnotationEnforcement)
	}
	return ""
}

// StateOf reads the plan ConfigMap.
func StateOf(cm *corev1.ConfigMap) State {
	return State{Document: configmap.Parse(cm.Data, cm.Annotations), Annotations: cm.Annotations, uid: cm.UID,
		Version:  cm.ResourceVersion,
		managers: patchable.FewManagers(cm.ManagedFields)}
}

// Read reads it as it stands.
func (m *PlanMap) Read(ctx context.Context) (State, error) {
	var cm corev1.ConfigMap
	err := m.Get(ctx, m.Key, &cm)
	if err != nil {
		return State{}, m.explain("reading", err)
	}
	return StateOf(&cm), nil
}

func (m *PlanMap) explain(doing string, err error) error {
	mend := ""
	if apierrors.IsInvalid(err) { // with the whole ConfigMap where no patch of it can be made
		err = answer.Unquoted(err)
	}
	switch {
	case apierrors.IsNotFound(err):
		mend = "\nis ballast installed there? --namespace and --plan-configmap say where to look"
	case apierrors.IsForbidden(err):
		mend = "\nthis needs get and patch on that ConfigMap, and no other right to write"
	}
	return fmt.Errorf("%s the plan ConfigMap %q in %q: %w%s", doing, m.Key.Name, m.Key.Namespace, err, mend)
}

// Edits are annotations to write; nil takes one away.
type Edits map[string]*string

// Annotate lets decide say what is to change in what stands, and writes that for no other state: a lost race is read
// and decided anew. It answers what stands then, and whether anything was written.
func (m *PlanMap) Annotate(ctx context.Context, decide func(State) (Edits, error)) (state State, written bool, err error) {
	once := func() error {
		if state, err = m.Read(ctx); err != nil {
			return err
		}
		change, err := decide(state)
		if err != nil || !change.differ(state.Annotations) {
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

func (e Edits) differ(annotations map[string]string) bool {
	for name, value := range e {
		if got, there := annotations[name]; there != (value != nil) || there && got != *value {
			return true
		}
	}
	return false
}

func (m *PlanMap) patch(ctx context.Context, base State, change Edits) (State, error) {
	meta := patchable.Meta{UID: base.uid, ResourceVersion: base.Version, Annotations: change,
		ManagedFields: base.managers}
	body, err := meta.MergePatch()
	if err != nil {
		return base, fmt.Errorf("encoding the annotations: %w", err)
	}
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = m.Key.Namespace, m.Key.Name
	if err := m.Patch(ctx, cm, client.RawPatch(types.StrategicMergePatchType, body), client.FieldOwner(fieldManager)); err != nil {
		return base, m.explain("annotating", err)
	}
	if change.differ(cm.Annotations) {
		return StateOf(cm), fmt.Errorf("annotating the plan ConfigMap %q in %q: something changed the annotations on their way; "+
			"look for other webhooks on ConfigMaps", m.Key.Name, m.Key.Namespace)
	}
	return StateOf(cm), nil
}
