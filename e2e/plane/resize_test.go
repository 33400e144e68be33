package plane

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const twoPods = `
apiVersion: v1
kind: Pod
metadata: {name: large, namespace: PAIR}
spec: {nodeName: node-2, containers: [{name: main, image: none, resources: {requests: {cpu: "40"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: small, namespace: PAIR}
spec: {nodeName: node-2, containers: [{name: main, image: none, resources: {requests: {cpu: "1", memory: 1Gi}}}, {name: beside, image: none}]}
`

// A node gives a pod what it asks for without a restart, puts it off while another pod has the room, and never gives what it has not.
func TestANodeAcceptsDefersAndRefusesSizes(t *testing.T) {
	pods := namespace(t, "sizes")
	apply(t, strings.ReplaceAll(twoPods, "PAIR", pods))
	kubectl(t, "wait", "-n", pods, "pod/large", "pod/small", "--for=condition=Ready", "--timeout=2m")
	resize := func(cpu string) {
		t.Helper()
		kubectl(t, "patch", "-n", pods, "pod/small", "--subresource=resize", "-p", `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"`+cpu+`"}}}]}}`)
	}
	shows := func(want string) {
		t.Helper()
		const path = `-o=jsonpath={.status.containerStatuses[0].resources.requests.cpu} {.status.containerStatuses[0].allocatedResources.cpu}` +
			` {.status.containerStatuses[0].restartCount} {.status.conditions[?(@.type=="PodResizePending")].reason}{.status.conditions[?(@.type=="PodResizeInProgress")].status}`
		eventually(t, 2*time.Minute, want, func() error {
			if got := kubectl(t, "get", "-n", pods, "pod/small", path); got != strings.TrimSpace(want) {
				return fmt.Errorf("it shows %q", got)
			}
			return nil
		})
	}
	shows("1 1 0 ")
	resize("3")
	shows("3 3 0 ")
	kubectl(t, "annotate", "node/node-2", "plane.ballast/resizes=refused")
	resize("4")
	shows("3 3 0 Infeasible")
	kubectl(t, "annotate", "node/node-2", "plane.ballast/resizes-")
	shows("4 4 0 ")
	resize("30")
	shows("4 4 0 Deferred")
	kubectl(t, "delete", "-n", pods, "pod/large", "--wait=false")
	shows("30 30 0 ")
	resize("1")
	shows("1 1 0 ")
}
