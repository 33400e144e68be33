package resize

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/config"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/cycle/track"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// rule adds one to a fleet's policy.
func (f *fleet) rule(r config.SizeRule) {
	f.Size.Policies[0].Rules = append(f.Size.Policies[0].Rules, r)
}

// reads has replica 0 have that of an input.
func (f *fleet) reads(input string, value float64) {
	f.Readings[input] = size.Reading{Replica: map[int]float64{0: value}}
}

// What no rule makes any more is let go: a rule that is taken away, and a limit that Git takes out of the template. Under a freeze it stays.
func TestWhatNoRuleMakesAnyMoreIsLetGo(t *testing.T) {
	for name, test := range map[string]struct {
		had   string // the limit of the template
		rule  bool
		loses func(*fleet)
	}{
		"a rule of limits": {"", true, func(f *fleet) { f.Size.Policies[0].Rules = f.Size.Policies[0].Rules[:2] }},
		"the template's limit": {"2Gi", false, func(f *fleet) {
			f.Template = &plan.Resources{Requests: map[string]string{"memory": "1Gi"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(1)
			before := [2]string{"2024Mi", "4048Mi"}
			if test.rule {
				f.rule(config.SizeRule{List: config.Limits, Resource: "memory", Base: "8Gi"})
				before[1] = "8Gi"
			}
			if test.had == "" {
				f.Template = &plan.Resources{Requests: map[string]string{"memory": "1Gi"}}
			}
			f.runs(3, 10)
			wants(t, f, "before", before)
			test.loses(f)
			f.Shut = question.Shut{Up: "it is frozen", Down: "it is frozen"}
			f.runs(3, 10)
			wants(t, f, "under a freeze", before)
			f.Shut = question.Shut{}
			f.run(10)
			wants(t, f, "after it", [2]string{"2024Mi", ""})
		})
	}
}

// A resource that no rule names any more stays under a freeze, too.
func TestAResourceThatNoRuleNamesStaysUnderAFreeze(t *testing.T) {
	f := newFleet(1)
	f.rule(config.SizeRule{List: config.Requests, Resource: "cpu", Base: "2"})
	f.runs(3, 10)
	cpu := func() string {
		held, _ := f.Plan.SizeOf(0)
		return held.Requests["cpu"]
	}
	f.Size.Policies[0].Rules = f.Size.Policies[0].Rules[:2]
	f.Shut = question.Shut{Up: "it is frozen", Down: "it is frozen"}
	if f.runs(3, 10); cpu() != "2" {
		t.Errorf("under a freeze cpu is %q", cpu())
	}
	f.Shut = question.Shut{}
	if f.run(10); cpu() != "" {
		t.Errorf("after it cpu is %q", cpu())
	}
}

// What shrinks takes no room of the rate by which others grow.
func TestShrinksUseNoRateOfGrowth(t *testing.T) {
	f := newFleet(3)
	f.runs(3, 40, 40, 10)
	f.Change.Up.Rate = []config.Pace{{Replicas: 1, Period: config.Duration(time.Hour)}}
	small, large := [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"}
	f.run(10, 40, 10)
	wants(t, f, "one shrinks", small, large, small)
	f.run(10, 10, 40)
	wants(t, f, "another one does while the third grows", small, small, large)
	f.runs(59, 40, 10, 40)
	wants(t, f, "within the hour no other grows", small, small, large)
	if diff := cmp.Diff([]string{"0 up RateLimit 2024Mi->5Gi"}, f.blocks()); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	f.run(40, 10, 40)
	wants(t, f, "after it", large, small, large)
}

// A rate's one place is for who carries more than it may, and then for who has waited for it longest.
func TestARatesPlaceIsForWhoNeedsItMost(t *testing.T) {
	f := newFleet(4)
	f.run(10, 10, 10, 10)
	f.Change.Up.Rate = []config.Pace{{Replicas: 1, Period: config.Duration(time.Hour)}}
	small, large := [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"}
	f.Now = f.Now.Add(time.Hour)
	f.Over = map[int]bool{2: true}
	f.run(40, 10, 40, 10)
	wants(t, f, "over capacity", small, small, large, small)
	f.Over = nil
	f.runs(10, 10, 10, 40, 40) // replica 0 does not wait any more
	f.runs(49, 40, 10, 40, 40)
	wants(t, f, "within the hour", small, small, large, small)
	f.run(40, 10, 40, 40)
	wants(t, f, "who waited longest", small, small, large, large)
}

// A limit whose rule has not seen its input is none of the template's making: what is held stays, and a request is not above it.
func TestALimitWhoseInputIsUnseenIsNotMadeUp(t *testing.T) {
	limited := func() *fleet {
		f := newFleet(1)
		f.Size.Policies[0].Rules = []config.SizeRule{{List: config.Requests, Resource: "memory", Base: "4Gi"},
			{List: config.Limits, Resource: "memory", Slope: "1", Input: "workingSet"}}
		return f
	}
	f := limited()
	f.reads("workingSet", 16<<30)
	f.runs(3)
	wants(t, f, "seen", [2]string{"4Gi", "16Gi"})
	f.Memory.Rules, f.Readings["workingSet"] = nil, size.Reading{Missing: true}
	f.runs(60)
	wants(t, f, "by a leader that never saw it", [2]string{"4Gi", "16Gi"})
	f = limited()
	f.Readings["workingSet"] = size.Reading{Missing: true}
	f.runs(3)
	wants(t, f, "never seen, and above the template's 2Gi", [2]string{"4Gi", "4Gi"})
}

// Where rules ask for nothing a replica has what the template requests, and where that requests nothing the least there is.
func TestRulesThatAskForNothingHoldTheTemplates(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{"the template's": {"500m", "500m"}, "the least": {"", "1m"}} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(1)
			if test.template != "" {
				f.Template.Requests["cpu"] = test.template
			}
			f.rule(config.SizeRule{List: config.Requests, Resource: "cpu", Slope: "1", Input: "load"})
			f.reads("load", 4)
			f.runs(3, 10)
			f.reads("load", 0)
			f.run(10)
			if held, _ := f.Plan.SizeOf(0); held.Requests["cpu"] != test.want {
				t.Errorf("an idle replica requests %q, want %q; blocked %v", held.Requests["cpu"], test.want, f.blocks())
			}
		})
	}
}

// A kill that raises nothing is told: at what a node has, and at what kills may raise a limit to.
func TestAKillThatRaisesNothingIsTold(t *testing.T) {
	for name, test := range map[string]struct{ most, want string }{
		"at the cap": {"6Gi", "replica 0 is to have more memory than size.nodeCap, or memoryInUse without one than four times its first limit: " +
			"it gets that, and its clusters need more replicas or a larger node"},
		"at what kills may": {"", "replica 0 was OOM-killed at four times the memory limit that the pod template or the policies give it, " +
			"and kills raise it no further: have a rule give it more, or write size.nodeCap.memory, up to which they do"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(1)
			if test.most != "" {
				f.NodeCap = map[string]resource.Quantity{size.Memory: resource.MustParse(test.most)}
			}
			f.runs(3, 10)
			if len(f.last.Problems) > 0 {
				t.Fatalf("before any kill: %v", f.last.Problems)
			}
			for range 30 {
				limit := resource.MustParse(f.memory()[0][1])
				f.killedAt(limit.Value())
				f.run(10)
			}
			if p := f.last.Problems; len(p) != 1 || p[0].Kind != "NodeTooSmall" || p[0].Message != test.want {
				t.Errorf("told %v, want %q", p, test.want)
			}
		})
	}
}

// A limit that must grow does not wait for a request that may not shrink; where no limit may grow the request shrinks alone.
func TestALimitGrowsBesideARequestThatMayNotShrink(t *testing.T) {
	for name, test := range map[string]struct {
		off  func(*config.Change)
		want [2]string
	}{
		"down is off":    {func(c *config.Change) { c.Down.Mode = "Off" }, [2]string{"4024Mi", "10Gi"}},
		"up is off":      {func(c *config.Change) { c.Up.Mode = "Off" }, [2]string{"3024Mi", "6Gi"}},
		"neither is off": {func(*config.Change) {}, [2]string{"3024Mi", "10Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(1)
			f.rule(config.SizeRule{List: config.Limits, Resource: "memory", Slope: "1Gi", Input: "room"})
			f.reads("room", 6)
			f.runs(3, 30)
			wants(t, f, "before", [2]string{"4024Mi", "6Gi"})
			test.off(&f.Change)
			f.reads("room", 10)
			f.runs(2, 20)
			wants(t, f, "after", test.want)
		})
	}
}

// A limit that follows a request which stays on its level keeps its ratio to it, and shrinks to that.
func TestALimitFollowsARequestThatStaysOnItsLevel(t *testing.T) {
	f := newFleet(1)
	f.Size.Policies[0].Rules[1].Quantize = &config.Quantize{Step: "1Gi"}
	f.Memory.Peaks = map[int]track.Peak{0: {Bytes: 8512 << 20, At: f.Now}}
	f.Pods = []observed.Pod{{Replica: 0, Name: "c-0", Memory: 1 << 30, MemoryLimit: 16 << 30}}
	f.runs(3, 25)
	wants(t, f, "above its peak", [2]string{"4Gi", "10Gi"})
	f.Memory.Peaks = seenInUse(1)
	f.runs(2, 20)
	wants(t, f, "a level that a tenth more needs", [2]string{"4Gi", "8Gi"})
}
