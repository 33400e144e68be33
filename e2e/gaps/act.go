package gaps

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/e2e/fleet"
	"ballast/e2e/gaps/timeline"
)

// Pod is the name of the application-controller's pod of that ordinal.
func Pod(ordinal int) string { return fmt.Sprintf("%s-%d", fleet.Workload, ordinal) }

// Scale sets spec.replicas of the application-controller, and waits for nothing.
func (s *Site) Scale(ctx context.Context, replicas int) error {
	return s.patchWorkload(ctx, map[string]any{"spec": map[string]any{"replicas": replicas}})
}

// SetReplicas sets spec.replicas and ARGOCD_CONTROLLER_REPLICAS, which rolls all pods, in one write.
func (s *Site) SetReplicas(ctx context.Context, replicas, controllerReplicas int) error {
	env := []any{map[string]any{"name": fleet.ReplicasEnv, "value": fmt.Sprint(controllerReplicas)}}
	containers := []any{map[string]any{"name": fleet.Workload, "env": env}}
	return s.patchWorkload(ctx, map[string]any{"spec": map[string]any{
		"replicas": replicas,
		"template": map[string]any{"spec": map[string]any{"containers": containers}},
	}})
}

func (s *Site) patchWorkload(ctx context.Context, patch map[string]any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("marshalling a patch of the workload: %w", err)
	}
	if s.options.Dynamic {
		_, err = s.Client.AppsV1().Deployments(s.Fleet.Namespace).Patch(ctx, fleet.Workload,
			types.StrategicMergePatchType, body, metav1.PatchOptions{})
	} else {
		_, err = s.Client.AppsV1().StatefulSets(s.Fleet.Namespace).Patch(ctx, fleet.Workload,
			types.StrategicMergePatchType, body, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("patching workload %q: %w", fleet.Workload, err)
	}
	return nil
}

// SetShard writes data.shard of a cluster's Secret.
func (s *Site) SetShard(ctx context.Context, cluster string, shard int) error {
	body, err := json.Marshal(map[string]any{"data": map[string][]byte{"shard": fmt.Append(nil, shard)}})
	if err != nil {
		return fmt.Errorf("marshalling a shard: %w", err)
	}
	if _, err := s.Client.CoreV1().Secrets(s.Fleet.Namespace).Patch(ctx, cluster, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patching cluster secret %q: %w", cluster, err)
	}
	return nil
}

// Nudge asks for a refresh of the cluster's Application. One that is pending is taken back first: the same once more
// would be no write, and nobody would hear of it.
func (s *Site) Nudge(ctx context.Context, cluster string) error {
	app, err := s.objects.Resource(applications).Namespace(s.Fleet.Namespace).Get(ctx, cluster, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting application %q: %w", cluster, err)
	}
	if _, pending := app.GetAnnotations()[refresh]; pending {
		if err := s.annotate(ctx, cluster, nil); err != nil {
			return err
		}
	}
	return s.annotate(ctx, cluster, "normal")
}

// refresh is Argo CD's annotation on an Application. Argo CD removes it when it has done so.
const refresh = "argocd.argoproj.io/refresh"

func (s *Site) annotate(ctx context.Context, application string, value any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{refresh: value}}})
	if err != nil {
		return fmt.Errorf("marshalling a refresh: %w", err)
	}
	if _, err := s.objects.Resource(applications).Namespace(s.Fleet.Namespace).Patch(ctx, application, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("refreshing application %q: %w", application, err)
	}
	return nil
}

// Kill kills the process of a pod, as the kernel does when memory runs out. It tells the logs, which the process
// cannot.
func (s *Site) Kill(ctx context.Context, pod string) error {
	if err := s.Plane.KillPod(ctx, s.Fleet.Namespace, pod); err != nil {
		return err
	}
	s.logs.add(timeline.Event{At: time.Now(), Pod: pod, Kind: timeline.Ended})
	return nil
}

// Lose kills the process of a pod and each one that its container restarts, until release is called: a replica that
// crashes again and again and never gets to work.
func (s *Site) Lose(ctx context.Context, ordinal int) (release func(), err error) {
	if err := s.Kill(ctx, Pod(ordinal)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		const look = 10 * time.Millisecond // a process takes some 200 ms to its first cluster
		for pause(ctx, look) == nil {
			if s.Plane.PodPID(s.Fleet.Namespace, Pod(ordinal)) != 0 {
				_ = s.Kill(ctx, Pod(ordinal)) // one that ended meanwhile is as good as killed
			}
		}
	}()
	return func() { cancel(); <-done }, nil
}

// Pace is when the Applications of moved clusters are refreshed.
type Pace struct {
	First time.Duration // after the answer to the last write of a shard
	Again time.Duration // for each cluster that its new owner has not taken by then, until it does; 0: never
}

// AtOnce is the pace that leaves a cluster without an owner for the least time. The second nudge is for one that
// overtook the shard: it reaches the new owner when that does not yet know that it is one, or the old owner when that
// still thinks it is.
func AtOnce() Pace { return Pace{Again: time.Second} }

// Reassign gives clusters other owners as a wave does: it writes every shard and then nudges each at that pace. It
// returns when every one has only its new owner, which has synced it, and says how many nudges were made a second time
// or more.
func (s *Site) Reassign(ctx context.Context, to map[string]int, pace Pace) (again int, err error) {
	names := slices.Sorted(maps.Keys(to))
	for _, name := range names {
		if err := s.SetShard(ctx, name, to[name]); err != nil {
			return 0, err
		}
	}
	if err := pause(ctx, pace.First); err != nil {
		return 0, err
	}
	for round := 0; len(names) > 0; round++ {
		again += min(round, 1) * len(names)
		if err := s.nudgeAll(ctx, names); err != nil {
			return again, err
		}
		if pace.Again == 0 {
			break
		}
		if names, err = s.untaken(ctx, to, pace.Again); err != nil {
			return again, err
		}
	}
	return again, s.WaitOwned(ctx, to)
}

// nudgeAll nudges all at once: one after the other, the last would wait for what the first have set to work.
func (s *Site) nudgeAll(ctx context.Context, clusters []string) error {
	var group errgroup.Group
	for _, name := range clusters {
		group.Go(func() error { return s.Nudge(ctx, name) })
	}
	return group.Wait()
}

// untaken waits at most that long for the new owners, and gives the clusters that are still without.
func (s *Site) untaken(ctx context.Context, to map[string]int, patience time.Duration) ([]string, error) {
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var names []string
	err := s.wait(short, func(t timeline.Timeline) error {
		names = names[:0]
		for _, c := range t.Clusters {
			if ordinal, moves := to[c.Name]; moves && !t.Holds(Pod(ordinal), c) {
				names = append(names, c.Name)
			}
		}
		if len(names) > 0 {
			return fmt.Errorf("clusters %q are without their new owners", names)
		}
		return nil
	})
	if short.Err() != nil && ctx.Err() == nil {
		return names, nil
	}
	return names, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s: %w", d, ctx.Err())
	}
}
