package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"ballast/e2e/demo/stage"
	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// handEdits is step 3: three ways to write by hand against the plan.
func (s *story) handEdits(ctx context.Context) error {
	p, err := s.Plan(ctx)
	if err != nil {
		return err
	}
	for _, edit := range []func(context.Context, *site.Plan) error{s.editShard, s.scale, s.applyEnv} {
		if err := edit(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) editShard(ctx context.Context, p *site.Plan) error {
	const cluster = fleet.Giant
	wrong := (p.Clusters[cluster].Replica + 1) % p.Replicas
	warnings, err := s.Kubectl(ctx, "patch", "secret", cluster, "--type=merge", "-p",
		fmt.Sprintf(`{"stringData":{"shard":"%d"}}`, wrong))
	if err != nil {
		return err
	}
	if err := s.warned(warnings, "shard"); err != nil {
		return err
	}
	return s.Holds(ctx, stage.AtOnce, fmt.Sprintf("%s is still on replica %d", cluster, p.Clusters[cluster].Replica),
		s.nowAgrees(p))
}

func (s *story) scale(ctx context.Context, p *site.Plan) error {
	warnings, err := s.Kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=1")
	if err != nil {
		return err
	}
	if err := s.warned(warnings, "replicas"); err != nil {
		return err
	}
	return s.Holds(ctx, stage.AtOnce, fmt.Sprintf("there are still %d replicas", p.Replicas), s.nowAgrees(p))
}

// applyEnv applies the manifest as it was first applied, with another number of replicas and in its env.
func (s *story) applyEnv(ctx context.Context, p *site.Plan) error {
	manifest := s.Site.Fleet.StatefulSet()
	for i, env := range manifest.Spec.Template.Spec.Containers[0].Env {
		if env.Name == fleet.ReplicasEnv {
			manifest.Spec.Template.Spec.Containers[0].Env[i].Value = "1"
		}
	}
	if err := s.File("argocd.yaml", manifest); err != nil {
		return err
	}
	before, err := s.Site.StatefulSet(ctx)
	if err != nil {
		return err
	}
	s.Out.Print("", "  argocd.yaml has replicas: "+strconv.Itoa(s.Site.Fleet.Replicas)+" and "+fleet.ReplicasEnv+": \"1\"")
	warnings, err := s.Kubectl(ctx, "apply", "-f", "argocd.yaml")
	if err != nil {
		return err
	}
	if err := s.warned(warnings, fleet.ReplicasEnv); err != nil {
		return err
	}
	if err := s.Holds(ctx, stage.AtOnce, fmt.Sprintf("%s is still %d", fleet.ReplicasEnv, p.ControllerReplicas), s.nowAgrees(p)); err != nil {
		return err
	}
	return s.Holds(ctx, stage.AtOnce, "no pod was restarted", func(ctx context.Context) error {
		after, err := s.Site.StatefulSet(ctx)
		if err != nil {
			return err
		}
		return stage.Equal("the template's revision", before.Status.UpdateRevision, after.Status.UpdateRevision)
	})
}

func (s *story) nowAgrees(p *site.Plan) func(context.Context) error {
	return func(ctx context.Context) error { return s.Agrees(ctx, p) }
}

// warned checks that the person was told, in one short line that names what was put back.
func (s *story) warned(warnings []string, of string) error {
	const longest = 120 // what kubectl and the API server show of a warning
	i := slices.IndexFunc(warnings, func(w string) bool { return strings.Contains(w, of) })
	if i < 0 {
		return fmt.Errorf("kubectl showed the warnings %q, want one that names %q", warnings, of)
	}
	if n := len(warnings[i]); n > longest {
		return fmt.Errorf("the warning has %d characters, want at most %d", n, longest)
	}
	s.Passed("alice is told so at once")
	return nil
}

// pin is step 4.
func (s *story) pin(ctx context.Context) error {
	p, err := s.Plan(ctx)
	if err != nil {
		return err
	}
	const cluster = "stage-us-1"
	target := (p.Clusters[cluster].Replica + 1) % p.Replicas
	if _, err := s.Kubectl(ctx, "patch", "configmap", site.PlanConfigMap, "--type=merge", "-p",
		fmt.Sprintf(`{"data":{"pins":"%s: %d   # its neighbours are noisy\n"}}`, cluster, target)); err != nil {
		return err
	}
	shardIs := func(ctx context.Context) error {
		shards, err := s.Site.Shards(ctx)
		if err != nil {
			return err
		}
		return stage.Equal("the shard of "+cluster, strconv.Itoa(target), shards[cluster])
	}
	if err := s.Holds(ctx, 15*time.Second, fmt.Sprintf("%s moves from replica %d to %d", cluster, p.Clusters[cluster].Replica, target), shardIs); err != nil {
		return err
	}
	warnings, err := s.Kubectl(ctx, "patch", "secret", cluster, "--type=merge", "-p",
		fmt.Sprintf(`{"stringData":{"shard":"%d"}}`, p.Clusters[cluster].Replica))
	if err != nil {
		return err
	}
	if err := s.warned(warnings, "shard"); err != nil {
		return err
	}
	if err := s.Holds(ctx, stage.AtOnce, "and it stays", shardIs); err != nil {
		return err
	}
	if err := s.badPin(ctx); err != nil {
		return err
	}
	if err := s.Holds(ctx, 60*time.Second, "the planner has measured again and balanced the others around it", s.settledSince(time.Now())); err != nil {
		return err
	}
	return s.Holds(ctx, stage.AtOnce, fmt.Sprintf("and %s is still on replica %d", cluster, target), shardIs)
}

// badPin shows the only write that ballast ever refuses.
func (s *story) badPin(ctx context.Context) error {
	before, err := s.Plan(ctx)
	if err != nil {
		return err
	}
	_, err = s.Kubectl(ctx, "patch", "configmap", site.PlanConfigMap, "--type=merge", "-p",
		`{"data":{"pins":"prod-eu-1: 99\n"}}`)
	if err == nil {
		return fmt.Errorf("a pin to replica 99 was accepted, want it refused: maxReplicas is %d", before.MaxReplicas)
	}
	return s.Holds(ctx, stage.AtOnce, "a pin that cannot be is refused with its line and the mend; the pins stay", func(ctx context.Context) error {
		after, err := s.Plan(ctx)
		if err != nil {
			return err
		}
		return stage.Equal("data.pins", before.Pins, after.Pins)
	})
}

// newClusters is step 5.
func (s *story) newClusters(ctx context.Context) error {
	names := []string{"edge-in-2", "prod-mx-2", "stage-sa-2"}
	var secrets []runtime.Object
	for _, name := range names {
		secrets = append(secrets, s.Site.Fleet.Secret(s.Site.Fleet.Another(name)))
	}
	if err := s.File("new-clusters.yaml", secrets...); err != nil {
		return err
	}
	s.Out.Print("", "  new-clusters.yaml has "+strings.Join(names, ", ")+"; no shard in any of them")
	if _, err := s.Kubectl(ctx, "create", "-f", "new-clusters.yaml"); err != nil {
		return err
	}
	shards, err := s.Site.Shards(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"CLUSTER", "SHARD"}}
	for _, name := range names {
		if shards[name] == "" {
			return fmt.Errorf("secret %q was created without a shard, want one from its first moment", name)
		}
		rows = append(rows, []string{name, shards[name]})
	}
	s.Out.Table(rows)
	s.Passed("each has a shard from its first moment")
	if err := s.Holds(ctx, 40*time.Second, "the planner takes them into the plan where they are", func(ctx context.Context) error {
		p, err := s.Plan(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			if row, planned := p.Clusters[name]; !planned || strconv.Itoa(row.Replica) != shards[name] {
				return fmt.Errorf("the plan has %q on replica %d (in the plan: %t), want %s", name, row.Replica,
					planned, shards[name])
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.Holds(ctx, 60*time.Second, "the planner has measured them and levelled the fleet", s.settledSince(time.Now())); err != nil {
		return err
	}
	s.Bars()
	return s.Holds(ctx, 10*time.Second, "every cluster has exactly one owner", func(context.Context) error {
		return stage.Equal("clusters with exactly one owner", len(s.Site.Fleet.Clusters)+len(names)+1, s.OwnedOnce())
	})
}

func (s *story) settledSince(t time.Time) func(context.Context) error {
	return func(ctx context.Context) error { return s.Site.Settled(ctx, t) }
}
