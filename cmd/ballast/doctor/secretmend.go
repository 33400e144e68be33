package doctor

import (
	"ballast/cmd/ballast/doctor/look"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// secretMend is the command that mends a problem of the Secrets that have it. None of them prints what a Secret
// has in its data; an editor shows it.
func secretMend(s *look.Seen, kind discover.ProblemKind, names []string) string {
	of := func(command string) string { return s.Kubectl(command, names) }
	set := func(key, value string) string {
		return of(`patch secret NAME --type=merge -p '{"stringData":{"` + key + `":"` + value + `"}}'`)
	}
	switch kind {
	case discover.MissingServer:
		return set("server", "https://HOST:PORT")
	case discover.MissingName, discover.SharedName:
		return set("name", "OTHER")
	case discover.MissingData:
		return "argocd cluster add CONTEXT makes one that is whole; then " + of("delete secret NAME")
	case discover.TooLong:
		return "who made it: " + of(`get secret NAME -o jsonpath='{.metadata.managedFields[*].manager}'`) + "; then " +
			of("delete secret NAME")
	case discover.TooMany:
		return "plan some of them: discover: {selector: {matchLabels: {KEY: VALUE}}} in the configuration; which there are: " +
			s.Kubectl("get secrets -l "+plan.SecretTypeLabel+"="+plan.SecretTypeCluster+" --show-labels", nil)
	case discover.InvalidShard, discover.NegativeShard, discover.ShardOutOfRange:
		return "adoption writes what is so; by hand: " + set("shard", "0")
	case discover.ConflictingShards:
		return "adoption writes what is so; by hand the same N into each Secret NAME of that server: " +
			s.Kubectl(`patch secret NAME --type=merge -p '{"stringData":{"shard":"N"}}'`, nil)
	case discover.InvalidPin, discover.PinFollows:
		return of("annotate secret NAME " + plan.AnnotationPin + "-")
	case discover.BeingDeleted:
		return "who holds it: " + of("get secret NAME -o jsonpath='{.metadata.finalizers}'")
	case discover.ConfigUnread:
		return "write data.config as JSON again: argocd cluster add CONTEXT --upsert, or " + of("edit secret NAME")
	case discover.InClusterDisabled:
		return s.Kubectl(`patch configmap argocd-cm --type=merge -p '{"data":{"cluster.inClusterEnabled":"true"}}'`,
			nil) +
			"; or, where that is meant: " + of("delete secret NAME")
	}
	return s.Kubectl("describe secret NAME", names)
}
