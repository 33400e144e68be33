package apply_test

import "ballast/planner/observed/fixture"

// restartedAt is what `kubectl rollout restart` writes into a pod template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

var (
	start = fixture.Start
	ptr   = fixture.Ptr
)
