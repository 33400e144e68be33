package resize

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/track"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

func of(request, limit string) plan.Resources {
	return plan.Resources{Requests: map[string]string{"memory": request}, Limits: map[string]string{"memory": limit}}
}

// A plan that was read says 900Gi, and the configuration 4Gi at most.
func TestNoSizeOfAPlanIsBeyondTheWrittenCap(t *testing.T) {
	template := of("1Gi", "2Gi")
	forLimits := func(most config.Quantity) config.SizePolicy {
		return config.SizePolicy{Name: "limits", Rules: []config.SizeRule{{List: config.Limits, Resource: "memory", Base: "3Gi", Max: most}}}
	}
	for name, tc := range map[string]struct {
		change func(*Evidence)
		has    plan.Resources
		want   plan.Resources
	}{
		"both":                           {has: of("900Gi", "901Gi"), want: of("4Gi", "8Gi")},
		"the limit alone":                {has: of("2Gi", "900Gi"), want: of("2Gi", "8Gi")},
		"equal ones stay equal":          {has: of("900Gi", "900Gi"), want: of("4Gi", "4Gi")},
		"within":                         {has: of("4Gi", "8Gi"), want: of("4Gi", "8Gi")},
		"no cap":                         {func(e *Evidence) { e.Size.NodeCap = config.SizeCap{} }, of("900Gi", "901Gi"), of("900Gi", "901Gi")},
		"a cap of cpu":                   {func(e *Evidence) { e.Size.NodeCap = config.SizeCap{CPU: "1"} }, of("900Gi", "901Gi"), of("900Gi", "901Gi")},
		"a template without a limit":     {func(e *Evidence) { e.Template.Limits = nil }, of("900Gi", "901Gi"), of("4Gi", "4Gi")},
		"limits that lie a half above":   {func(e *Evidence) { e.Size.Limits.Memory = &config.Headroom{Percentage: 50} }, of("900Gi", "901Gi"), of("4Gi", "6Gi")},
		"a rule of limits up to 9Gi":     {func(e *Evidence) { e.Size.Policies = append(e.Size.Policies, forLimits("9Gi")) }, of("900Gi", "901Gi"), of("4Gi", "9Gi")},
		"a rule of limits without a max": {func(e *Evidence) { e.Size.Policies = append(e.Size.Policies, forLimits("")) }, of("900Gi", "901Gi"), of("4Gi", "901Gi")},
		"a pod has more": {func(e *Evidence) { e.Pods = []observed.Pod{{Size: &observed.Size{Has: of("5Gi", "20Gi")}}} },
			of("900Gi", "901Gi"), of("20Gi", "40Gi")},
		"a pod that only asks for it": {func(e *Evidence) {
			e.Pods = []observed.Pod{{Size: &observed.Size{Asks: podspec.Size{Controller: of("900Gi", "901Gi")}}}}
		}, of("900Gi", "901Gi"), of("4Gi", "8Gi")},
		"a pod has that limit":     {func(e *Evidence) { e.Pods = []observed.Pod{{MemoryLimit: 16 << 30}} }, of("900Gi", "900Gi"), of("16Gi", "16Gi")},
		"a replica used more":      {func(e *Evidence) { e.Memory.Peaks = map[int]track.Peak{7: {Bytes: 6 << 30}} }, of("900Gi", "900Gi"), of("6Gi", "6Gi")},
		"the template had more":    {func(e *Evidence) { e.Memory.Found = &plan.Resources{Requests: map[string]string{"memory": "7Gi"}} }, of("900Gi", "900Gi"), of("7Gi", "7Gi")},
		"a person went back to it": {func(e *Evidence) { e.Memory.Back = &memory.SizesBack{Of: map[int]plan.Resources{3: of("4Gi", "12Gi")}} }, of("2Gi", "12Gi"), of("2Gi", "12Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			found := plan.Plan{Resources: &template}.Clone().Resources
			e := Evidence{Size: config.Size{NodeCap: config.SizeCap{Memory: "4Gi"}}, Template: found}
			if tc.change != nil {
				tc.change(&e)
			}
			p := plan.Plan{Resources: &tc.has, Sizes: &plan.Sizes{Default: tc.has, Replicas: map[int]plan.Resources{2: tc.has}}}.Clone()
			e.Bound(p)
			for where, got := range map[string]plan.Resources{"template": *p.Resources, "default": p.Sizes.Default, "a replica's own": p.Sizes.Replicas[2]} {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", where, diff)
				}
			}
		})
	}
}

// What was decided under a configuration is within it: a plan that nobody forged is left as it is.
func TestWhatWasDecidedIsWithinItsBounds(t *testing.T) {
	gi := rapid.Map(rapid.IntRange(1, 12), func(n int) string { return fmt.Sprintf("%dGi", n) })
	rapid.Check(t, func(t *rapid.T) {
		f := drawnFleet(t, gi)
		for range 12 {
			var apps []float64
			for range f.Replicas {
				apps = append(apps, float64(rapid.IntRange(0, 150).Draw(t, "apps")))
			}
			f.Pods = f.drawnPods(t)
			f.run(apps...)
			p := f.Plan.Clone()
			Evidence{Size: f.Size, Template: f.Template, Pods: f.Pods, Memory: f.Memory}.Bound(p)
			if !p.Sizes.Same(f.Plan.Sizes) {
				t.Fatalf("decided %+v, bound to %+v", f.Plan.Sizes, p.Sizes)
			}
			if p.Resources != nil && !p.Resources.Same(*f.Plan.Resources) {
				t.Fatalf("decided %+v, bound to %+v", f.Plan.Resources, p.Resources)
			}
		}
	})
}

// drawnFleet is a fleet under a written cap, with whatever lets a limit be above it.
func drawnFleet(t *rapid.T, gi *rapid.Generator[string]) *fleet {
	f := newFleet(3)
	f.Size.Apply = rapid.SampledFrom([]config.SizeApply{config.InPlace, config.Template}).Draw(t, "apply")
	f.Template = &plan.Resources{}
	if rapid.Bool().Draw(t, "requests") {
		f.Template.Requests = map[string]string{"memory": gi.Draw(t, "request")}
	}
	if rapid.Bool().Draw(t, "limited") {
		f.Template.Limits = map[string]string{"memory": gi.Draw(t, "limit")}
	}
	if rapid.Bool().Draw(t, "headroom") {
		f.Size.Limits.Memory = &config.Headroom{Percentage: config.Percent(rapid.IntRange(1, 200).Draw(t, "percent"))}
	}
	if rapid.Bool().Draw(t, "a rule of limits") {
		f.Size.Policies[0].Rules = append(f.Size.Policies[0].Rules, config.SizeRule{List: config.Limits, Resource: "memory", Base: "1Gi", Slope: "200Mi", Input: "apps",
			Max: config.Quantity(rapid.SampledFrom([]string{"", "5Gi", "20Gi"}).Draw(t, "max"))})
	}
	f.Seen = map[string]bool{"apps": rapid.Bool().Draw(t, "of pods")}
	f.Size.NodeCap.Memory = config.Quantity(gi.Draw(t, "cap"))
	f.NodeCap = f.Size.Cap()
	return f
}

// drawnPods are pods as large as the plan has them, or not yet, some of which were killed.
func (f *fleet) drawnPods(t *rapid.T) (pods []observed.Pod) {
	for r := range f.Replicas {
		p := observed.Pod{Replica: r, Name: fmt.Sprintf("c-%d", r), Ready: true, Memory: int64(rapid.IntRange(0, 16).Draw(t, "used")) << 30}
		limit := f.memory()[r][1]
		if limit == "" || rapid.Bool().Draw(t, "as the template") {
			limit = f.Template.Limits["memory"]
		}
		if limit != "" {
			q := resource.MustParse(limit)
			p.MemoryLimit = q.Value()
		}
		if rapid.IntRange(0, 5).Draw(t, "killed") == 0 {
			p.OOMKilled, p.KilledAt = true, f.Now.Add(-time.Second)
		}
		pods = append(pods, p)
	}
	return pods
}
