package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

const canary = "eyJhbGciOiJSUzI1NiJ9.canary"

func clusterSecret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "argocd", UID: types.UID("uid-" + name), Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster"}},
		Data:       map[string][]byte{"name": []byte(name), "server": []byte("https://" + name)},
	}
}

func TestNoCredentialStaysInMemory(t *testing.T) {
	s := clusterSecret("prod")
	now := metav1.Now()
	s.DeletionTimestamp = &now
	s.Data["config"] = []byte(`{"bearerToken":"` + canary + `"}`)
	s.Data["shard"] = []byte(canary)
	s.Data["ca"] = []byte(canary)
	s.StringData = map[string]string{"config": canary}
	s.Annotations = map[string]string{
		corev1.LastAppliedConfigAnnotation: canary, "who": canary,
		plan.AnnotationPin: canary, plan.AnnotationUnmanaged: canary, discover.AnnotationSkipReconcile: canary,
	}
	s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: canary, FieldsV1: metav1.NewFieldsV1(canary)}}
	s.OwnerReferences = []metav1.OwnerReference{{Name: canary}}
	s.Finalizers = []string{canary}
	transformed, err := transformed(s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(transformed)
	if err != nil {
		t.Fatal(err)
	}
	bytes := fmt.Sprintf("%d", []byte(canary))
	for how, dump := range map[string]string{
		"JSON": string(text), "Go syntax": fmt.Sprintf("%#v", transformed), "String": fmt.Sprintf("%v %+v", transformed, transformed.(*corev1.Secret).Data),
		"what is planned with": fmt.Sprintf("%#v", FromSecret(transformed.(*corev1.Secret))),
	} {
		if strings.Contains(dump, "canary") || strings.Contains(dump, strings.Trim(bytes, "[]")) || strings.Contains(dump, "0x63, 0x61, 0x6e, 0x61, 0x72, 0x79") {
			t.Errorf("the canary is in its %s: %s", how, dump)
		}
	}
	want := discover.Secret{UID: "uid-prod", Name: "prod", Namespace: "argocd", Cluster: "prod", Server: "https://prod",
		Shard: discover.ShardValue{State: discover.ShardInvalid}, Pin: "invalid", HasData: true, Deleting: true}
	if diff := cmp.Diff(want, FromSecret(transformed.(*corev1.Secret))); diff != "" {
		t.Errorf("what is planned with (-want +got):\n%s", diff)
	}
}

func TestTheTransformChangesNothingThatIsPlannedWith(t *testing.T) {
	texts := rapid.SampledFrom([]string{"", "true", "false", "1", "7", "-1", " 1", "4294967296", "abc", "T"})
	rapid.Check(t, func(t *rapid.T) {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u"}}
		for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"name", "server", "shard", "config"}), rapid.ID).Draw(t, "data") {
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data[key] = []byte(texts.Draw(t, key))
		}
		for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{plan.AnnotationPin, plan.AnnotationUnmanaged, discover.AnnotationSkipReconcile}), rapid.ID).Draw(t, "annotations") {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, texts.Draw(t, key))
		}
		once, _ := transformed(s.DeepCopy())
		twice, _ := transformed(once)
		want, got := FromSecret(s), FromSecret(once.(*corev1.Secret))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("a second transform changes it:\n%s", diff)
		}
	})
}

func TestTheTransformPassesOtherObjects(t *testing.T) {
	cm := &corev1.ConfigMap{Data: map[string]string{"a": "b"}}
	if got, err := transformed(cm); err != nil || got != any(cm) {
		t.Errorf("%v, %v", got, err)
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "argocd"}, Data: data}
}

func TestReadInput(t *testing.T) {
	other, elsewhere := clusterSecret("repo"), clusterSecret("elsewhere")
	other.Labels["argocd.argoproj.io/secret-type"] = "repository"
	elsewhere.Namespace = "argocd-2"
	both := []client.Object{clusterSecret("b"), clusterSecret("a"), other, elsewhere}
	want := []discover.Secret{read("a"), read("b")}
	tests := map[string]struct {
		objects []client.Object
		want    discover.Input
	}{
		"without settings the in-cluster is enabled": {
			objects: both, want: discover.Input{Namespace: "argocd", Secrets: want, InClusterEnabled: true},
		},
		"settings": {
			objects: append(both, configMap("argocd-cm", map[string]string{"cluster.inClusterEnabled": "false"}),
				configMap("argocd-cmd-params-cm", map[string]string{"controller.sharding.algorithm": "round-robin"})),
			want: discover.Input{Namespace: "argocd", Secrets: want, Algorithm: "round-robin"},
		},
		"settings without the keys": {
			objects: append(both, configMap("argocd-cm", nil), configMap("argocd-cmd-params-cm", nil)),
			want:    discover.Input{Namespace: "argocd", Secrets: want, InClusterEnabled: true},
		},
	}
	selector, err := discover.Selector(metav1.LabelSelector{MatchLabels: map[string]string{"argocd.argoproj.io/secret-type": "cluster"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ReadInput(t.Context(), fake.NewClientBuilder().WithObjects(test.objects...).Build(), "argocd", selector, discover.Known{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The peer, given matchExpressions only, takes every Secret of the namespace for a cluster.
func TestASelectorOfExpressionsSelectsByThem(t *testing.T) {
	other := clusterSecret("repo")
	other.Labels["argocd.argoproj.io/secret-type"] = "repository"
	selector, err := discover.Selector(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "argocd.argoproj.io/secret-type", Operator: metav1.LabelSelectorOpIn, Values: []string{"cluster"}}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadInput(t.Context(), fake.NewClientBuilder().WithObjects(clusterSecret("a"), other).Build(), "argocd", selector, discover.Known{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]discover.Secret{read("a")}, got.Secrets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFailedReadIsAnErrorAndNoEmptyFleet(t *testing.T) {
	down := errors.New("down")
	tests := map[string]struct {
		funcs interceptor.Funcs
		want  string
	}{
		"Secrets": {
			interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return down }},
			`listing cluster secrets in "argocd": down`,
		},
		"settings": {
			interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return down
			}},
			`reading ConfigMap "argocd-cm" in "argocd": down`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ReadInput(t.Context(), fake.NewClientBuilder().WithInterceptorFuncs(test.funcs).Build(), "argocd", labels.Everything(), discover.Known{})
			if err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// transformed is an object as a cache of the Secrets with Argo CD's label keeps it.
func transformed(obj any) (any, error) {
	return Transform(labels.SelectorFromSet(labels.Set{plan.SecretTypeLabel: plan.SecretTypeCluster}))(obj)
}

// read is such a Secret as it is planned with.
func read(name string) discover.Secret {
	return discover.Secret{UID: "uid-" + name, Name: name, Namespace: "argocd", Cluster: name, Server: "https://" + name, HasData: true}
}
