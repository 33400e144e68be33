package watch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/discover"
)

// asked is the selector of --selector; nil: nobody said one.
func (o *options) asked() (labels.Selector, error) {
	if o.selector == "" {
		return nil, nil
	}
	parsed, err := metav1.ParseToLabelSelector(o.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	s, err := discover.Selector(*parsed)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	return s, nil
}

// selects is which Secrets are clusters: as a person says, else by the installed planner's configuration, else by
// default.
type selects struct {
	asked     labels.Selector // nil: nobody said
	installed string          // the ConfigMap with the planner's configuration; empty: none is asked for
	found     labels.Selector
	doubt     string // why it may not be the planner's
	read      time.Time
}

// selectedFor is how long what was read of the configuration stands.
const selectedFor = 5 * time.Minute

// find answers what stands, and reads it anew from time to time.
func (s *selects) find(ctx context.Context, r client.Reader, namespace string, now time.Time) (labels.Selector, string, error) {
	switch {
	case s.asked != nil:
		return s.asked, "", nil
	case s.found != nil && now.Sub(s.read) < selectedFor:
		return s.found, s.doubt, nil
	}
	of, doubt := s.configured(ctx, r, namespace)
	found, err := discover.Selector(of)
	if err != nil {
		return nil, "", err
	}
	s.found, s.doubt, s.read = found, doubt, now
	return found, doubt, nil
}

// configured is the installed configuration's selector, else the default; doubt says why it is not known which.
func (s *selects) configured(ctx context.Context, r client.Reader, namespace string) (of metav1.LabelSelector, doubt string) {
	of = config.Default().Discover.Selector
	if s.installed == "" {
		return of, ""
	}
	var cm corev1.ConfigMap
	switch err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.installed}, &cm); {
	case apierrors.IsNotFound(err):
		return of, ""
	case err != nil:
		return of, fmt.Sprintf("which Secrets the planner takes for clusters (ConfigMap %q): "+
			"those of the default selector are watched; --selector says others: %s",
			s.installed, say.OneLine(err.Error()))
	}
	text, there := cm.Data["config.yaml"]
	if !there {
		return of, ""
	}
	cfg, err := configfile.Parse([]byte(text))
	if err != nil {
		return of, fmt.Sprintf("which Secrets the planner takes for clusters: the configuration of ConfigMap %q is refused, "+
			"and those of the default selector are watched: %s",
			s.installed, say.OneLine(err.Error()))
	}
	return cfg.Discover.Selector, ""
}
