package patchable

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestTimesThatJSONDoesNotHaveAreFound wherever they stand in a part of an object.
func TestTimesThatJSONDoesNotHaveAreFound(t *testing.T) {
	at := func(text string) metav1.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return metav1.NewTime(parsed)
	}
	beyond, within := at("9999-12-31T23:59:59-12:00"), at("9999-12-31T23:59:59Z")
	for name, test := range map[string]struct {
		part any
		want bool
	}{
		"none":                        {appsv1.StatefulSetStatus{}, false},
		"the last there is":           {within, false},
		"the first beyond":            {beyond, true},
		"before the year 0":           {metav1.NewTime(time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)), true},
		"none at a pointer":           {(*metav1.Time)(nil), false},
		"one at a pointer":            {&beyond, true},
		"a StatefulSet's condition":   {appsv1.StatefulSetStatus{Conditions: []appsv1.StatefulSetCondition{{LastTransitionTime: within}, {LastTransitionTime: beyond}}}, true},
		"a Deployment's condition":    {appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{LastUpdateTime: beyond}}}, true},
		"the start of a container":    {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: beyond}}}}}, true},
		"the end of a container":      {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: beyond}}}}}, true},
		"a pod's start":               {corev1.PodStatus{StartTime: &beyond}, true},
		"a pod as its kubelet has it": {corev1.PodStatus{StartTime: &within, Conditions: []corev1.PodCondition{{LastProbeTime: within}}}, false},
		"a manager's":                 {[]metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1("{}")}, {Time: &beyond}}, true},
	} {
		if got := HoldsBeyondJSON(test.part); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// TestWhatIsNoTextIsFound wherever it stands in an object; bytes are none.
func TestWhatIsNoTextIsFound(t *testing.T) {
	const bad = "a\xff"
	for name, test := range map[string]struct {
		object any
		want   bool
	}{
		"nothing":                  {&appsv1.StatefulSet{}, true},
		"text":                     {&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "\u00e9\ufffd"}}}, true},
		"an annotation":            {&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": bad}}}, false},
		"an annotation's name":     {&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{bad: "a"}}}, false},
		"what a container runs":    {&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"a", bad}}}}}, false},
		"a condition of a status":  {&appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Message: bad}}}}, false},
		"a value at a pointer":     {&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RuntimeClassName: ptr.To(bad)}}}}, false},
		"a Secret's data is bytes": {&corev1.Secret{Data: map[string][]byte{"a": []byte(bad)}}, true},
		"a list":                   {[]string{"a", bad}, false},
	} {
		if got := IsText(test.object); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
