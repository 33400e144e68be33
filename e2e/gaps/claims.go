package gaps

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"ballast/e2e/fleet"
	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
)

// claims is the ConfigMap in which Argo CD's controllers claim slots.
const claims = "argocd-app-controller-shard-cm"

// Nobody is the replica of a pod that holds no slot.
const Nobody = -1

// Replicas tells which replica a pod is now, by its ordinal or its slot. A pod that went may still have its slot.
func (s *Site) Replicas(ctx context.Context) (of func(pod string) int, err error) {
	if !s.options.Dynamic {
		return numberOf, nil
	}
	held, err := s.Claims(ctx)
	if err != nil {
		return nil, err
	}
	return func(pod string) int {
		if slot, claimed := held[pod]; claimed {
			return slot
		}
		return Nobody
	}, nil
}

func numberOf(pod string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(pod, fleet.Workload+"-"))
	if err != nil {
		return Nobody
	}
	return n
}

// Holder is the pod of a replica.
func (s *Site) Holder(ctx context.Context, replica int) (string, error) {
	if !s.options.Dynamic {
		return Pod(replica), nil
	}
	held, err := s.Claims(ctx)
	if err != nil {
		return "", err
	}
	for pod, slot := range held {
		if slot == replica {
			return pod, nil
		}
	}
	return "", fmt.Errorf("no pod has claimed slot %d", replica)
}

// Claims are the slots that pods have claimed, by pod.
func (s *Site) Claims(ctx context.Context) (map[string]int, error) {
	cm, err := s.Client.CoreV1().ConfigMaps(s.Fleet.Namespace).Get(ctx, claims, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("getting the claims: %w", err)
	}
	return slots(cm)
}

// slots are those of each pod that claimed one.
func slots(cm *corev1.ConfigMap) (map[string]int, error) {
	var mapping []struct {
		ShardNumber    int
		ControllerName string
	}
	if err := json.Unmarshal([]byte(cm.Data["shardControllerMapping"]), &mapping); err != nil {
		return nil, fmt.Errorf("reading the claims: %w", err)
	}
	held := map[string]int{}
	for _, m := range mapping {
		if _, twice := held[m.ControllerName]; !twice && m.ControllerName != "" { // as Argo CD reads it
			held[m.ControllerName] = m.ShardNumber
		}
	}
	return held, nil
}

// followClaims tells the logs of each pod that takes another slot than it had. One that another pod took, or that was
// dealt anew, is the pod's own until it looks again: then it takes one that is free, or goes on without if there is
// none.
func (s *Site) followClaims(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(s.Fleet.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", claims).String()
		}))
	informer := factory.Core().V1().ConfigMaps().Informer()
	known := map[string]int{}
	look := func(object any) {
		now, err := slots(object.(*corev1.ConfigMap))
		if err != nil {
			fmt.Fprintln(s.log, err)
		}
		for pod, slot := range now {
			if had, before := known[pod]; before && had != slot {
				s.logs.add(timeline.Event{At: time.Now(), Pod: pod, Kind: timeline.Claimed, Shard: slot})
			}
			known[pod] = slot
		}
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, object any) { look(object) }})
	if err != nil {
		return fmt.Errorf("following the claims: %w", err)
	}
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	s.unclaim = end
	factory.Start(following.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return fmt.Errorf("following the claims: %w", ctx.Err())
	}
	return nil
}

// WaitReady returns when the application-controller has that many pods, all ready, of its present template.
func (s *Site) WaitReady(ctx context.Context, replicas int) error {
	return site.Poll(ctx, func(ctx context.Context) error { return s.Ready(ctx, replicas) })
}

// Ready is nil if the application-controller has that many pods, all ready, of its present template.
func (s *Site) Ready(ctx context.Context, replicas int) error {
	if !s.options.Dynamic {
		return s.Site.Ready(ctx, replicas)
	}
	d, err := s.Client.AppsV1().Deployments(s.Fleet.Namespace).Get(ctx, fleet.Workload, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting deployment %q: %w", fleet.Workload, err)
	}
	if got := int(*d.Spec.Replicas); got != replicas {
		return fmt.Errorf("deployment %q is for %d replicas, want %d", fleet.Workload, got, replicas)
	}
	return s.Deployed(ctx, fleet.Workload)
}
