package rollouts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/gaps"
	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
)

// TestDeployment is dynamic cluster distribution. Its pods have no ordinals: whose slot a pod has stands in what it claimed.
func TestDeployment(t *testing.T) {
	rounds := soak(t)
	if rounds == 0 {
		t.Parallel()
		launch(t, gaps.Options{Algorithm: "consistent-hashing", Clusters: 12, Dynamic: true}).follow(t, deploymentInstalls(), []step{
			{"a killed process claims its slot again", func(t *testing.T, w *world) { w.kill(t, deployment, 2).claimed(t) }},
			{"another pod claims the slot of one that is gone", func(t *testing.T, w *world) { w.replace(t, 2) }},
			amidRestart(deployment),
			{"what was kept goes, too", func(t *testing.T, w *world) { w.forget(t) }},
		})
		return
	}
	launch(t, gaps.Options{Algorithm: "consistent-hashing", Clusters: 24, Dynamic: true}).follow(t, deploymentInstalls())
	w := launch(t, gaps.Options{Algorithm: "round-robin", Clusters: 24, Dynamic: true})
	w.follow(t, deploymentInstalls())
	for range rounds {
		w.follow(t, []step{
			{"a Deployment grows", func(t *testing.T, w *world) { w.scale(t, deployment, 4).claimed(t) }},
			{"a Deployment levels", func(t *testing.T, w *world) { w.level(t, deployment, 4).quiet(t) }},
			{"a Deployment shrinks", func(t *testing.T, w *world) { w.scale(t, deployment, 3).claimed(t) }},
			{"a killed process claims its slot again", func(t *testing.T, w *world) { w.kill(t, deployment, 3).claimed(t) }},
			{"another pod claims the slot of one that is gone", func(t *testing.T, w *world) { w.replace(t, 3) }},
			{"a pod that hangs is flagged, and fails over", hangs},
			{"a Deployment shrinks to two", func(t *testing.T, w *world) { w.scale(t, deployment, 2).claimed(t) }},
		})
	}
}

func deploymentInstalls() []step {
	return []step{{"installing changes nothing", func(t *testing.T, w *world) { w.install(t, deployment) }}}
}

// Argo CD's own times: how long a controller may be silent before its slot is anyone's, and how often it is probed, which is
// when it looks for a slot.
const (
	silence = 30 * time.Second
	probed  = 10 * time.Second
)

// claimed holds a step that replaces pods to what Argo CD's claims allow on a busy machine: a slot is free when its old pod was
// silent for long enough and the new one looks again; and while claims are dealt anew, the old pods hear of it one by one.
func (m measured) claimed(t *testing.T) {
	t.Helper()
	if got, most := timeline.Longest(m.gaps), 2*(silence+probed); got > most {
		t.Errorf("the longest gap: got %s, want at most %s", got, most)
	}
	if got, most := timeline.Longest(m.doubled), 2*probed; got > most {
		t.Errorf("two owners: got %s, want at most %s", got, most)
	}
}

// replace deletes a pod, as a drained node does. The one that comes has another name, and nothing moves meanwhile.
func (w *world) replace(t *testing.T, replicas int) {
	t.Helper()
	const lost = 1
	pod, err := w.Holder(t.Context(), lost)
	must(t, err)
	taken := func(ctx context.Context, _ site.Plan) error {
		now, err := w.Holder(ctx, lost)
		if err == nil && now == pod {
			err = fmt.Errorf("slot %d is still that of %q, which is gone", lost, pod)
		}
		return err
	}
	c := w.drive(t, goal{replicas: replicas, unlevel: !w.levels, reached: taken}, func(ctx context.Context) error {
		return w.Client.CoreV1().Pods(w.Fleet.Namespace).Delete(ctx, pod, metav1.DeleteOptions{})
	})
	m := w.note(t, deployment, "pod deleted", c)
	m.claimed(t)
	if m.moved > 0 {
		t.Errorf("clusters that moved: got %d, want none", m.moved)
	}
}

// hangs: the kubelet restarts nothing, since Argo CD's Deployment has no liveness probe, and no other pod is there to claim.
func hangs(t *testing.T, w *world) {
	const pause = 5 * time.Second // a command takes half a second of a core
	var states []string           // of the slot, each once
	var looked time.Time
	away, _ := w.failover(t, deployment, func(ctx context.Context) error {
		if time.Since(looked) < pause {
			return nil
		}
		looked = time.Now()
		state, err := w.slotState(ctx, 1)
		if err == nil && !slices.Contains(states, state) {
			states = append(states, state)
		}
		return err
	})
	// The planner calls a pod unhealthy before or after its slot is anyone's: between the two it may be seen, or not.
	if first, last := "Held healthy", "Silent unhealthy"; len(states) < 2 || states[0] != first || states[len(states)-1] != last {
		t.Errorf("what `ballast status` said of the slot: got %q, want %q first and %q last", states, first, last)
	}
	if len(away.change.marks) == 0 {
		t.Fatal("no wave was seen")
	}
	if after := away.change.marks[0].At.Sub(away.change.asked); after < silence {
		t.Errorf("failover began %s after the pod hung, while its slot was claimed", after)
	}
}

// slotState is what `ballast status` says of a slot.
func (w *world) slotState(ctx context.Context, shard int) (string, error) {
	stdout, _, err := w.RunBallast(ctx, w.Plane.KubeconfigPath(), "status", "--output=json")
	if err != nil {
		return "", err
	}
	var status struct {
		Slots struct {
			Slots []struct {
				Shard     int
				State     string
				Unhealthy bool
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &status); err != nil {
		return "", fmt.Errorf("reading the status: %w", err)
	}
	for _, s := range status.Slots.Slots {
		if s.Shard == shard && s.Unhealthy {
			return s.State + " unhealthy", nil
		}
		if s.Shard == shard {
			return s.State + " healthy", nil
		}
	}
	return "", fmt.Errorf("the status says nothing of slot %d", shard)
}
