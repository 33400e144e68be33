package conflicts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAutoscalersOfTheWorkload(t *testing.T) {
	hpa := Autoscaler{Kind: HPA, Namespace: "argocd", Name: "grow", TargetKind: "StatefulSet", TargetName: controller, Min: 2, Max: 8}
	keda := Autoscaler{Kind: ScaledObject, Namespace: "argocd", Name: "wake", TargetKind: "StatefulSet", TargetName: controller, Min: 0, Max: 100}
	change := func(a Autoscaler, f func(*Autoscaler)) Autoscaler { f(&a); return a }
	says := func(subject, between, kind string) Finding {
		return Finding{Autoscaled, subject, subject + " scales StatefulSet " + controller + " between " + between +
			", and ballast holds its replicas at 4: delete the " + kind + ", or set partition.replicas: workload so that it decides their number"}
	}
	theHPA, theKEDA := says("HPA argocd/grow", "2 and 8", "HPA"), says("ScaledObject argocd/wake", "0 and 100", "ScaledObject")
	for name, test := range map[string]struct {
		free bool
		list []Autoscaler
		want []Finding
	}{
		"none":                               {false, nil, nil},
		"an HPA":                             {false, []Autoscaler{hpa}, []Finding{theHPA}},
		"one of another workload":            {false, []Autoscaler{change(hpa, func(a *Autoscaler) { a.TargetName = "argocd-server" })}, nil},
		"one of another kind":                {false, []Autoscaler{change(hpa, func(a *Autoscaler) { a.TargetKind = "Deployment" })}, nil},
		"one of another namespace":           {false, []Autoscaler{change(hpa, func(a *Autoscaler) { a.Namespace = "other" })}, nil},
		"both, in an order of their own":     {false, []Autoscaler{keda, hpa}, []Finding{theHPA, theKEDA}},
		"the HPA that KEDA made is KEDA's":   {false, []Autoscaler{change(hpa, func(a *Autoscaler) { a.Owner = "wake" }), keda}, []Finding{theKEDA}},
		"an HPA whose maker is not to see":   {false, []Autoscaler{change(hpa, func(a *Autoscaler) { a.Owner = "wake" })}, []Finding{theHPA}},
		"the replicas are theirs: no matter": {true, []Autoscaler{hpa, keda}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(4)
			p.FreeReplicas = test.free
			if diff := cmp.Diff(test.want, autoscalers(p, test.list, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
