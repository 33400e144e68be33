package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"ballast/planner/diff"
)

// Populate starts every pod long ago.
func (f *Fleet) Populate(now time.Time) {
	for i := range f.Replicas {
		f.start(i, now.Add(-time.Hour))
	}
	f.Found = f.Replicas
	f.Observed, f.acted = f.Generation, now
	f.Own(now.Add(-time.Hour + time.Second)) // they have had their clusters since
	f.Own(now)
}

// Patch is a write to the workload.
func (f *Fleet) Patch(s diff.PatchWorkload) {
	f.Generation++
	if s.Replicas != nil {
		f.Replicas = *s.Replicas
	}
	if s.ControllerReplicas != nil {
		f.Env = strconv.Itoa(*s.ControllerReplicas)
	}
	if s.RestartedAt != "" {
		f.RestartedAt = s.RestartedAt
	}
	if f.Sizing != nil {
		f.Sizing.template(f.Sizing.Template.With(s.Resources))
	}
}

// Control is one act of the StatefulSet's controller: a pod that is not ready blocks all others.
func (f *Fleet) Control(now time.Time) {
	f.hold(now)
	f.nodes(now)
	highest := -1
	for _, i := range slices.Sorted(maps.Keys(f.Pods)) {
		if p := f.Pods[i]; !p.Gone.IsZero() && !now.Before(p.Gone) {
			delete(f.Pods, i)
			continue
		}
		highest = i
	}
	f.Observed = f.Generation
	for i := range f.Replicas {
		if f.Pods[i] == nil {
			f.start(i, now)
			return
		}
		if !f.Up(f.Pods[i], now) {
			return
		}
	}
	for i := highest; i >= 0; i-- {
		if p := f.Pods[i]; p != nil && (i >= f.Replicas || p.Template != f.Template()) {
			f.stop(p, now)
			return
		}
	}
}

// hold keeps pods from becoming ready while Stuck.
func (f *Fleet) hold(now time.Time) {
	for _, p := range f.Pods {
		if f.Stuck && p.Ready.After(f.acted) {
			p.Ready = now.Add(time.Second)
		}
	}
	f.acted = now
}

func (f *Fleet) start(ordinal int, now time.Time) {
	f.Made++
	env, _ := strconv.Atoi(f.Env)
	if f.Deployment {
		env = f.Replicas
	}
	runs := now.Add(f.Schedule)
	takes := f.Start
	if f.Spread > 0 {
		takes += time.Duration(f.Draw(uint64(f.Spread/time.Second), "start", strconv.Itoa(ordinal),
			strconv.Itoa(f.Made))) * time.Second
	}
	f.Pods[ordinal] = &Pod{Ordinal: ordinal, Env: env, Template: f.Template(), Runs: runs, Ready: runs.Add(takes),
		Gained: map[string]time.Time{}, Took: map[string]time.Time{}}
	f.sized(f.Pods[ordinal])
}

func (f *Fleet) stop(p *Pod, now time.Time) {
	if !p.Gone.IsZero() {
		return
	}
	p.Gone = now.Add(f.Grace)
	if f.Grace > 0 {
		return
	}
	delete(f.Pods, p.Ordinal)
	if p.Ordinal < f.Replicas {
		f.start(p.Ordinal, now)
	}
}

// Status is the workload's status.
type Status struct {
	Replicas, ReadyReplicas, UpdatedReplicas int32
	ObservedGeneration                       int64
}

// Status is what the workload's controller says of it.
func (f *Fleet) Status(now time.Time) Status {
	s := Status{Replicas: int32(len(f.Pods)), ObservedGeneration: f.Observed}
	for _, p := range f.Pods {
		if f.Up(p, now) {
			s.ReadyReplicas++
		}
		if p.Template == f.Template() {
			s.UpdatedReplicas++
		}
	}
	return s
}

// Settled reports whether every pod is there, new and ready.
func (f *Fleet) Settled(now time.Time) bool {
	n := int32(f.Replicas)
	return f.Status(now) == Status{n, n, n, f.Generation}
}
