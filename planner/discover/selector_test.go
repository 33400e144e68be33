package discover

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSelector(t *testing.T) {
	label := "argocd.argoproj.io/secret-type"
	expression := func(op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: op, Values: values}}}
	}
	tests := map[string]struct {
		selector metav1.LabelSelector
		want     string
		wantErr  string
	}{
		"matchLabels":      {selector: metav1.LabelSelector{MatchLabels: map[string]string{label: "cluster"}}, want: label + "=cluster"},
		"matchExpressions": {selector: expression(metav1.LabelSelectorOpIn, "cluster"), want: label + " in (cluster)"},
		"empty":            {wantErr: "would select every Secret"},
		"unlabelled too":   {selector: expression(metav1.LabelSelectorOpNotIn, "repository"), wantErr: "also selects Secrets without any label"},
		"no such operator": {selector: expression("Like", "x"), wantErr: `"Like" is not a valid label selector operator`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Selector(test.selector)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
