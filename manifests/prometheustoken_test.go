package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"ballast/planner/config/configfile"
)

// TestPrometheusGetsATokenOfItsOwn beside the planner's, which no configuration may name.
func TestPrometheusGetsATokenOfItsOwn(t *testing.T) {
	const dir = "/var/run/secrets/ballast/prometheus"
	base, with := decode(t, build(t, "base")).Deployments["ballast-planner"].Spec.Template.Spec, decode(t, build(t, everything)).Deployments["ballast-planner"].Spec.Template.Spec
	want := base.DeepCopy()
	want.PriorityClassName = "ballast." + namespace
	want.Containers[0].VolumeMounts = append([]corev1.VolumeMount{{Name: "prometheus-token", MountPath: dir, ReadOnly: true}}, want.Containers[0].VolumeMounts...)
	want.Volumes = append([]corev1.Volume{{Name: "prometheus-token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "prometheus", ExpirationSeconds: ptr.To(int64(3600)), Path: "token"}}}}}}}, want.Volumes...)
	if diff := cmp.Diff(*want, with); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	const head = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\npoll: {prometheus: {http: {authorization: {credentials_file: "
	if _, err := configfile.Parse([]byte(head + dir + "/token}}}}\n")); err != nil {
		t.Error(err)
	}
	if _, err := configfile.Parse([]byte(head + "/var/run/secrets/kubernetes.io/serviceaccount/token}}}}\n")); err == nil {
		t.Error("the planner's own token may be sent to Prometheus")
	}
}
