package fleet

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNewIsTheSameFleetForTheSameOptions(t *testing.T) {
	want := []Cluster{
		{"dev-ap-1", "https://dev-ap-1.clusters.example.com:6443", Work{2073, 305, 88, 8}},
		{"dev-eu-1", "https://dev-eu-1.clusters.example.com:6443/", Work{3333, 661, 165, 16}},
		{"prod-ap-1", "https://prod-ap-1.clusters.example.com:6443", Work{2116, 365, 94, 9}},
		{"prod-us-1", "https://prod-us-1.clusters.example.com:6443", Work{3814, 644, 135, 14}},
		{"stage-ap-1", "https://stage-ap-1.clusters.example.com:6443", Work{}},
	}
	got := New(Options{Seed: 1, Clusters: 9})
	if diff := cmp.Diff(New(Options{Seed: 1, Clusters: 9}).Clusters, got.Clusters); diff != "" {
		t.Errorf("a second fleet differs (-first +second):\n%s", diff)
	}
	var some []Cluster
	for _, c := range got.Clusters {
		for _, w := range want {
			if w.Name == c.Name {
				some = append(some, c)
			}
		}
	}
	if diff := cmp.Diff(want, some); diff != "" {
		t.Errorf("clusters of seed 1 (-want +got):\n%s", diff)
	}
}

func TestFleetShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(9, 60).Draw(t, "clusters")
		f := New(Options{Seed: rapid.Uint64().Draw(t, "seed"), Clusters: n})
		if len(f.Clusters) != n {
			t.Fatalf("%d clusters, want %d", len(f.Clusters), n)
		}
		for _, c := range f.Clusters {
			if c.Name == Idle != (c.Work == Work{}) {
				t.Errorf("cluster %q has the work %+v; only %q is idle", c.Name, c.Work, Idle)
			}
		}
		total, giant := f.InCluster.Work, f.Of("https://prod-us-1.clusters.example.com:6443").Work
		for _, c := range f.Clusters {
			total = total.Total(c.Work)
		}
		if share := float64(giant.Objects) / float64(total.Objects); share < 0.15 || share > 0.35 { // spread both ways, and the in-cluster
			t.Errorf("the giant has %.2f of the objects, want about %.2f", share, giantShare)
		}
	})
}

func TestAClusterMoreChangesNoOther(t *testing.T) {
	small, large := New(Options{Seed: 7, Clusters: 20}), New(Options{Seed: 7, Clusters: 21})
	got := map[string]Work{}
	for _, c := range large.Clusters {
		got[c.Name] = c.Work
	}
	for _, c := range small.Clusters {
		if c.Name == Giant {
			continue // it is a share of all others
		}
		if diff := cmp.Diff(c.Work, got[c.Name]); diff != "" {
			t.Errorf("cluster %q (-of 20 +of 21):\n%s", c.Name, diff)
		}
	}
	if diff := cmp.Diff(large.Another("edge-sa-9"), small.Another("edge-sa-9")); diff != "" {
		t.Errorf("a cluster added to either fleet differs:\n%s", diff)
	}
	if diff := cmp.Diff(small.Another("edge-sa-9").Work, small.Of("https://edge-sa-9.clusters.example.com:6443/").Work); diff != "" {
		t.Errorf("a cluster seen by its server differs from the one that was added:\n%s", diff)
	}
}

func TestSecretIsAsArgoCDMakesIt(t *testing.T) {
	f := New(Options{Seed: 1})
	s := f.Secret(f.Another("prod-eu-9"))
	if s.Labels[SecretTypeLabel] != "cluster" || s.Namespace != "argocd" || s.Name != "prod-eu-9" {
		t.Errorf("metadata %+v", s.ObjectMeta)
	}
	if _, ok := s.Data["shard"]; ok {
		t.Error("the Secret has a shard already")
	}
	want := map[string]string{
		"name":   "prod-eu-9",
		"server": "https://prod-eu-9.clusters.example.com:6443",
		"config": `{"bearerToken":"canary-bearer-token-prod-eu-9","tlsClientConfig":{"insecure":false,"caData":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"}}`,
	}
	got := map[string]string{}
	for k, v := range s.Data {
		got[k] = string(v)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestStatefulSetIsUpstreams(t *testing.T) {
	sts := New(Options{Replicas: 3}).StatefulSet()
	c := sts.Spec.Template.Spec.Containers[0]
	if *sts.Spec.Replicas != 3 || c.Name != "argocd-application-controller" || c.Env[1].Name != ReplicasEnv || c.Env[1].Value != "3" {
		t.Errorf("replicas %d, container %q, env %+v", *sts.Spec.Replicas, c.Name, c.Env)
	}
	if !bytes.Contains([]byte(c.Args[0]), []byte("argocd-application-controller")) {
		t.Errorf("the container runs %q", c.Args)
	}
}
