package podlist_test

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/planner/config"
	"ballast/planner/cycle/resize"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/observed"
	"ballast/planner/ownership/podlist"
	"ballast/planner/plan"
	"ballast/planner/size"
)

const workload = "argocd-application-controller"

var now = time.Date(2026, 3, 1, 13, 30, 0, 0, time.UTC)

// vector is one of HVPA's; see package peer.
type vector struct {
	ID, Fn  string
	In, Out json.RawMessage
}

// TestTheKillsOfHVPA runs HVPA's vectors of OOM kills through what is built: the pod's status is read (List), and a kill is taken for
// one where a growth that waits is let through for it (resize.Decide).
func TestTheKillsOfHVPA(t *testing.T) {
	runs := map[string]func(*testing.T, json.RawMessage) (got bool){"isOomKillEvent": event, "getPodEventHandler": override}
	ran, told := 0, 0
	for _, v := range vectors(t) {
		if ofKill(v) {
			told++
		}
		run, ours := runs[v.Fn]
		if !ours {
			continue
		}
		ran++
		t.Run(v.ID, func(t *testing.T) {
			var out struct{ OOM, SetsOverride bool }
			read(t, v.Out, &out)
			if got, want := run(t, v.In), out.OOM || out.SetsOverride; got != want {
				t.Errorf("answered: %t, want %t", got, want)
			}
		})
	}
	if ran == 0 || ran != told {
		t.Errorf("%d vectors are run, and %d answer whether there was a kill", ran, told)
	}
}

// ofKill reports whether a vector's answer is of an OOM kill.
func ofKill(v vector) bool {
	var out map[string]json.RawMessage
	if err := json.Unmarshal(v.Out, &out); err != nil { // a list: of something else
		return false
	}
	return out["oom"] != nil || out["setsOverride"] != nil
}

func vectors(t *testing.T) []vector {
	t.Helper()
	f, err := os.Open("../../size/peer/testdata/hvpa.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Vectors []vector }
	if err := json.NewDecoder(unpacked).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all.Vectors
}

func read(t *testing.T, data json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("reading %s: %v", data, err)
	}
}

// end is how a pod's container ended last; the zero value: it did not.
type end struct {
	reason   string
	at       time.Time
	restarts int
	unplaced bool    // the pod has no node
	share    float64 // of the memory limit that the plan holds, which the pod has; 0: all of it
}

// replica is one that requests 1Gi for each of its applications, with a limit of twice that. Each look at its pod is a cycle. It has
// one application, and waits three hours to grow.
type replica struct {
	question.Question
	apps float64
}

func newReplica() *replica {
	r := &replica{apps: 1, Question: question.Question{Replicas: 1,
		Size: config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
			{List: config.Requests, Resource: size.Memory, Slope: "1Gi", Input: "apps"}}}}},
		Plan: plan.Plan{Revision: 1, Mode: plan.Enforce, Replicas: 1, ControllerReplicas: 16, MaxReplicas: 16,
			Target: plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: workload, Container: "application-controller"}},
		Template: &plan.Resources{Requests: map[string]string{size.Memory: "1Gi"}, Limits: map[string]string{size.Memory: "2Gi"}},
	}}
	r.Change.Up.StabilizationWindow = config.Duration(3 * time.Hour)
	return r
}

// counts is a cycle with an application more: whether that waits no more, since the container was killed.
func (r *replica) counts(t *testing.T, at time.Time, last end) bool {
	t.Helper()
	r.apps++
	return r.look(t, at, last)
}

// scales is a cycle with an application more for which the replica grows without waiting.
func (r *replica) scales(t *testing.T, at time.Time, last end) {
	t.Helper()
	waits := r.Change.Up.StabilizationWindow
	r.Change.Up.StabilizationWindow = 0
	if !r.counts(t, at, last) {
		t.Fatal("it is not scaled")
	}
	r.Change.Up.StabilizationWindow = waits
}

// look is a cycle: whether the replica's memory limit grows in it.
func (r *replica) look(t *testing.T, at time.Time, last end) bool {
	t.Helper()
	was := r.limit(t)
	r.Now, r.Readings = at, map[string]size.Reading{"apps": {Replica: map[int]float64{0: r.apps}}}
	r.Pods = seen(t, r.Plan.Target, was, last, at)
	answer := resize.Decide(r.Question)
	r.Plan.Sizes, r.Memory = answer.Sizes, answer.Memory
	return r.limit(t) > was
}

// limit is what the plan holds, and before it holds anything the template's.
func (r *replica) limit(t *testing.T) int64 {
	t.Helper()
	held, is := r.Plan.SizeOf(0)
	if !is {
		held = *r.Template
	}
	q, err := plan.ReadQuantity(held.Limits[size.Memory])
	if err != nil {
		t.Fatal(err)
	}
	return q.Value()
}

// seen is the replica's pod, as the planner reads it.
func seen(t *testing.T, target plan.Target, limit int64, last end, at time.Time) []observed.Pod {
	t.Helper()
	if last.share > 0 {
		limit = int64(float64(limit) * last.share)
	}
	yes, began := true, metav1.NewTime(at.Add(-24*time.Hour))
	status := corev1.ContainerStatus{Name: target.Container, RestartCount: int32(last.restarts)}
	status.State.Running = &corev1.ContainerStateRunning{StartedAt: began}
	if last.reason != "" {
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: last.reason, FinishedAt: metav1.NewTime(last.at)}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: target.Name + "-0", Namespace: target.Namespace,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: plan.StatefulSet, Name: target.Name, Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: target.Container, Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(limit, resource.BinarySI)}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{status}},
	}
	if last.unplaced {
		pod.Spec.NodeName = ""
	}
	found, err := podlist.List(t.Context(), fake.NewClientBuilder().WithObjects(pod).Build(), target, "", at)
	if err != nil || len(found.Pods) != 1 {
		t.Fatalf("read are %+v, %v", found.Pods, err)
	}
	return []observed.Pod{found.Pods[0].Pod}
}

// containerStatus is one container's in a vector.
type containerStatus struct {
	LastTermination, Name string
	Restarts              int
}

// event is what a pod's status was and is: whether that is a kill. Of several containers each is the one that is sized.
func event(t *testing.T, data json.RawMessage) (killed bool) {
	var in struct{ Old, New []containerStatus }
	read(t, data, &in)
	for _, is := range in.New {
		var was *containerStatus
		if i := slices.IndexFunc(in.Old, func(old containerStatus) bool { return old.Name == is.Name }); i >= 0 {
			was = &in.Old[i]
		}
		killed = killedSince(t, was, is) || killed
	}
	return killed
}

// killedSince reports whether a container was killed between two of its states; was nil: it had none.
func killedSince(t *testing.T, was *containerStatus, is containerStatus) bool {
	t.Helper()
	r, last := newReplica(), end{reason: is.LastTermination, at: now.Add(-time.Minute), restarts: is.Restarts}
	r.look(t, now.Add(-10*time.Minute), end{})
	if was != nil {
		before := end{reason: was.LastTermination, at: now.Add(-6 * time.Minute), restarts: was.Restarts}
		if r.look(t, now.Add(-5*time.Minute), before); last.restarts == before.restarts {
			last.at = before.at
		}
	}
	return r.counts(t, now, last)
}

// override is a kill beside a change of the size: whether the size is to grow for it at once.
func override(t *testing.T, data json.RawMessage) bool {
	var in struct {
		LastScalingAgo, OomAgo, Terminated string
		Restarts                           int
		AlreadySet                         bool
		NodeName                           *string
		Pod                                string `json:"pod.memory"`
		Template                           string `json:"template.memory"`
	}
	read(t, data, &in)
	ago := func(text, or string) time.Time {
		if text == "" {
			text = or
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return now.Add(-d)
	}
	r := newReplica()
	killed := end{reason: in.Terminated, at: ago(in.OomAgo, "1m"), restarts: in.Restarts, unplaced: in.NodeName != nil && *in.NodeName == ""}
	if in.Pod != "" && in.Template != "" {
		pod, template := resource.MustParse(in.Pod), resource.MustParse(in.Template)
		killed.share = pod.AsApproximateFloat64() / template.AsApproximateFloat64()
	}
	r.look(t, now.Add(-2*time.Hour), end{})
	if in.LastScalingAgo != "" {
		at, before := ago(in.LastScalingAgo, ""), end{}
		if killed.at.Before(at) {
			before = killed
		}
		r.scales(t, at, before)
	}
	if in.AlreadySet && !r.counts(t, now.Add(-30*time.Second), killed) {
		t.Fatal("it is not set already")
	}
	return r.counts(t, now, killed)
}
