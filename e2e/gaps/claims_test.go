package gaps

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestSlots reads what Argo CD v3.2.11 has written, and what it must not.
func TestSlots(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want map[string]int
		err  string
	}{
		"claimed, and free": {
			text: `[{"ShardNumber":0,"ControllerName":"a-1","HeartbeatTime":"2026-11-20T14:24:48Z"},{"ShardNumber":1,"ControllerName":"","HeartbeatTime":null}]`,
			want: map[string]int{"a-1": 0},
		},
		"a pod that stands twice has its first slot": {
			text: `[{"ShardNumber":2,"ControllerName":"a"},{"ShardNumber":0,"ControllerName":"a"},{"ShardNumber":1,"ControllerName":"b"}]`,
			want: map[string]int{"a": 2, "b": 1},
		},
		"nothing": {err: "reading the claims: unexpected end of JSON input"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := slots(&corev1.ConfigMap{Data: map[string]string{"shardControllerMapping": tc.text}})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || text != tc.err {
				t.Errorf("error %q, want %q; slots (-want +got):\n%s", text, tc.err, diff)
			}
		})
	}
}

func TestNumberOf(t *testing.T) {
	for pod, want := range map[string]int{Pod(0): 0, Pod(12): 12, "argocd-application-controller-6d5f8c9b7d-x7k2p": Nobody, "argocd-application-controller-6d5f8c9b7d-24567": Nobody} {
		if got := numberOf(pod); got != want {
			t.Errorf("pod %q: got %d, want %d", pod, got, want)
		}
	}
}
