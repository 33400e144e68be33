package discover

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestParseShardReadsAsArgoCDDoes(t *testing.T) {
	tests := map[string]ShardValue{
		"0": {State: ShardValid}, "7": valid(7), "999999": valid(999_999), "+1": valid(1), "007": valid(7), "-0": {State: ShardValid},
		"": {State: ShardInvalid}, " 1": {State: ShardInvalid}, "1 ": {State: ShardInvalid}, "1\n": {State: ShardInvalid},
		"0x1": {State: ShardInvalid}, "1.0": {State: ShardInvalid}, "1_0": {State: ShardInvalid}, "abc": {State: ShardInvalid},
		"99999999999999999999": {State: ShardInvalid},
		"-1":                   {State: ShardNegative}, "-99999999": {State: ShardNegative},
		"1000000": {State: ShardTooLarge}, "4294967296": {State: ShardTooLarge},
	}
	for raw, want := range tests {
		t.Run(raw, func(t *testing.T) {
			if diff := cmp.Diff(want, ParseShard([]byte(raw))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(ShardValue{}, ParseShard(nil)); diff != "" {
		t.Errorf("no data.shard (-want +got):\n%s", diff)
	}
}

func FuzzParseShard(f *testing.F) {
	for _, seed := range []string{"0", "-1", " 1", "0x1", "4294967296", "999999", "1000000", "eyJhbGciOi"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := ParseShard(raw)
		n, err := strconv.Atoi(string(raw))
		if (got.State == ShardValid) != (raw != nil && err == nil && n >= 0 && n <= maxShard) {
			t.Errorf("%q is %q", raw, got.State)
		}
		if got.State == ShardValid && got.N != n || got.State != ShardValid && got.N != 0 {
			t.Errorf("%q is %d", raw, got.N)
		}
	})
}

func TestFromSecretKeepsWhatIsPlannedWith(t *testing.T) {
	yes, now := true, metav1.Now()
	tests := map[string]struct {
		secret corev1.Secret
		want   Secret
	}{
		"nothing at all": {want: Secret{}},
		"a plain cluster": {
			secret: corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "s", Namespace: "argocd"},
				Data:       map[string][]byte{"name": []byte("prod"), "server": []byte("https://prod"), "shard": []byte("2"), "config": []byte("{}")},
			},
			want: Secret{UID: "u", Name: "s", Namespace: "argocd", Cluster: "prod", Server: "https://prod", Shard: valid(2), HasData: true},
		},
		"all that people and Argo CD may say": {
			secret: corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "s", DeletionTimestamp: &now, Annotations: map[string]string{
					"ballast.argoproj.io/pin": "3", "ballast.argoproj.io/unmanaged": "true", "argocd.argoproj.io/skip-reconcile": "true"}},
				Immutable: &yes,
			},
			want: Secret{Name: "s", Pin: "3", Unmanaged: true, SkipReconcile: true, Immutable: true, Deleting: true},
		},
		"a pin that the webhook passes over is not kept": {
			secret: corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"ballast.argoproj.io/pin": "03"}}},
			want:   Secret{Name: "s", Pin: "invalid"},
		},
		"a token pasted as pin is not kept": {
			secret: corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"ballast.argoproj.io/pin": "eyJhbGciOi"}}},
			want:   Secret{Name: "s", Pin: "invalid"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, FromSecret(&test.secret)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

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
