package resize

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestWhatANodeSaysOfRequests(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	for name, test := range map[string]struct {
		asks, others corev1.ResourceList
		want         string
	}{
		"it has room":          {list("2", "4Gi"), list("2", "4Gi"), ""},
		"the others have some": {list("2", "4Gi"), list("2", "5Gi"), "Deferred: Node didn't have enough resource: memory, requested: 4294967296, capacity: 8589934592"},
		"it never has":         {list("2", "9Gi"), list("3", "4Gi"), "Infeasible: Node didn't have enough capacity: memory, requested: 9663676416, capacity: 8589934592"},
	} {
		got := ""
		if c := refusal(test.asks, test.others, list("4", "8Gi")); c != nil {
			got = c.Reason + ": " + c.Message
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
