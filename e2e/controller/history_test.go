package controller_test

import (
	"errors"

	"ballast/planner/cycle/memory"
	"ballast/planner/store"
)

// history is the history ConfigMap as the next leader would find it.
func (b *bed) history() (*store.Store, store.History, memory.Memory) {
	b.Helper()
	s := store.New(store.Options{Client: b.client, Reader: b.client, Namespace: b.namespace, Plan: b.config.Plan.ConfigMap,
		History: b.config.Plan.History, Key: keySecret})
	b.must(s.Peek(b.ctx))
	h, problems, err := s.ReadHistory(b.ctx)
	b.must(err)
	m, dropped := memory.Of(h.Parts)
	if b.must(errors.Join(dropped...)); len(problems) > 0 {
		b.Fatalf("the history is not whole: %q", problems)
	}
	return s, h, m
}

// saved is what the leader has saved of its memory.
func (b *bed) saved() memory.Memory {
	b.Helper()
	_, _, m := b.history()
	return m
}

// remember has the next leader find another memory than the last one saved. Nobody leads meanwhile.
func (b *bed) remember(change func(*memory.Memory)) {
	b.Helper()
	s, h, m := b.history()
	change(&m)
	parts, stale := m.Parts(h.Parts)
	b.must(errors.Join(stale...))
	h.Parts, h.Anew = parts, memory.MadeAnew()
	_, err := s.WriteHistory(b.ctx, h, b.clock.Now())
	b.must(err)
}
