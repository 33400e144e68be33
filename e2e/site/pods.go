package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/fleet"
)

// Pods are ballast's pods of a component: planner or webhook.
func (s *Site) Pods(ctx context.Context, component string) ([]corev1.Pod, error) {
	list, err := s.Client.CoreV1().Pods(s.Fleet.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=ballast,app.kubernetes.io/component=" + component,
	})
	if err != nil {
		return nil, fmt.Errorf("listing the %s's pods: %w", component, err)
	}
	return list.Items, nil
}

// Metrics is what a pod of ballast's shows at /metrics.
func (s *Site) Metrics(ctx context.Context, pod corev1.Pod) (string, error) {
	const port = "8080"
	address, err := s.Plane.PodAddress(pod.Status.PodIP)
	if err != nil {
		return "", fmt.Errorf("reaching pod %q: %w", pod.Name, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+net.JoinHostPort(address, port)+"/metrics", nil)
	if err != nil {
		return "", fmt.Errorf("asking pod %q for its metrics: %w", pod.Name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking pod %q for its metrics: %w", pod.Name, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading the metrics of pod %q: %w", pod.Name, err)
	}
	return string(text), nil
}

// Leader is the planner's pod that leads by its own metrics, empty while none does. The Lease does not tell: a holder's
// identity begins with its host's name, which is the pod's only in a container.
func (s *Site) Leader(ctx context.Context) (string, error) {
	pods, err := s.Pods(ctx, "planner")
	if err != nil {
		return "", err
	}
	for _, pod := range pods {
		text, err := s.Metrics(ctx, pod)
		if err == nil && value(text, "ballast_planner_leader") == 1 {
			return pod.Name, nil
		}
	}
	return "", nil
}

// Crash kills the process of a planner's pod, and each one that its container restarts, until another pod leads.
// Without the latter a fast restart might win the race for the Lease.
func (s *Site) Crash(ctx context.Context, pod string) (leader string, err error) {
	err = Poll(ctx, func(ctx context.Context) error {
		if s.Plane.PodPID(s.Fleet.Namespace, pod) != 0 {
			if err := s.Plane.KillPod(ctx, s.Fleet.Namespace, pod); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("killing planner %q: %w", pod, err)
			}
		}
		leader, err = s.Leader(ctx)
		if err != nil {
			return err
		}
		if leader == "" || leader == pod {
			return fmt.Errorf("the leader is %q, want another planner than %q", leader, pod)
		}
		return nil
	})
	return leader, err
}

// LeaseHolder is who holds the planner's Lease, empty while nobody does.
func (s *Site) LeaseHolder(ctx context.Context) (string, error) {
	lease, err := s.Client.CoordinationV1().Leases(s.Fleet.Namespace).Get(ctx, Lease, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("getting lease %q: %w", Lease, err)
	}
	if lease.Spec.HolderIdentity == nil {
		return "", nil
	}
	return *lease.Spec.HolderIdentity, nil
}

// Known is the plan, if every webhook pod has it in force.
func (s *Site) Known(ctx context.Context) (*Plan, error) {
	p, err := s.Plan(ctx)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errors.New("there is no plan")
	}
	pods, err := s.Pods(ctx, "webhook")
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		text, err := s.Metrics(ctx, pod)
		if err != nil {
			return nil, err
		}
		if got := value(text, "ballast_webhook_plan_revision"); got != float64(p.Revision) {
			return nil, fmt.Errorf("webhook %q knows revision %v, and the plan's is %d", pod.Name, got, p.Revision)
		}
	}
	return p, nil
}

// Settled is nil if a cycle of the leader that began after that time would move nothing, and no rollout is under way.
func (s *Site) Settled(ctx context.Context, after time.Time) error {
	p, err := s.Plan(ctx)
	if err != nil {
		return err
	}
	if p == nil || p.Rollout != nil {
		return errors.New("there is no plan, or a rollout is under way")
	}
	pods, err := s.Pods(ctx, "planner")
	if err != nil {
		return err
	}
	for _, pod := range pods {
		text, err := s.Metrics(ctx, pod)
		if err != nil || value(text, "ballast_planner_leader") != 1 {
			continue
		}
		const longest = 5 * time.Second // of a cycle, on a busy machine: what ended later began after that time
		switch moves, ended := value(text, "ballast_planner_candidate_moves"), value(text, "ballast_planner_last_cycle_timestamp_seconds"); {
		case ended < float64(after.Add(longest).Unix()):
			return fmt.Errorf("planner %q has run no cycle since %s", pod.Name, after.Format(time.TimeOnly))
		case moves != 0:
			return fmt.Errorf("planner %q would still move %v clusters", pod.Name, moves)
		}
		return nil
	}
	return errors.New("no planner leads")
}

// value is that of a metric without labels in a text of metrics, -1 where it is not.
func value(text, metric string) float64 {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, metric+" "); ok {
			if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
				return f
			}
		}
	}
	return -1
}

// LastWords are the last lines of what each of ballast's pods printed: what a failure is understood by.
func (s *Site) LastWords(ctx context.Context, lines int) string {
	return s.lastWords(ctx, lines, "app.kubernetes.io/name=ballast,app.kubernetes.io/component in (planner, webhook)")
}

// LastControllerWords are the same of the application-controllers, with why one is not ready.
func (s *Site) LastControllerWords(ctx context.Context, lines int) string {
	return s.lastWords(ctx, lines, "app.kubernetes.io/name="+fleet.Workload)
}

func (s *Site) lastWords(ctx context.Context, lines int, selector string) string {
	list, err := s.Client.CoreV1().Pods(s.Fleet.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, pod := range list.Items {
		text, err := s.Plane.PodLog(pod.Name)
		if err != nil {
			text = err.Error()
		}
		all := strings.Split(strings.TrimSpace(text), "\n")
		fmt.Fprintf(&b, "%s:%s\n  %s\n", pod.Name, unready(pod), strings.Join(all[max(0, len(all)-lines):], "\n  "))
	}
	return b.String()
}

// unready is why a pod is not ready, empty for one that is.
func unready(pod corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, " not ready, at %q:", pod.Status.PodIP)
	for _, c := range pod.Status.Conditions {
		fmt.Fprintf(&b, " %s=%s %s", c.Type, c.Status, c.Message)
	}
	for _, c := range pod.Status.ContainerStatuses {
		fmt.Fprintf(&b, "; %s restarted %d times", c.Name, c.RestartCount)
		if w := c.State.Waiting; w != nil {
			fmt.Fprintf(&b, ", waits: %s %s", w.Reason, w.Message)
		}
	}
	return b.String()
}
