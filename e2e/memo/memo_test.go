package memo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/e2e/memo"
)

// asked is a client that notes what the API server is asked for.
func asked(c client.WithWatch) (client.WithWatch, *[]string) {
	var calls []string
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			calls = append(calls, "get "+key.Name)
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			calls = append(calls, fmt.Sprintf("list %T", list))
			return c.List(ctx, list, opts...)
		},
	}), &calls
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name}}
}

func TestWhatNobodyWroteIsReadOnce(t *testing.T) {
	server, calls := asked(fake.NewClientBuilder().WithObjects(configMap("a"), configMap("b")).Build())
	c := memo.New().Over(server)
	ctx, in := t.Context(), client.InNamespace("argocd")
	reads := func() {
		t.Helper()
		for _, name := range []string{"a", "b"} {
			if err := c.Get(ctx, client.ObjectKey{Namespace: "argocd", Name: name}, &corev1.ConfigMap{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}} {
			if err := c.List(ctx, list, in); err != nil {
				t.Fatal(err)
			}
		}
	}
	reads()
	reads()
	changed := configMap("a")
	changed.Data = map[string]string{"is": "written"}
	if err := c.Update(ctx, changed); err != nil {
		t.Fatal(err)
	}
	reads()
	want := []string{"get a", "get b", "list *v1.ConfigMapList", "list *v1.SecretList", "get a", "list *v1.ConfigMapList"}
	if diff := cmp.Diff(want, *calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "argocd", Name: "gone"}, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("what is not there is read: %v", err)
	}
}

// TestAReadShowsWhatStands, whatever was written and read before, and whatever somebody does with what he read.
func TestAReadShowsWhatStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := fake.NewClientBuilder().Build()
		c, ctx := memo.New().Over(server), context.Background()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			cm := configMap(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"))
			cm.Data = map[string]string{"n": rapid.StringN(0, 2, 4).Draw(t, "data")}
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				_ = c.Create(ctx, cm)
			case 1:
				_ = c.Update(ctx, cm)
			case 2:
				_ = c.Delete(ctx, cm)
			case 3:
				_ = c.Patch(ctx, cm, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"n":"patched"}}`)))
			case 4: // by who writes metadata alone
				o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: cm.ObjectMeta}
				_ = c.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"n":"patched so"}}`)))
			}
			var got, want corev1.ConfigMapList
			if c.List(ctx, &got) != nil || server.List(ctx, &want) != nil {
				t.Fatal("it cannot be listed")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("a list (-stands +shown):\n%s", diff)
			}
			for i, stands := range want.Items {
				got.Items[i].Data = map[string]string{"n": "scribbled"}
				var shown corev1.ConfigMap
				if err := c.Get(ctx, client.ObjectKeyFromObject(&stands), &shown); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(stands, shown); diff != "" {
					t.Fatalf("(-stands +shown):\n%s", diff)
				}
				shown.Data["n"] = "scribbled"
			}
		}
	})
}

// TestWhatIsReadWhileSomebodyWritesIsNotKept: it may be of before or after.
func TestWhatIsReadWhileSomebodyWritesIsNotKept(t *testing.T) {
	key, ctx := client.ObjectKey{Namespace: "argocd", Name: "a"}, t.Context()
	var c client.WithWatch
	server := interceptor.NewClient(fake.NewClientBuilder().WithObjects(configMap("a")).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, inner client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := c.Get(ctx, key, &corev1.ConfigMap{}); err != nil {
				return err
			}
			return inner.Patch(ctx, o, p, opts...)
		},
	})
	c = memo.New().Over(server)
	if err := c.Patch(ctx, configMap("a"), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"n":"patched"}}`))); err != nil {
		t.Fatal(err)
	}
	var cm corev1.ConfigMap
	if err := c.Get(ctx, key, &cm); err != nil || cm.Data["n"] != "patched" {
		t.Errorf("after the write it shows %v, %v", cm.Data, err)
	}
}
