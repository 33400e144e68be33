package controller_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/controller"
	"ballast/planner/plan"
)

// externalSecrets is a writer like External Secrets: it makes Secrets from a store that knows no shard, watches them, and
// where the hash over all data is not its own, it PUTs the whole data again. No webhook answers it.
type externalSecrets struct {
	names  []string
	stop   context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	undone map[string]int // how often a Secret was written back, by its name
	err    error
}

// manager is the field manager that External Secrets writes a Secret as.
func manager(name string) string { return "externalsecrets.external-secrets.io/" + name }

func stored(name string) map[string][]byte {
	return map[string][]byte{"name": []byte(name), "server": []byte(server(name)), "config": []byte("{}")}
}

// runExternalSecrets makes the Secrets, and reverts what the loop writes until it is stopped. The loop is told what a
// watch of Secrets would tell it.
func (b *bed) runExternalSecrets(names ...string) (*externalSecrets, func(l *controller.Loop)) {
	b.Helper()
	for i, name := range names {
		b.prometheus.set(server(name), float64(i+1))
		b.must(b.client.Create(b.ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
			Data:       stored(name),
		}, client.FieldOwner(manager(name))))
	}
	ctx, cancel := context.WithCancel(b.ctx)
	e := &externalSecrets{names: names, stop: cancel, done: make(chan struct{}), undone: map[string]int{}}
	changes, err := b.client.Watch(ctx, &corev1.SecretList{}, client.InNamespace(b.namespace), client.HasLabels{plan.SecretTypeLabel})
	b.must(err)
	tells := make(chan *controller.Loop, 1)
	go func() {
		defer close(e.done)
		defer changes.Stop()
		l := <-tells
		for event := range changes.ResultChan() {
			if s, ok := event.Object.(*corev1.Secret); ok && ctx.Err() == nil {
				l.Changed()
				e.note(s.Name, e.refresh(ctx, b.client, s))
			}
		}
	}()
	b.Cleanup(e.end)
	return e, func(l *controller.Loop) { tells <- l }
}

// errRight is what needs no write.
var errRight = errors.New("the data is the store's")

func (e *externalSecrets) refresh(ctx context.Context, c client.Client, s *corev1.Secret) error {
	if !slices.Contains(e.names, s.Name) || bytes.Equal(hash(s.Data), hash(stored(s.Name))) {
		return errRight
	}
	s.Data = stored(s.Name)
	return c.Update(ctx, s, client.FieldOwner(manager(s.Name)))
}

func hash(data map[string][]byte) []byte {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(h, "%q=%q\n", key, data[key])
	}
	return h.Sum(nil)
}

func (e *externalSecrets) note(name string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.undone[name]++
	case !errors.Is(err, errRight) && !apierrors.IsConflict(err) && !errors.Is(err, context.Canceled):
		e.err = errors.Join(e.err, err)
	}
}

// reverts are counted by Secret.
func (e *externalSecrets) reverts(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.undone[name]
}

func (e *externalSecrets) end() {
	e.stop()
	<-e.done
}

// resting waits until the loop waits for its clock and the other writer has answered each of its writes.
func (b *bed) resting(l *controller.Loop, e *externalSecrets) {
	b.Helper()
	streak := 0
	b.eventually("loop and second writer rest", func() bool {
		n := b.clock.Waiters()
		rests := (n == 2 || n == 3) && !stirs(l) // with or without a cycle that waits for quiet
		for _, name := range e.names {
			rests = rests && b.tried("patch "+name) == e.reverts(name)
		}
		if streak++; !rests {
			streak = 0
		}
		return streak >= 5
	})
}

// outlastsAWriterThatPutsTheShardAway: ten minutes against a writer that reverts at once and never tires.
func outlastsAWriterThatPutsTheShardAway(t *testing.T, server *rest.Config) {
	const most = 6 // healing writes of a Secret in ten minutes
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	others := []string{"c000", "c001", "c002"}
	e, tell := b.runExternalSecrets("eso-0", "eso-1", "eso-2")
	l, _ := b.launch()
	tell(l)
	b.resting(l, e)
	b.eventually("the others are stamped", func() bool {
		shards, planned := b.shards(), b.planned()
		return !slices.ContainsFunc(others, func(name string) bool { return shards[name] != planned[name] })
	})
	quietOnes := b.versions()
	for range 10 * 60 {
		b.clock.Step(time.Second)
		b.resting(l, e)
	}
	versions := b.versions()
	for _, name := range append(others, "workload") {
		if versions[name] != quietOnes[name] {
			t.Errorf("%s was written for the quarrel over others: version %s to %s", name, quietOnes[name], versions[name])
		}
	}
	for _, name := range e.names {
		writes := b.tried("patch " + name)
		t.Logf("%s: %d healing writes in 10 minutes, %d times written back", name, writes, e.reverts(name))
		if writes < 4 || writes > most {
			t.Errorf("%s was written %d times in ten minutes, want 4 to %d: enough to be sure of the second writer, and no more", name, writes, most)
		}
		want := fmt.Sprintf(`%s writes data.shard of Secret %q back again and again (3 times): stop it, pin the cluster, or annotate the object with ballast.argoproj.io/unmanaged: "true"`, manager(name), name)
		if !slices.Contains(b.told("Contested"), want) {
			t.Errorf("Contested events %q, want among them %q", b.told("Contested"), want)
		}
	}
	if p := b.plan(); p.Revision != 1 {
		t.Errorf("the quarrel wrote revision %d of the plan", p.Revision)
	}
	e.end()
	b.must(e.err)
	b.recovers(l, e)
}

// recovers: the other writer is gone, and what it left is right after one more backoff, and stays so.
func (b *bed) recovers(l *controller.Loop, e *externalSecrets) {
	b.Helper()
	began := b.clock.Now()
	for !cmp.Equal(b.planned(), b.shards()) {
		if b.clock.Since(began) > 10*time.Minute {
			b.Fatalf("ten minutes after the last revert the shards are still wrong:\n%s", cmp.Diff(b.planned(), b.shards()))
		}
		b.clock.Step(time.Second)
		b.waiting(l, 2)
	}
	b.Logf("right again %s after the writer stopped", b.clock.Since(began))
	count := func() (n []string) {
		for _, name := range e.names {
			n = append(n, fmt.Sprint(name, " ", b.tried("patch "+name)))
		}
		return n
	}
	tried := count()
	for range 20 {
		b.clock.Step(time.Minute)
		b.waiting(l, 2)
	}
	if diff := cmp.Diff(strings.Join(tried, ", "), strings.Join(count(), ", ")); diff != "" {
		b.Errorf("what is right was written again:\n%s", diff)
	}
}

func TestExternalSecretsIsOutlasted(t *testing.T) {
	outlastsAWriterThatPutsTheShardAway(t, anyServer.Start(t))
}
