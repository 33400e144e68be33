package gaps

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/fleet"
	"ballast/e2e/plane"
)

const (
	metricsPort    = "8082"
	scrapeInterval = 2 * time.Second
)

// Monitor starts a Prometheus that scrapes the application-controllers, with the labels that upstream's Service and a
// ServiceMonitor give. It has no past: of the default metrics only argocd_app_info answers before some minutes have
// gone.
func (s *Site) Monitor(ctx context.Context) error {
	file := filepath.Join(s.Plane.Dir(), "controllers.json")
	before, err := s.writeTargets(ctx, file, nil)
	if err != nil {
		return err
	}
	config, err := fleet.PrometheusConfig(file, scrapeInterval)
	if err != nil {
		return err
	}
	if s.Prometheus, err = s.Plane.StartPrometheus(ctx, plane.PrometheusOptions{Config: config}); err != nil {
		return fmt.Errorf("starting Prometheus: %w", err)
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.unfollow = stop
	go s.followTargets(following, file, before)
	return nil
}

// followTargets tells Prometheus of pods that come and go.
func (s *Site) followTargets(ctx context.Context, file string, before []fleet.Target) {
	tick := time.NewTicker(scrapeInterval / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			after, err := s.writeTargets(ctx, file, before)
			if err != nil && ctx.Err() == nil {
				fmt.Fprintln(s.log, err)
			}
			before = after
		}
	}
}

func (s *Site) writeTargets(ctx context.Context, file string, before []fleet.Target) ([]fleet.Target, error) {
	pods, err := s.Client.CoreV1().Pods(s.Fleet.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: programLabel + "=" + fleet.Workload})
	if err != nil {
		return before, fmt.Errorf("listing the application-controllers: %w", err)
	}
	targets := []fleet.Target{}
	for _, pod := range pods.Items {
		if pod.Status.PodIP == "" {
			continue
		}
		host, err := s.Plane.PodAddress(pod.Status.PodIP)
		if err != nil {
			return before, fmt.Errorf("reaching pod %q: %w", pod.Name, err)
		}
		address := net.JoinHostPort(host, metricsPort)
		targets = append(targets, fleet.Target{Targets: []string{address}, Labels: map[string]string{
			"job": "argocd-metrics", "service": "argocd-metrics", "namespace": pod.Namespace, "pod": pod.Name,
			"container": pod.Spec.Containers[0].Name, "endpoint": "metrics", "instance": address,
		}})
	}
	if reflect.DeepEqual(before, targets) {
		return before, nil
	}
	return targets, fleet.WriteTargets(file, targets)
}
