package rollout

import (
	"fmt"
	"math"
	"testing"
	"time"

	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// BenchmarkRollout times what a cycle asks of this package while every tenth cluster moves.
func BenchmarkRollout(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		before, after := map[string]int{}, map[string]int{}
		seen := observed.State{Workload: standing(50, ptr(50))}
		for i := range n {
			name := fmt.Sprintf("cluster-%06d", i)
			before[name], after[name] = i%50, i%50
			if i%10 == 0 {
				after[name] = (i + 1) % 50
			}
			seen.Secrets = append(seen.Secrets, carried(name, before[name]))
		}
		now, next := newPlan(50, 50, before), Proposal{Replicas: 50, ControllerReplicas: 50, Rows: rows(after)}
		begun, err := Begin(now, next, basis.Options{}, start)
		if err != nil {
			b.Fatal(err)
		}
		view := plan.NewView(begun, nil)
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/clusters=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		run("begin", func() { _, _ = Begin(now, next, basis.Options{}, start) })
		run("steps", func() { diff.Between(view, seen, diff.Options{}) })
		run("advance", func() { Advance(view, seen, nil, basis.Options{StageTimeout: time.Minute}, start) })
	}
}

// BenchmarkWave times the choice of a live rollout's wave, and the wait for it, while every tenth cluster is to move.
func BenchmarkWave(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		stands, target := shards{}, shards{}
		for i := range n {
			name := fmt.Sprintf("cluster-%06d", i)
			stands[name], target[name] = i%50, i%50
			if i%10 == 0 {
				target[name] = (i + 1) % 50
			}
		}
		p := newPlan(50, 50, stands)
		p.MaxReplicas = 50
		seen, o := fit(50, 50, stands), basis.Options{Mode: plan.ModeLive, StageTimeout: time.Minute, MaxMovesPerWave: 5, Budget: math.MaxInt}
		p, err := Begin(p, Proposal{Replicas: 50, ControllerReplicas: 50, Rows: rows(target)}, o, start)
		if err != nil {
			b.Fatal(err)
		}
		between := plan.NewView(p, nil)
		p, _ = Advance(between, seen, target, o, start)
		during := plan.NewView(p, nil)
		for name, v := range map[string]*plan.View{"choose": between, "wait": during} {
			b.Run(fmt.Sprintf("%s/clusters=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Advance(v, seen, target, o, start)
				}
			})
		}
		b.Run(fmt.Sprintf("steps/clusters=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				diff.Between(during, seen, diff.Options{Nudge: true})
			}
		})
	}
}
