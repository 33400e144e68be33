package crash_test

import (
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/apiserver"
	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// anyServer is a real API server. Every test that asks it works in namespaces of its own.
var anyServer apiserver.Shared

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // each run makes much, and keeps little
	code := m.Run()
	if err := anyServer.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// What these tests expect of the planner, by value.
const (
	heldOffFor  = 30 * time.Minute // after a rollout that failed
	crashGain   = 0.01             // of the makespan, which is worth a move
	quiet       = time.Second      // after a change, until a cycle
	mostWait    = 5 * time.Second  // that changes put it off
	lookSoon    = time.Second      // until the first repair
	keySecret   = "ballast-plan-key"
	loadMetric  = "apps"  // the only one of loads
	ownerMetric = "owner" // which asks who owns what

	leaderElected, panicked = "LeaderElected", "Panicked" // reasons of events
)

// Names of the simulation that every test here uses.
var (
	epoch  = sim.Epoch
	server = sim.Server
)

func crashModeOf(r config.Rollout) string {
	switch {
	case r.Live != nil:
		return plan.ModeLive
	case r.X0Y != nil:
		return plan.ModeX0Y
	}
	return plan.ModeDefault
}

func namesIn[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// newKeySecret is the Secret as it is shipped: a planner fills it.
func newKeySecret(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keySecret}}
}
