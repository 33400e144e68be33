package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/e2e/fleet"
	"ballast/e2e/gaps"
	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

// Of the clusters of the second control plane a replica has four, each with one Application; one gets four more.
const (
	liveApps     = liveClusters / liveAfter
	moreApps     = 4
	perApp       = 64 << 20 // bytes of memory
	growsReplica = 1
)

// memory is what a replica with that many Applications asks for.
func memory(apps int) *resource.Quantity {
	return resource.NewQuantity(int64(apps)*perApp, resource.BinarySI)
}

func requests(apps int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: *memory(apps)}
}

// sizesConfig gives each replica memory by its Applications, and moves none of them for that.
func sizesConfig(w *gaps.Site) map[string]any {
	c := liveConfig(w, liveAfter)
	c["change"].(map[string]any)["moves"] = map[string]any{"mode": "Off", "rate": []any{}}
	c["size"] = map[string]any{"interval": "0s", "policies": []any{map[string]any{"name": "ours",
		"rules": []any{map[string]any{
			"list": "requests", "resource": "memory", "slope": strconv.Itoa(perApp), "input": "apps"}}}}}
	return c
}

// process is one of Argo CD's own, as the pod has it.
type process struct {
	Pod      types.UID
	PID      int
	Restarts int32
}

// sized is a replica: its process, what it asks for, and what its node has given it.
type sized struct {
	process
	asks, has string
}

func (s *Live) sized(ctx context.Context, w *gaps.Site) (all []sized, err error) {
	for replica := range liveAfter {
		name := fleet.Workload + "-" + strconv.Itoa(replica)
		p, err := w.Client.CoreV1().Pods(w.Fleet.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("getting pod %q: %w", name, err)
		}
		r := sized{asks: p.Spec.Containers[0].Resources.Requests.Memory().String()}
		r.Pod, r.PID = p.UID, w.Plane.PodPID(w.Fleet.Namespace, name)
		if st := p.Status.ContainerStatuses; len(st) > 0 {
			r.Restarts = st[0].RestartCount
			if st[0].Resources != nil {
				r.has = st[0].Resources.Requests.Memory().String()
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// Resize is step 9: Argo CD's own application-controllers, of which one gets more to do.
func (s *Live) Resize(ctx context.Context) error {
	w := s.second
	s.Out.Say("a size policy: 64Mi of memory for each Application of a replica")
	if err := w.Configure(ctx, sizesConfig(w)); err != nil {
		return err
	}
	// The leader reads its configuration a moment later, and would level what comes before by the last one.
	err := s.Holds(ctx, time.Minute, "the plan says how large each replica is", func(ctx context.Context) error { return hasSizes(ctx, w) })
	if err != nil {
		return err
	}
	before, err := s.sized(ctx, w)
	if err != nil {
		return err
	}
	if err := s.giveMore(ctx, w); err != nil {
		return err
	}
	var after []sized
	err = s.Holds(ctx, 3*time.Minute, fmt.Sprintf("replica %d has grown, and no other", growsReplica), func(ctx context.Context) error {
		if after, err = s.sized(ctx, w); err != nil {
			return err
		}
		return grown(after)
	})
	if err != nil {
		return err
	}
	return s.sameProcesses(before, after)
}

// hasSizes is nil once the plan in force holds sizes.
func hasSizes(ctx context.Context, w *gaps.Site) error {
	cm, err := w.Client.CoreV1().ConfigMaps(w.Fleet.Namespace).Get(ctx, site.PlanConfigMap, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting the plan: %w", err)
	}
	p, err := codec.Decode(cm.Data[plan.KeyPlan])
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	if p.Sizes == nil {
		return errors.New("the plan holds no size yet")
	}
	return nil
}

// giveMore makes Applications for a cluster of the replica that is to grow.
func (s *Live) giveMore(ctx context.Context, w *gaps.Site) error {
	owners, err := liveOwners(w)
	if err != nil {
		return err
	}
	of := fleet.Workload + "-" + strconv.Itoa(growsReplica)
	at := slices.IndexFunc(w.Clusters, func(c timeline.Cluster) bool { return owners[c.Name] == of })
	if at < 0 {
		return fmt.Errorf("%s has no cluster: owners are %v", of, owners)
	}
	c := w.Clusters[at]
	s.Out.Say("%d Applications more for cluster %s, which replica %d has", moreApps, c.Name, growsReplica)
	for i := range moreApps {
		if err := w.AddApplication(ctx, c, c.Name+"-"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return nil
}

// grown is nil when the replica with more to do has another size, and every other the one that it had.
func grown(replicas []sized) error {
	for replica, is := range replicas {
		apps := liveApps
		if replica == growsReplica {
			apps += moreApps
		}
		if want := memory(apps); is.asks != want.String() || is.has != want.String() {
			return fmt.Errorf("replica %d asks for %s and has %q, want %s", replica, is.asks, is.has, want.String())
		}
	}
	return nil
}

// sameProcesses shows the processes before and after, which are to be the same.
func (s *Live) sameProcesses(before, after []sized) error {
	rows := [][]string{{"REPLICA", "PROCESS", "MEMORY", "PROCESS NOW", "MEMORY NOW"}}
	for replica := range before {
		was, is := before[replica], after[replica]
		rows = append(rows, []string{strconv.Itoa(replica), strconv.Itoa(was.PID), was.has, strconv.Itoa(is.PID),
			is.has})
		if was.process != is.process || was.PID == 0 {
			return fmt.Errorf("replica %d is another process: %+v after %+v", replica, is.process, was.process)
		}
	}
	s.Out.Table(rows)
	s.Passed("no process is another one")
	return nil
}
