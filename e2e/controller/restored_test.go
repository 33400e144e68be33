package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/apiserver"
	"ballast/planner/rewatch"
)

// TestWhatAPlannerKnowsIsNotOlderThanARestoredEtcd: a planner that lives through the restore of a backup sees what the
// backup holds, without anybody writing it again. Its watch would be silent until etcd has counted past what it knew.
func TestWhatAPlannerKnowsIsNotOlderThanARestoredEtcd(t *testing.T) {
	server := apiserver.StartRestorable(t)
	live, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cluster"}, StringData: map[string]string{"shard": "1"}}
	if err := live.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	known, err := cache.New(server.Config, cache.Options{NewInformer: rewatch.NewInformer, DefaultNamespaces: map[string]cache.Config{"default": {}}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := known.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	becomes := func(want, when string) {
		t.Helper()
		var seen string
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			got := &corev1.Secret{}
			err := known.Get(ctx, client.ObjectKeyFromObject(secret), got)
			seen = string(got.Data["shard"])
			return seen == want, err
		})
		if err != nil {
			t.Fatalf("%s the cache says shard %q, want %q: %v", when, seen, want, err)
		}
	}
	becomes("1", "at first")
	server.Backup(t)
	// Versions go on for long, as those of an API server with many writers do.
	for n := range 300 {
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("other-", n)}}
		if err := live.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	move := []byte(`{"stringData": {"shard": "2"}}`)
	if err := live.Patch(t.Context(), secret.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", move)); err != nil {
		t.Fatal(err)
	}
	becomes("2", "once it was moved")
	server.Restore(t)
	becomes("1", "after the restore")
}
