package resize

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/config"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// followed is a fleet whose memory is what its pods have had, and a quarter more; the template has 4Gi and a limit of 8Gi.
func followed(replicas int) *fleet {
	f := newFleet(replicas)
	f.Template = &plan.Resources{Requests: map[string]string{"memory": "4Gi"}, Limits: map[string]string{"memory": "8Gi"}}
	f.Size.Policies[0].Rules = []config.SizeRule{{List: config.Requests, Resource: "memory", Slope: "1.25", Input: "apps"}}
	f.Seen = map[string]bool{"apps": true}
	return f
}

const gib = float64(1 << 30)

// A replica that shrank for want of work keeps the template's limit: a wave may bring it more than it was ever seen to use.
func TestNoLimitThatFollowsPodsIsBelowTheTemplates(t *testing.T) {
	f := followed(3)
	f.runs(5, 4*gib, 8*gib, 0.8*gib)
	wants(t, f, "limits", [2]string{"5Gi", "10Gi"}, [2]string{"10Gi", "20Gi"}, [2]string{"1Gi", "8Gi"})
	f.Receivers = map[int]bool{2: true}
	f.runs(2, 4*gib, 8*gib, 0.8*gib)
	wants(t, f, "of a receiver, too", [2]string{"5Gi", "10Gi"}, [2]string{"10Gi", "20Gi"}, [2]string{"1Gi", "8Gi"})
}

func TestTheTemplatesLimitIsTheLeast(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fleet)
		want   [2]string
	}{
		"request equal to limit":  {func(f *fleet) { f.Template.Requests["memory"] = "8Gi" }, [2]string{"8Gi", "8Gi"}},
		"a rule for the limit":    {func(f *fleet) { f.Size.Policies[0].Rules[0].List = config.Limits }, [2]string{"", "8Gi"}},
		"no limit":                {func(f *fleet) { f.Template.Limits = nil }, [2]string{"1Gi", ""}},
		"memory follows clusters": {func(f *fleet) { f.Seen = map[string]bool{"memoryInUse": true} }, [2]string{"1Gi", "2Gi"}},
		"what it was seen to use is more": {func(f *fleet) {
			f.Pods = []observed.Pod{{Replica: 0, Name: "c-0", Memory: 9 << 30, MemoryLimit: 12 << 30}}
		}, [2]string{"1Gi", "11072Mi"}},
		"the pod template has it": {func(f *fleet) { f.Size.Apply = config.Template }, [2]string{"1Gi", "8Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := followed(1)
			tc.change(f)
			f.runs(5, 0.8*gib)
			got := f.memory()[0]
			if r := f.Plan.Resources; r != nil {
				got = [2]string{r.Requests[size.Memory], r.Limits[size.Memory]}
			}
			if got != tc.want {
				t.Errorf("request and limit are %v, want %v; blocked %v", got, tc.want, f.blocks())
			}
		})
	}
}

// A pod that says that it uses all that it may grows to four times the template's limit, and no further; less than a tenth more is no
// change.
func TestWhatPodsSayHasAnEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fleet)
		want   [2]string
	}{
		"the shipped policy": {func(*fleet) {}, [2]string{"8Gi", "8Gi"}},
		"a node cap":         {func(f *fleet) { f.NodeCap = map[string]resource.Quantity{"memory": resource.MustParse("5Gi")} }, [2]string{"5Gi", "5Gi"}},
		"a larger node cap":  {func(f *fleet) { f.NodeCap = map[string]resource.Quantity{"memory": resource.MustParse("12Gi")} }, [2]string{"11Gi", "11Gi"}},
		"a cap of cpu alone": {func(f *fleet) { f.NodeCap = map[string]resource.Quantity{"cpu": resource.MustParse("4")} }, [2]string{"8Gi", "8Gi"}},
		"a rule with a max":  {func(f *fleet) { f.Size = inUseUpTo("10Gi") }, [2]string{"10000000Ki", "10000000Ki"}},
		"a rule without one": {func(f *fleet) { f.Size = inUseUpTo("") }, [2]string{"8000000Ki", "8000000Ki"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(1)
			f.Template = &plan.Resources{Requests: map[string]string{"memory": "2Gi"}, Limits: map[string]string{"memory": "2Gi"}}
			f.Size = config.Size{Apply: config.InPlace, Defaults: true}
			f.Seen = map[string]bool{config.InputMemoryInUse: true}
			tc.change(f)
			limit := int64(2 << 30)
			for range 60 {
				f.Readings[config.InputMemoryInUse] = size.Reading{Replica: map[int]float64{0: float64(limit)}}
				f.Pods = []observed.Pod{{Replica: 0, Name: "c-0", Ready: true, Memory: 1 << 50, MemoryLimit: limit}}
				f.run()
				held := resource.MustParse(f.memory()[0][1])
				limit = held.Value()
			}
			wants(t, f, "at the end", tc.want)
		})
	}
}

func inUseUpTo(most config.Quantity) config.Size {
	return config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
		{List: config.Requests, Resource: "memory", Slope: "1.25", Input: config.InputMemoryInUse, Max: most}}}}}
}

// TestWhatAPodWithoutALimitSaysIsNoMoreThanANodeHas: a rule's limit never goes below what was seen in use, and a pod's word is no node.
func TestWhatAPodWithoutALimitSaysIsNoMoreThanANodeHas(t *testing.T) {
	f := newFleet(1)
	f.Template = &plan.Resources{Requests: map[string]string{"memory": "2Gi"}}
	f.Size = config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
		{List: config.Limits, Resource: "memory", Base: "3Gi"}}}}}
	f.NodeCap = map[string]resource.Quantity{"memory": resource.MustParse("5Gi")}
	f.Pods = []observed.Pod{{Replica: 0, Name: "c-0", Ready: true, Memory: 1 << 50}}
	for range 5 {
		f.run()
	}
	wants(t, f, "a pod says that it uses a pebibyte", [2]string{"", "5Gi"})
	if got := f.Memory.Peaks[0].Bytes; got != 5<<30 {
		t.Errorf("%d bytes are remembered as used, want 5Gi", got)
	}
}
