package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/controller/sharding"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/db"
	"github.com/argoproj/argo-cd/v3/util/settings"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const inCluster = v1alpha1.KubernetesInternalAPIServerAddr

// views are those of the pods that live, in the order of their start.
type views struct{ pods []*view }

// view is a pod's. local is the cluster that it runs in, which is there without a Secret, nil where that is turned off.
type view struct {
	pod   string
	cache sharding.ClusterShardingCache
	local *v1alpha1.Cluster
}

func (v *views) take(steps []step) error {
	for _, s := range steps {
		if s.Do == "reset" {
			v.pods = nil
			continue
		}
		i := slices.IndexFunc(v.pods, func(p *view) bool { return p.pod == s.Pod })
		if (i >= 0) == (s.Do == "start") {
			return fmt.Errorf("taking step %q of pod %q: it lives: %t", s.Do, s.Pod, i >= 0)
		}
		var err error
		switch s.Do {
		case "start":
			var p *view
			if p, err = newView(s.Pod, s.Start); err == nil {
				v.pods = append(v.pods, p)
			}
		case "stop":
			v.pods = slices.Delete(v.pods, i, i+1)
		default:
			err = v.pods[i].see(s)
		}
		if err != nil {
			return fmt.Errorf("taking step %q of pod %q: %w", s.Do, s.Pod, err)
		}
	}
	return nil
}

func (v *views) owners(servers []string) [][]string {
	owners := make([][]string, len(servers))
	for i, server := range servers {
		owners[i] = []string{}
		for _, p := range v.pods {
			if p.cache.IsManagedCluster(&v1alpha1.Cluster{Server: server}) {
				owners[i] = append(owners[i], p.pod)
			}
		}
	}
	return owners
}

// newView does what the controller does at its start: it takes its shard from its environment, lists clusters and
// Applications, and then sees each cluster once more as its watch begins.
func newView(pod string, s *start) (*view, error) {
	if s == nil {
		return nil, errors.New("nothing says how it starts")
	}
	for name, value := range map[string]string{common.EnvControllerReplicas: s.Replicas, common.EnvControllerShard: s.Shard} {
		if err := os.Setenv(name, value); err != nil {
			return nil, fmt.Errorf("setting %q: %w", name, err)
		}
	}
	none := settings.NewSettingsManager(context.Background(), nil, "argocd") // asked for its namespace only
	cache, err := sharding.GetClusterSharding(nil, none, s.Algorithm, false)
	if err != nil {
		return nil, fmt.Errorf("finding its shard: %w", err)
	}
	v := &view{pod: pod, cache: cache}
	if s.InCluster {
		v.local = implicit()
	}
	list := &v1alpha1.ClusterList{}
	for _, secret := range s.Secrets {
		c, err := secret.cluster()
		switch {
		case err != nil:
			return nil, err
		case c.Server != inCluster:
			list.Items = append(list.Items, *c)
		case s.InCluster:
			v.local = c
		}
	}
	if v.local != nil {
		list.Items = append(list.Items, *v.local)
	}
	cache.Init(list, applications(s.Apps))
	for i := range list.Items {
		cache.Add(&list.Items[i])
	}
	return v, nil
}

// see is what util/db's watch of the cluster Secrets makes of an event, and its handlers in controller/cache of that.
func (v *view) see(s step) error {
	var before, after *v1alpha1.Cluster
	var err error
	if s.Old != nil {
		before, err = s.Old.cluster()
	}
	if s.New != nil && err == nil {
		after, err = s.New.cluster()
	}
	switch {
	case err != nil:
		return err
	case s.Do == "add" && after != nil && after.Server == inCluster:
		v.replaceLocal(after)
	case s.Do == "add" && after != nil:
		v.cache.Add(after)
	case s.Do == "update" && before != nil && after != nil:
		if after.Server == inCluster {
			v.local = after
		}
		v.cache.Update(before, after)
	case s.Do == "delete" && before != nil && s.Old.Server == inCluster && v.local != nil: // as it is spelled there
		v.replaceLocal(implicit())
	case s.Do == "delete" && before != nil:
		v.cache.Delete(s.Old.Server)
	default:
		return fmt.Errorf("seeing an event %q with an old Secret: %t, a new one: %t", s.Do, before != nil, after != nil)
	}
	return nil
}

// replaceLocal: the pod's own cluster is never added nor deleted while it runs, only changed.
func (v *view) replaceLocal(c *v1alpha1.Cluster) {
	if v.local != nil {
		v.cache.Update(v.local, c)
		v.local = c
	}
}

func implicit() *v1alpha1.Cluster { return &v1alpha1.Cluster{Name: "in-cluster", Server: inCluster} }

func (s *secret) cluster() (*v1alpha1.Cluster, error) {
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, UID: types.UID(s.UID)},
		Data:       map[string][]byte{"name": []byte(s.Name), "server": []byte(s.Server)},
	}
	if s.Shard != nil {
		object.Data["shard"] = []byte(*s.Shard)
	}
	c, err := db.SecretToCluster(object)
	if err != nil {
		return nil, fmt.Errorf("reading cluster secret %q: %w", s.Name, err)
	}
	return c, nil
}

func applications(byServer map[string]int) *v1alpha1.ApplicationList {
	list := &v1alpha1.ApplicationList{}
	for server, n := range byServer {
		for i := range n {
			a := v1alpha1.Application{}
			a.Name = fmt.Sprintf("%s-%d", server, i)
			a.Spec.Destination.Server = server
			list.Items = append(list.Items, a)
		}
	}
	return list
}
