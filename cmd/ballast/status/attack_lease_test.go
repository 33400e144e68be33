package status

import (
	"encoding/json"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/cmd/ballast/status/overview"
	"ballast/cmd/ballast/steer"
	"ballast/planner/config"
	"ballast/planner/conflicts"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
)

// TestALeaseOfTheYear10000IsShown: JSON has no time that is as late in UTC, and one write of the Lease would end
// `ballast status -o json` with an error for good.
func TestALeaseOfTheYear10000IsShown(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	late, holder := metav1.MicroTime{Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -12*3600)).UTC()}, "x"
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &late, RenewTime: &late}}
	lease.Annotations = map[string]string{conflicts.AnnotationPlan: "other/plan"}
	v := &observation{now: now, lease: lease, config: config.Default(), state: steer.State{Document: configmap.Document{Plan: &plan.Plan{}}}}
	var s overview.Overview
	v.leads(&s)
	if s.Owner == nil || !s.Owner.Since.Equal(now) || !s.Renewed.Equal(last) { // nobody took it later than it was seen
		t.Errorf("renewed %v, owner %+v", s.Renewed, s.Owner)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}
