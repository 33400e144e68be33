package matrix

import (
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// TestEveryWritePath goes through the whole matrix on one API server.
func TestEveryWritePath(t *testing.T) {
	log.SetLogger(logr.Discard()) // the certificate watcher speaks through controller-runtime
	s := startSite(t)
	t.Run("clusters", s.clusters)
	t.Run("many clusters at once", s.manyClusters)
	t.Run("workloads", s.workloads)
	t.Run("changes of the pod template", s.templateChanges)
	t.Run("sizes of the pod template", s.templates)
	t.Run("pods", s.pods)
	t.Run("pods under people's switches", s.switchedPods)
	t.Run("plan", s.plans)
	t.Run("the planner's writes", s.plannersWrites)
	t.Run("a stale plan", s.stalePlan)
	t.Run("faults", s.faulted)
	t.Run("clusters made anew", s.recreated)
	t.Run("convergence", s.convergence)
	t.Run("a writer that rewrites", s.rewriter)
	t.Run("pins in force", s.pinsInForce)
	t.Run("a plan at every replica", s.planEverywhere)
	t.Run("kubectl", s.kubectl)
	t.Run("rolling restarts", s.rollingRestarts)
	t.Run("the webhook away", s.away) // the last: nobody brings it back
}
