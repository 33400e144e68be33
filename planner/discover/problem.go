package discover

import (
	"fmt"
	"slices"
	"strings"

	"ballast/planner/plan"
	"ballast/planner/plural"
	"ballast/planner/printable"
)

// ProblemKind is what is wrong with a cluster Secret.
type ProblemKind string

// The kinds of problems; the set is closed.
const (
	MissingData       ProblemKind = "MissingData"       // the Secret has no data
	MissingServer     ProblemKind = "MissingServer"     // it names no server
	MissingName       ProblemKind = "MissingName"       // it names no cluster
	TooLong           ProblemKind = "TooLong"           // a name or URL is longer than any fleet has
	TooMany           ProblemKind = "TooMany"           // more Secrets than are planned; the rest stay where they are
	InvalidShard      ProblemKind = "InvalidShard"      // data.shard is no number
	NegativeShard     ProblemKind = "NegativeShard"     // data.shard is below 0: no replica takes it
	ShardOutOfRange   ProblemKind = "ShardOutOfRange"   // data.shard is at or above the replicas: replica 0 takes it
	ConflictingShards ProblemKind = "ConflictingShards" // Secrets of one server differ in data.shard
	InvalidPin        ProblemKind = "InvalidPin"        // the annotation pin is no replica
	PinFollows        ProblemKind = "PinFollows"        // the pin of a Secret whose server another one leads says nothing
	BeingDeleted      ProblemKind = "BeingDeleted"      // it is being deleted, so that nothing is written to it
	ConfigUnread      ProblemKind = "ConfigUnread"      // Argo CD cannot read data.config, and does nothing for the cluster
	SharedName        ProblemKind = "SharedName"        // two clusters have one name, by which Argo CD finds neither
	InClusterDisabled ProblemKind = "InClusterDisabled" // Argo CD's setting leaves the cluster it runs in out
)

// SecretProblem is one thing wrong with one Secret: what it is, what it does, and the mend.
type SecretProblem struct {
	Secret  string      `json:"secret"`
	Kind    ProblemKind `json:"kind"`
	Message string      `json:"message"`
}

// leftOut is the problem that keeps a Secret from being a cluster, if it has one.
func leftOut(s Secret) (SecretProblem, bool) {
	switch {
	case !s.HasData:
		return SecretProblem{s.Name, MissingData, fmt.Sprintf("Secret %q has no data and is left out: give it name, server and config, or delete it", s.Name)}, true
	case s.TooLong:
		return SecretProblem{s.Name, TooLong, fmt.Sprintf("Secret %q is left out: its data.name has more than %d bytes, or its data.server more than %d, which no cluster has: see who made it", s.Name, LongestCluster, LongestServer)}, true
	case plan.NormalizeServer(s.Server) == "":
		return SecretProblem{s.Name, MissingServer, fmt.Sprintf("Secret %q has no data.server and is left out: set the cluster's URL, or delete the Secret", s.Name)}, true
	}
	return SecretProblem{}, false
}

// tooMany is the problem of more Secrets than are planned; no single one has it.
func tooMany(in Input) SecretProblem {
	beside := 0
	for _, s := range in.Secrets {
		if s.Beside || s.Namesake {
			beside++
		}
	}
	also := ""
	if beside > 0 {
		also = fmt.Sprintf("; %s of the plan with the server or the data.name of one that is left out, which Argo CD may take instead, so that a few of them without an owner keep nothing waiting", plural.Of(beside, "Secret"))
	}
	return SecretProblem{"", TooMany, fmt.Sprintf("left out of the plan: %s beyond the %d that are planned, of which those come first that are known (there for an hour, and not beyond a quarter or ten new ones a day), then the oldest%s; "+
		"see who made so many (kubectl get secrets --sort-by=.metadata.creationTimestamp, with discover.selector), and delete those that no cluster needs",
		plural.Of(in.LeftOut, "cluster Secret"), MostSecrets, also)}
}

// flaws are the problems a cluster has by itself; it is planned for all the same.
func flaws(s Secret) []SecretProblem {
	var ps []SecretProblem
	add := func(kind ProblemKind, message string) {
		ps = append(ps, SecretProblem{s.Name, kind, fmt.Sprintf(message, s.Name)})
	}
	if s.Cluster == "" {
		add(MissingName, "Secret %q has no data.name, so the Secret's name stands for it: set data.name")
	}
	switch s.Shard.State {
	case ShardInvalid:
		add(InvalidShard, "data.shard of Secret %q is not a number, so Argo CD reads none: write digits only, or remove it")
	case ShardNegative:
		add(NegativeShard, "data.shard of Secret %q is negative, so no replica of Argo CD owns the cluster: write a number from 0, or remove it")
	case ShardTooLarge:
		add(ShardOutOfRange, "data.shard of Secret %q is above 999999, so Argo CD puts the cluster on shard 0: write a smaller number, or remove it")
	}
	if s.Pin == invalidPin {
		add(InvalidPin, "the annotation "+plan.AnnotationPin+" of Secret %q is not a replica's number and is ignored: write digits only, as in \"3\", without zeros before them")
	}
	if s.Unread {
		add(ConfigUnread, "data.config of Secret %q is not JSON as Argo CD reads it, so it does nothing for the cluster: give the credentials as its documentation has them (kubectl get secret, argocd cluster add)")
	}
	if s.Deleting {
		add(BeingDeleted, "Secret %q is being deleted and waits for its finalizers; its cluster is planned for until it is gone")
	}
	return ps
}

// sharedName is the problem of a data.name that others have, too.
func sharedName(s Secret, all []string) SecretProblem {
	other := all[0]
	if other == s.Name {
		other = all[1]
	}
	return SecretProblem{s.Name, SharedName, fmt.Sprintf("Secret %q has the data.name of %s, the first is %q: Argo CD does nothing for Applications that name their cluster so; give each a name of its own",
		s.Name, plural.Of(len(all)-1, "other Secret"), other)}
}

// conflict is the problem of a server URL whose Secrets ask for different shards.
func conflict(server string, clusters []Cluster, unit Unit) (SecretProblem, bool) {
	first := clusters[unit.Clusters[0]]
	if !slices.ContainsFunc(unit.Clusters, func(i int) bool { return clusters[i].Explicit != first.Explicit }) {
		return SecretProblem{}, false
	}
	const most = 10 // of one server; the mend behind them must be seen, too
	names := make([]string, 0, most+1)
	for _, i := range unit.Clusters[:min(len(unit.Clusters), most)] {
		names = append(names, fmt.Sprintf("%q", clusters[i].Shard.ID))
	}
	if rest := len(unit.Clusters) - most; rest > 0 {
		names = append(names, fmt.Sprintf("and %d more", rest))
	}
	return SecretProblem{first.Shard.ID, ConflictingShards, fmt.Sprintf(
		"Secrets %s share the server %s and differ in data.shard; Argo CD takes whichever it saw last: give all the same shard, or delete all but one and change the shard of that one afterwards (a pin and back): until then Argo CD has it on replica 0",
		strings.Join(names, ", "), printable.Server(server))}, true
}
