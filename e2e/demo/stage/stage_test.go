package stage

import "testing"

func TestQuoteWritesWhatIsTyped(t *testing.T) {
	got := Quote([]string{"-n", "argocd", "patch", "-p", "{\"data\":{\"pins\":\"a: 1\n\"}}"})
	if want := `-n argocd patch -p '{"data":{"pins":"a: 1\n"}}'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
