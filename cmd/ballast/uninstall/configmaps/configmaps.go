// Package configmaps is what `ballast uninstall` does with the ConfigMaps of plan, history and status.
package configmaps

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/status"
	"ballast/planner/store"
)

// Maps are the ConfigMaps of an installation, by their names.
type Maps struct {
	Namespace, Plan, History string

	Every time.Duration // between two tries
}

// OnlyOwn refuses ConfigMaps that the flags name and that are not ballast's: they would be annotated, and deleted.
func (m Maps) OnlyOwn(ctx context.Context, c client.Reader) error {
	for _, named := range []struct {
		flag, name, what string
		is               func(*corev1.ConfigMap) bool
	}{
		{"plan-configmap", m.Plan, "plan", isPlan},
		{"plan-configmap", status.Name(m.Plan), "status", isStatus},
		{"history-configmap", m.History, "history", func(cm *corev1.ConfigMap) bool { return hasNothing(cm) || store.IsHistory(cm) }},
	} {
		cm := &corev1.ConfigMap{}
		err := c.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: named.name}, cm)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading ConfigMap %q in %q: %w", named.name, m.Namespace, err)
		case err == nil && !named.is(cm):
			return fmt.Errorf("ConfigMap %q in %q is no %s of ballast's, and uninstall would delete it: "+
				"name the one that `plan` in ConfigMap ballast-config does "+
				"with --%s; where this is the one and somebody spoiled it, delete it yourself, and run uninstall again",
				named.name, m.Namespace, named.what, named.flag)
		}
	}
	return nil
}

// isPlan reports whether it is a plan, one that was damaged, or what people wrote for the first plan.
func isPlan(cm *corev1.ConfigMap) bool {
	if configmap.Parse(cm.Data, nil).Plan != nil {
		return true
	}
	for name := range cm.Annotations {
		if strings.HasPrefix(name, plan.Group+"/") {
			return true
		}
	}
	return hasOnly(cm, plan.KeyPins)
}

// isStatus reports whether nothing stands there but what a leader says.
func isStatus(cm *corev1.ConfigMap) bool {
	return hasNothing(cm) || hasOnly(cm, status.Key)
}

func hasOnly(cm *corev1.ConfigMap, key string) bool {
	_, has := cm.Data[key]
	return has && len(cm.Data) == 1 && len(cm.BinaryData) == 0
}

func hasNothing(cm *corev1.ConfigMap) bool { return len(cm.Data) == 0 && len(cm.BinaryData) == 0 }
