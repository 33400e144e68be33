package secrets

import (
	"testing"

	"ballast/planner/discover"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFromSecretKeepsWhatIsPlannedWith(t *testing.T) {
	yes, now := true, metav1.Now()
	tests := map[string]struct {
		secret corev1.Secret
		want   discover.Secret
	}{
		"nothing at all": {want: discover.Secret{}},
		"a plain cluster": {
			secret: corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "s", Namespace: "argocd"},
				Data:       map[string][]byte{"name": []byte("prod"), "server": []byte("https://prod"), "shard": []byte("2"), "config": []byte("{}")},
			},
			want: discover.Secret{UID: "u", Name: "s", Namespace: "argocd", Cluster: "prod", Server: "https://prod", Shard: valid(2), HasData: true},
		},
		"all that people and Argo CD may say": {
			secret: corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "s", DeletionTimestamp: &now, Annotations: map[string]string{
					"ballast.argoproj.io/pin": "3", "ballast.argoproj.io/unmanaged": "true", "argocd.argoproj.io/skip-reconcile": "true"}},
				Immutable: &yes,
			},
			want: discover.Secret{Name: "s", Pin: "3", Unmanaged: true, SkipReconcile: true, Immutable: true, Deleting: true},
		},
		"a pin that the webhook passes over is not kept": {
			secret: corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"ballast.argoproj.io/pin": "03"}}},
			want:   discover.Secret{Name: "s", Pin: "invalid"},
		},
		"a token pasted as pin is not kept": {
			secret: corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"ballast.argoproj.io/pin": "eyJhbGciOi"}}},
			want:   discover.Secret{Name: "s", Pin: "invalid"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, FromSecret(&test.secret)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func valid(n int) discover.ShardValue { return discover.ShardValue{State: discover.ShardValid, N: n} }
