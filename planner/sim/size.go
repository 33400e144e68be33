package sim

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

// resizes is how long a node takes to resize a container, and crashes how long one that was killed takes to start.
const resizes, crashes = 20 * time.Second, time.Minute

// mebi is a mebibyte.
const mebi = 1 << 20

// sized gives a new pod its size.
func (f *Fleet) sized(p *Pod) {
	if f.Sizing == nil {
		return
	}
	asks := f.Sizing.Template
	if held, is := f.Sizing.Held(p.Ordinal); is {
		asks = asks.With(held)
	}
	p.Size = &observed.Size{Asks: podspec.NewSize(asks, nil, false), Has: asks, Since: p.Runs}
}

// Resize is a write to a pod's size.
func (f *Fleet) Resize(ordinal int, size plan.Resources, now time.Time) {
	p := f.Pods[ordinal]
	if p == nil || p.Size == nil || !p.Gone.IsZero() {
		return
	}
	next, asks := *p.Size, p.Size.Asks.Controller.With(size)
	if asks.Same(p.Size.Asks.Controller) {
		return
	}
	next.Asks, next.Since, next.Resize = podspec.NewSize(asks, nil, false), now, observed.ResizeInProgress
	p.Size = &next
}

// Bytes is a quantity of memory; 0 where there is none.
func Bytes(text string) int64 {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0
	}
	return q.Value()
}

// Mebibytes is a quantity of memory.
func Mebibytes(n int64) string { return strconv.FormatInt(n, 10) + "Mi" }

// nodes lets nodes resize what was asked for, and kill containers that use more than their limit.
func (f *Fleet) nodes(now time.Time) {
	if f.Sizing == nil {
		return
	}
	for ordinal := range len(f.Pods) + f.Replicas {
		if p := f.Pods[ordinal]; p != nil && p.Size != nil && p.running(now) {
			f.resize(p, now)
			f.kill(p, now)
		}
	}
}

// resize is a node at work. What is smaller than what a container uses is not made; what is larger than there is room
// for waits.
func (f *Fleet) resize(p *Pod, now time.Time) {
	asks, has := p.Size.Asks.Controller, p.Size.Has
	if asks.Same(has) {
		return
	}
	next := *p.Size
	request, limit := Bytes(asks.Requests["memory"]), Bytes(asks.Limits["memory"])
	grows := request > Bytes(has.Requests["memory"])
	most, small := f.Sizing.Small[p.Ordinal]
	switch {
	case small && request > most:
		next.Resize, next.Message = observed.ResizeInfeasible, "Node didn't have enough capacity: memory"
	case grows && f.Sizing.Full[p.Ordinal]:
		next.Resize, next.Message = observed.ResizeDeferred, "Node didn't have enough resource: memory"
	case limit > 0 && limit < p.Memory:
		next.Resize, next.Message = observed.ResizeFailed, "attempting to set pod memory limit below current usage"
	case now.Sub(p.Size.Since) < resizes:
		next.Resize, next.Message = observed.ResizeInProgress, ""
	default:
		next.Has, next.Resize, next.Message = asks, "", ""
	}
	p.Size = &next
}

// kill looks at what a container uses. One that was killed uses little until it works on its clusters again.
func (f *Fleet) kill(p *Pod, now time.Time) {
	var clusters []string
	for name := range p.Took {
		clusters = append(clusters, name)
	}
	p.Memory = f.Sizing.Uses(p.Ordinal, clusters)
	limit := Bytes(p.Size.Has.Limits["memory"])
	if limit <= 0 || p.Memory <= limit || !f.Up(p, now) {
		return
	}
	f.Crash(p.Ordinal, true, now)
	f.Sizing.Killed++
	p.Ready, p.Memory = now.Add(crashes), 200*mebi
}

// limitOf is the memory that a pod's container may use.
func (f *Fleet) limitOf(p *Pod) int64 {
	if p.Size == nil {
		return MemoryLimit
	}
	return Bytes(p.Size.Has.Limits["memory"])
}

// Sized gives every pod that there is the template's size, and new ones what Held says.
func (f *Fleet) Sized(s Sizing) {
	f.Sizing = &s
	f.Sizing.template(s.Template)
	for _, p := range f.Pods {
		p.Template = f.Template()
		p.Size = &observed.Size{Asks: podspec.NewSize(s.Template, nil, false), Has: s.Template, Since: p.Runs}
	}
}
