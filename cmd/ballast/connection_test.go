package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/evacuate"
	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/freeze"
	plancmd "ballast/cmd/ballast/plan"
	"ballast/cmd/ballast/rebase"
	"ballast/cmd/ballast/rollback"
	"ballast/cmd/ballast/status"
	"ballast/cmd/ballast/uninstall"
	"ballast/planner/plan"
)

// asking are the commands that ask the API server for a person.
func asking() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"status": status.NewCommand, "plan --prometheus=http://127.0.0.1:1": plancmd.NewCommand, "freeze --reason=x": freeze.NewCommand, "resume": freeze.NewResumeCommand,
		"evacuate 1": evacuate.NewCommand, "rollback 1": rollback.NewCommand, "rebase --yes": rebase.NewCommand, "uninstall --yes": uninstall.NewCommand,
	}
}

// TestNoCommandWaitsForASilentAPIServer: it ends in time, and says whom it asked and what to do.
func TestNoCommandWaitsForASilentAPIServer(t *testing.T) {
	for line, made := range asking() {
		t.Run(line, func(t *testing.T) {
			kubeconfig, url, _ := fixture.SilentServer(t)
			started := time.Now()
			err := fixture.RunLine(t.Context(), made(), line, "--kubeconfig="+kubeconfig, "--request-timeout=200ms")
			want := fmt.Sprintf("\nAPI server %q did not answer in time: see whether `kubectl get --raw /readyz` does; "+
				"another one is chosen by --context or --kubeconfig, more time given by --request-timeout", url)
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("error %v, want one that ends in %s", err, want)
			}
			if took := time.Since(started); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestAnInterruptEndsACommandThatWaits, though the discovery of the API takes no context.
func TestAnInterruptEndsACommandThatWaits(t *testing.T) {
	for line, made := range asking() {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			kubeconfig, url, accepted := fixture.SilentServer(t)
			ctx, interrupt := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- fixture.RunLine(ctx, made(), line, "--kubeconfig="+kubeconfig, "--request-timeout=0") }()
			select {
			case <-accepted:
			case err := <-ended:
				t.Fatalf("it asks nobody: %v", err)
			}
			interrupt()
			select {
			case err := <-ended:
				if want := fmt.Sprintf("interrupted before API server %q answered", url); err == nil || err.Error() != want {
					t.Errorf("error %v, want %s", err, want)
				}
			case <-time.After(connect.InterruptGrace + 10*time.Second):
				t.Error("it goes on after an interrupt")
			}
		})
	}
}

// TestSteeringOnARealAPIServer: the commands that steer need few rights and a plan, and say so.
func TestSteeringOnARealAPIServer(t *testing.T) {
	s := fixture.StartSite(t)
	for name, run := range map[string]func(*testing.T, *fixture.Site){
		"few rights do, and missing ones are named": namesRights,
		"without a plan there is nothing to steer":  needsAPlan,
	} {
		t.Run(name, func(t *testing.T) { run(t, s) })
	}
}

// TestCommandsThatSteerAreRegistered: each has a help text that teaches and examples that are commands.
func TestCommandsThatSteerAreRegistered(t *testing.T) {
	root := newRootCommand()
	for _, name := range []string{"freeze", "resume", "evacuate", "rollback", "rebase"} {
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

// works runs a command that must not fail.
func works(t *testing.T, kubeconfig, stdin string, args ...string) (out, notes string) {
	t.Helper()
	out, notes, failure := steer(t, kubeconfig, stdin, args...)
	if failure != "" {
		t.Fatalf("ballast %s: %s", strings.Join(args, " "), failure)
	}
	return out, notes
}

func namesRights(t *testing.T, s *fixture.Site) {
	s.Plans(t, fixture.Steered(nil), nil)
	s.Keeps(t, fixture.Steered(nil), fixture.Revision(14, fixture.Four))
	carol := s.Granted("carol", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"ballast-plan"}, Verbs: []string{"get", "patch"}})
	works(t, carol, "", "freeze", "--reason", "a sale")
	s.Stands(t, map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "a sale", plan.AnnotationPausedBy: "carol"})
	works(t, carol, "", "resume")
	_, notes := works(t, carol, "", "evacuate", "2", "--dry-run")
	fixture.Holds(t, notes, "note: without the right to list Secrets")
	if _, _, failure := steer(t, carol, "", "rollback", "14", "--yes"); !strings.Contains(failure, `"ballast-history"`) || !strings.Contains(failure, "\nthis needs get on that ConfigMap\nthe right to get configmaps is missing: `kubectl auth can-i get configmaps --namespace=argocd` says no; ") {
		t.Errorf("without the right to read the history: %q", failure)
	}
	dave := s.Granted("dave", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	works(t, dave, "", "rollback", "14", "--dry-run")
	for _, args := range [][]string{{"freeze"}, {"evacuate", "1"}, {"rollback", "14", "--yes"}} {
		if _, _, failure := steer(t, dave, "", args...); !strings.HasPrefix(failure, `annotating the plan ConfigMap "ballast-plan" in "argocd": `) || !strings.Contains(failure, "\nthis needs get and patch on that ConfigMap, and no other right to write\nthe right to patch configmaps is missing: `kubectl auth can-i patch configmaps --namespace=argocd` says no; ") {
			t.Errorf("%v without the right to patch: %q", args, failure)
		}
	}
	s.Stands(t, nil)
}

func needsAPlan(t *testing.T, s *fixture.Site) {
	for want, args := range map[string][]string{
		"reading the plan ConfigMap \"other\" in \"argocd\": configmaps \"other\" not found\nis ballast installed there? --namespace and --plan-configmap say where to look":                {"freeze", "--plan-configmap", "other"},
		"reading the plan ConfigMap \"ballast-plan\" in \"nowhere\": configmaps \"ballast-plan\" not found\nis ballast installed there? --namespace and --plan-configmap say where to look": {"evacuate", "-n", "nowhere"},
	} {
		if _, _, failure := steer(t, s.Alice, "", args...); failure != want {
			t.Errorf("%v: %q\nwant %q", args, failure, want)
		}
	}
	s.Plans(t, fixture.Steered(func(p *plan.Plan) { p.Mode = plan.Observe }), nil)
	s.Keeps(t, fixture.Steered(nil), fixture.Revision(14, fixture.Four))
	for _, args := range [][]string{{"evacuate", "1"}, {"rollback", "14", "--yes"}} {
		if _, _, failure := steer(t, s.Alice, "", args...); failure != "the mode is Observe, in which nothing moves: set mode: Enforce in the planner's configuration" {
			t.Errorf("%v: %q", args, failure)
		}
	}
	works(t, s.Alice, "", "freeze") // which holds whatever the mode is
}

// steer runs a command of ballast's as a person does, and returns what it wrote and its error's text.
func steer(t *testing.T, kubeconfig, stdin string, args ...string) (out, notes, failure string) {
	t.Helper()
	return fixture.AsPerson(t, newRootCommand(), kubeconfig, stdin, args...)
}

// TestTheShippedWebhookStarts holds the shipped Deployment's arguments against the command's flags.
func TestTheShippedWebhookStarts(t *testing.T) {
	text, err := os.ReadFile(fixture.Checkout(t, "manifests", "base", "webhook.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var d appsv1.Deployment
		if yaml.Unmarshal([]byte(doc), &d) != nil || d.Kind != "Deployment" {
			continue
		}
		args := d.Spec.Template.Spec.Containers[0].Args
		root := newRootCommand()
		cmd, rest, err := root.Find(args)
		if err != nil || cmd.Name() != "webhook" {
			t.Fatalf("%q runs %v: %v", args, cmd.Name(), err)
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%q: %v", rest, err)
		}
		return
	}
	t.Fatal("no Deployment is shipped")
}
