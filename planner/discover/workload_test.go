package discover

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestFindContainer(t *testing.T) {
	env := []corev1.EnvVar{{Name: "ARGOCD_CONTROLLER_REPLICAS", Value: "2"}}
	tests := map[string]struct {
		containers []corev1.Container
		want       int
		wantErr    string
	}{
		"upstream, by its name, beside a sidecar": {
			containers: []corev1.Container{{Name: "proxy"}, {Name: "argocd-application-controller"}}, want: 1,
		},
		"Helm, by its env": {
			containers: []corev1.Container{{Name: "proxy"}, {Name: "application-controller", Env: env}}, want: 1,
		},
		"Helm without the env, by its args": {
			containers: []corev1.Container{{Name: "proxy"}, {Name: "main", Args: []string{"/usr/local/bin/argocd-application-controller", "--loglevel=info"}}}, want: 1,
		},
		"Helm without either, by its name": {
			containers: []corev1.Container{{Name: "proxy"}, {Name: "application-controller"}}, want: 1,
		},
		"the env goes before the name": {
			containers: []corev1.Container{{Name: "application-controller"}, {Name: "main", Env: env}}, want: 1,
		},
		"of two with the env, the one that runs it": {
			containers: []corev1.Container{{Name: "reporter", Env: env}, {Name: "main", Env: env, Command: []string{"argocd-application-controller"}}}, want: 1,
		},
		"the only one, whatever it is": {containers: []corev1.Container{{Name: "main"}}, want: 0},
		"none": {
			containers: []corev1.Container{{Name: "a"}, {Name: "b"}},
			wantErr: `finding the application-controller's container: none of "a", "b" stands out by the env ARGOCD_CONTROLLER_REPLICAS, ` +
				`the command argocd-application-controller or its name; set target.container`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := FindContainer(test.containers)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(test.wantErr, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if got != test.want {
				t.Errorf("container %d, want %d", got, test.want)
			}
		})
	}
}
