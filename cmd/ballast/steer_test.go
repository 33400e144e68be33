package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/site"
	"ballast/planner/plan"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// steered is a plan of three replicas, after that change.
func steered(change func(*plan.Plan)) plan.Plan {
	p := plan.Plan{
		Revision: 17, Mode: plan.Enforce, PlannerUser: site.PlannerUser, Replicas: 3, ControllerReplicas: 16, MaxReplicas: 16,
		Target: plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: controllerName, Container: "application-controller"},
		Clusters: map[string]plan.Row{
			"prod-eu": {Replica: 0, Load: "0.41"}, "prod-us": {Replica: 1, Load: "0.35"}, "prod-ap": {Replica: 2, Load: "0.2"},
			"stage-eu": {Replica: 2, Load: "0.11"}, "stage-us": {Replica: 1, Load: "0.07"}, "dev": {Replica: 2, Load: "0.02"}, "lab": {Replica: 2},
		},
	}
	if change != nil {
		change(&p)
	}
	return p
}

// planMapOf is the plan ConfigMap as the planner and people wrote it.
func planMapOf(p plan.Plan, pins string, annotations map[string]string) (*corev1.ConfigMap, error) {
	text, err := plan.Encode(p)
	if err != nil {
		return nil, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-plan", Annotations: map[string]string{
		plan.AnnotationRevision: fmt.Sprint(p.Revision), plan.AnnotationDigest: plan.Digest(text)}}, Data: map[string]string{plan.KeyPlan: text}}
	if pins != "" {
		cm.Data[plan.KeyPins] = pins
	}
	maps.Copy(cm.Annotations, annotations)
	return cm, nil
}

func stateWith(t testing.TB, p plan.Plan, pins string, annotations map[string]string) planState {
	t.Helper()
	cm, err := planMapOf(p, pins, annotations)
	if err != nil {
		t.Fatal(err)
	}
	s := stateOf(cm)
	if s.PlanErr != nil {
		t.Fatal(s.PlanErr)
	}
	return s
}

// golden compares what is printed with a file under testdata; -update writes it anew.
func golden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-golden +got (-update writes it anew):\n%s", diff)
	}
}

// printed is a result in both its forms.
func printed(t *testing.T, r writer) (table, json string) {
	t.Helper()
	var a, b bytes.Buffer
	for form, w := range map[string]*bytes.Buffer{"table": &a, "json": &b} {
		if err := (&steerOptions{output: form}).print(w, r); err != nil {
			t.Fatal(err)
		}
	}
	return a.String(), b.String()
}

func TestEditsAreWrittenOnlyIfSomethingDiffers(t *testing.T) {
	a, b := "1", "2"
	stands := map[string]string{"a": "1", "empty": ""}
	empty := ""
	for name, test := range map[string]struct {
		change edits
		want   bool
	}{
		"no change":                    {nil, false},
		"what stands":                  {edits{"a": &a}, false},
		"another value":                {edits{"a": &b}, true},
		"one that is not there":        {edits{"b": &a}, true},
		"one to take away":             {edits{"a": nil}, true},
		"one that is gone":             {edits{"b": nil}, false},
		"an empty one as it stands":    {edits{"empty": &empty}, false},
		"an empty one that is new":     {edits{"b": &empty}, true},
		"an empty one, taken away":     {edits{"empty": nil}, true},
		"one of several, and that one": {edits{"a": &a, "b": &b}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.change.differ(stands); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestWhatAnybodyWroteIsPrintedOnOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"why":                    "why",
		" a\nb\tc\r ":            "a b c",
		"\x1b[31mred":            `\u001b[31mred`,
		strings.Repeat("ö", 301): strings.Repeat("ö", 299) + "…",
		"a\xffb":                 "a\ufffdb",
		"http://u:p@h":           "http://***@h",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
}

func TestWhatPeopleAskForWaitsForNothingButEnforcement(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"nothing":                 {nil, ""},
		"neither freeze nor trip": {map[string]string{plan.AnnotationPaused: "true", plan.AnnotationTripped: `cluster "dev" has no owner`}, ""},
		"enforcement":             {map[string]string{plan.AnnotationEnforcement: "off"}, "enforcement is off (annotation ballast.argoproj.io/enforcement), and the planner moves nothing until that is removed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stateWith(t, steered(nil), "", test.annotations).waits(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatNeedsAPlanSaysWhatIsMissing(t *testing.T) {
	broken := stateWith(t, steered(nil), "", nil)
	broken.Plan, broken.PlanErr = nil, plan.ErrDigest
	for want, s := range map[string]planState{
		"": stateWith(t, steered(nil), "", nil),
		"the mode is Observe, in which nothing moves: set mode: Enforce in the planner's configuration":                                     stateWith(t, steered(func(p *plan.Plan) { p.Mode = plan.Observe }), "", nil),
		"the mode is Hold, in which nothing moves: set mode: Enforce in the planner's configuration":                                        stateWith(t, steered(func(p *plan.Plan) { p.Mode = plan.Hold }), "", nil),
		"there is no plan yet: the planner makes the first one when it leads, see `ballast status`":                                         {},
		"the plan cannot be read: the plan does not match its digest annotation; the planner mends it within a cycle, see `ballast status`": broken,
	} {
		got := ""
		if _, err := s.needEnforce(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestCommandsThatSteerAreRegistered: each has a help text that teaches and examples that are commands.
func TestCommandsThatSteerAreRegistered(t *testing.T) {
	root := newRootCommand()
	for _, name := range []string{"freeze", "resume", "evacuate", "rollback"} {
		cmd, _, err := root.Find([]string{name})
		if err != nil || cmd.Name() != name {
			t.Fatalf("there is no ballast %s: %v", name, err)
		}
		if !strings.Contains(cmd.Long, plan.Group) || !strings.Contains(cmd.Long, "needs get") {
			t.Errorf("ballast %s does not say what it writes, and with which right", name)
		}
		for _, line := range strings.Split(cmd.Example, "\n") {
			line, _, _ = strings.Cut(line, "#")
			line, _, _ = strings.Cut(line, "&&")
			words := strings.Fields(strings.ReplaceAll(line, `"Black Friday, ask @alice"`, "x"))
			if len(words) < 2 || words[1] != name {
				t.Errorf("%q is no example of ballast %s", line, name)
				continue
			}
			fresh := newRootCommand()
			cmd, rest, err := fresh.Find(words[1:])
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil || slices.Contains(cmd.Flags().Args(), name) {
				t.Errorf("%q: %v", line, err)
			}
		}
	}
}
