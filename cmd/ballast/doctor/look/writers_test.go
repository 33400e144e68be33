package look

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/planner/config"
)

// TestWhoWritesIsAskedOfTheSelectedSecretsAlone.
func TestWhoWritesIsAskedOfTheSelectedSecretsAlone(t *testing.T) {
	secret := func(name, team string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name, Labels: map[string]string{"team": team},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "terraform", APIVersion: "v1", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:config":{},"f:server":{},"f:shard":{}}}`)}}}}
	}
	c := fake.NewClientBuilder().WithReturnManagedFields().WithObjects(secret("dev", "theirs"), secret("lab", "ours")).Build()
	s := &Seen{Namespace: "argocd"}
	s.In.Config = config.Default()
	s.In.Config.Discover.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"team": "ours"}}
	s.lookAtWriters(t.Context(), c)
	if diff := cmp.Diff(map[string][]string{"terraform": {"lab"}}, s.Writers); diff != "" {
		t.Errorf("who writes (-want +got):\n%s", diff)
	}
}
