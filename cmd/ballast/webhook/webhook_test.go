package webhook

import (
	"testing"
)

func TestThePlannerIsTheShippedServiceAccountUnlessSaid(t *testing.T) {
	for want, o := range map[string]options{
		"system:serviceaccount:cd:ballast-planner": {namespace: "cd"},
		"somebody": {namespace: "cd", plannerUser: "somebody"},
	} {
		if got := o.planner(); got != want {
			t.Errorf("planner %q, want %q", got, want)
		}
	}
}
