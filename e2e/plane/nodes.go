package plane

import (
	"context"
	"fmt"

	"ballast/e2e/plane/process"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// zones is the number of zones that nodes are spread over, so that the topology
// spread of a manifest has something to spread over.
const zones = 3

// createNodes returns when every node is Ready and the controller manager has
// lifted the taint of a new node, so that the scheduler takes the first pod at
// its first try and not after its backoff.
func (p *Plane) createNodes(ctx context.Context, kwok *process.Child) error {
	for i := range p.nodes {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:     name,
			corev1.LabelOSStable:     "linux",
			corev1.LabelArchStable:   "amd64",
			corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%zones),
		}}}
		if _, err := p.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating node %q: %w", name, err)
		}
	}
	return kwok.Await(ctx, p.nodesReady)
}

func (p *Plane) nodesReady(ctx context.Context) error {
	nodes, err := p.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for _, n := range nodes.Items {
		if len(n.Spec.Taints) > 0 || !nodeReady(n) {
			return fmt.Errorf("checking node %q: it is not ready, or has taints %v", n.Name, n.Spec.Taints)
		}
	}
	return nil
}

func nodeReady(n corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
