package poll

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"ballast/planner/discover"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// fleetOf makes clusters a, b, ... whose servers are the given ones; "-" before a server marks skip-reconcile.
func fleetOf(servers ...string) discover.Fleet {
	var secrets []discover.Secret
	for i, s := range servers {
		name := string(rune('a' + i))
		url, skip := strings.CutPrefix(s, "-")
		secrets = append(secrets, discover.Secret{UID: "uid-" + name, Name: name, Cluster: "the-" + name, Server: url, HasData: true, SkipReconcile: skip})
	}
	return discovered(secrets)
}

// bigFleet is n clusters with names as people give them.
func bigFleet(n int) discover.Fleet {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	secrets := make([]discover.Secret, n)
	for i := range secrets {
		name := fmt.Sprintf("cluster-%06x.team-%d.example.com-%d", r.Uint32()>>8, r.IntN(40), i)
		secrets[i] = discover.Secret{UID: fmt.Sprintf("%016x", r.Uint64()), Name: name, Cluster: name, Server: "https://" + name + ":6443", HasData: true}
	}
	return discovered(secrets)
}

func discovered(secrets []discover.Secret) discover.Fleet {
	fleet, _, err := discover.Discover(discover.Input{Secrets: secrets}, discover.Known{}, discover.Options{}, noon)
	if err != nil {
		panic(err)
	}
	return fleet
}
