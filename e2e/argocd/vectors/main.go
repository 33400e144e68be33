// Command vectors asks Argo CD's own code where it reconciles the clusters of seeded fleets, and prints the answers as
// JSON. planner/sharding/testdata/owners.json.gz holds its output; README.md beside that file says how to write it
// anew.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/argoproj/argo-cd/v3/controller/sharding"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/db"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const maxReplicas = 9

// secret is a cluster Secret of a fleet; Shard is data.shard's raw text, nil where there is none.
type secret struct {
	UID    string  `json:"uid"`
	Name   string  `json:"name"`
	Server string  `json:"server"`
	Shard  *string `json:"shard,omitempty"`
	Skip   bool    `json:"skip,omitempty"`
}

// fleet is a case. Owners[algorithm][replicas-1] are the owners of the Secrets in their order, and of the implicit
// in-cluster after them.
type fleet struct {
	Seed     uint64             `json:"seed"`
	Secrets  []secret           `json:"secrets"`
	Implicit bool               `json:"implicit"`
	Apps     map[string]int     `json:"apps,omitempty"`
	Owners   map[string][][]int `json:"owners"`
}

func main() {
	logrus.SetOutput(io.Discard)
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func write(w io.Writer) error {
	var fleets []fleet
	for seed, size := range []int{1, 1, 2, 3, 4, 5, 7, 9, 12, 16, 24, 24, 37, 50, 77, 100, 100, 150, 199, 200, 200} {
		f := newFleet(uint64(seed), size)
		if err := f.ask(); err != nil {
			return err
		}
		fleets = append(fleets, f)
	}
	return json.NewEncoder(w).Encode(fleets)
}

// newFleet draws a fleet: every third has Applications, every fourth an in-cluster Secret, every fourth no in-cluster.
func newFleet(seed uint64, size int) fleet {
	r := rand.New(rand.NewPCG(seed, 0xba11a57))
	f := fleet{Seed: seed, Implicit: seed%4 < 2}
	for i := range size {
		s := secret{UID: uid(r), Name: fmt.Sprintf("cluster-%03d", i),
			Server: fmt.Sprintf("https://k%03d.example.com:6443", i)}
		if seed%4 == 2 && i == size/2 {
			s.Server = v1alpha1.KubernetesInternalAPIServerAddr
		}
		if i%5 == 4 {
			s.Server += "/"
		}
		if seed%2 == 1 {
			s.Shard = shard(r)
		}
		s.Skip = r.IntN(20) == 0
		f.Secrets = append(f.Secrets, s)
	}
	if seed%3 != 0 {
		return f
	}
	f.Apps = map[string]int{}
	for _, c := range f.clusters() {
		if n := int(r.ExpFloat64() * 12); n > 0 {
			f.Apps[c.Server] = n
		}
	}
	return f
}

func uid(r *rand.Rand) string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.Uint32()>>16, r.Uint32()>>20, r.Uint32()>>20,
		r.Uint64()>>16)
}

// shard draws what stands in data.shard: mostly nothing or a number, sometimes what people write by mistake.
func shard(r *rand.Rand) *string {
	odd := []string{"", "abc", " 1", "1.0", "0x1", "-1", "+1", "007", "-0", "1000000", "4294967296",
		"99999999999999999999"}
	var s string
	switch n := r.IntN(10); {
	case n < 6:
		return nil
	case n < 9:
		s = fmt.Sprint(r.IntN(12))
	default:
		s = odd[r.IntN(len(odd))]
	}
	return &s
}

// clusters are the fleet's clusters as Argo CD's own reader of Secrets makes them, and its local cluster.
func (f *fleet) clusters() []v1alpha1.Cluster {
	var cs []v1alpha1.Cluster
	for _, s := range f.Secrets {
		object := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: s.Name, UID: types.UID(s.UID)},
			Data:       map[string][]byte{"name": []byte(s.Name), "server": []byte(s.Server)},
		}
		if s.Shard != nil {
			object.Data["shard"] = []byte(*s.Shard)
		}
		c, err := db.SecretToCluster(object)
		if err != nil {
			panic(err) // only data.config can be unreadable, and there is none
		}
		cs = append(cs, *c)
	}
	if f.Implicit {
		cs = append(cs, v1alpha1.Cluster{Name: "in-cluster", Server: v1alpha1.KubernetesInternalAPIServerAddr})
	}
	return cs
}

func (f *fleet) applications() *v1alpha1.ApplicationList {
	list := &v1alpha1.ApplicationList{}
	for server, n := range f.Apps {
		for i := range n {
			a := v1alpha1.Application{}
			a.Name = fmt.Sprintf("%s-%d", server, i)
			a.Spec.Destination.Server = server
			list.Items = append(list.Items, a)
		}
	}
	return list
}

func (f *fleet) ask() error {
	f.Owners = map[string][][]int{}
	clusters, apps := f.clusters(), f.applications()
	for _, algorithm := range []string{"legacy", "round-robin", "consistent-hashing"} {
		for replicas := 1; replicas <= maxReplicas; replicas++ {
			cache := sharding.NewClusterSharding(nil, 0, replicas, algorithm)
			cache.Init(&v1alpha1.ClusterList{Items: clusters}, apps)
			distribution := cache.GetDistribution()
			owners := make([]int, len(clusters))
			for i, c := range clusters {
				owner, found := distribution[c.Server]
				if !found {
					return fmt.Errorf("asking for the owner of %q: Argo CD does not know it", c.Server)
				}
				owners[i] = owner
			}
			f.Owners[algorithm] = append(f.Owners[algorithm], owners)
		}
	}
	return nil
}
