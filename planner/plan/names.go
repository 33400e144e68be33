package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// The names of the contract: where the plan lives and which annotations speak of it.
const (
	Group      = "ballast.argoproj.io"
	APIVersion = Group + "/v1alpha1"
	Kind       = "Plan"

	// FieldManager is the name under which the planner's writes stand in managedFields.
	FieldManager = "ballast-planner"

	// KeyPlan and KeyPins are the plan ConfigMap's keys: ballast's, and people's.
	KeyPlan = "plan"
	KeyPins = "pins"

	// Annotations of the plan ConfigMap that ballast writes.
	AnnotationRevision  = Group + "/revision"   // the plan's number, which only grows, as long as plan, history or status is there to tell it
	AnnotationDecidedAt = Group + "/decided-at" // when the plan was written
	AnnotationDecidedBy = Group + "/decided-by" // the leader's pod
	AnnotationReason    = Group + "/reason"     // what changed, in words
	AnnotationStage     = Group + "/stage"      // of a rollout that is under way
	AnnotationBlocked   = Group + "/blocked"    // changes that are wanted, and why they wait; absent while none does
	AnnotationDigest    = Group + "/digest"     // sha256 of data.plan, by which a webhook tells a broken edit
	AnnotationMAC       = Group + "/mac"        // proves to the next leader that a planner wrote data.plan

	// Annotations of the plan ConfigMap that people write.
	AnnotationPaused          = Group + "/paused"           // "true": ballast begins nothing by itself; what people ask for, what follows an autoscaler, and enforcement go on
	AnnotationEnforcement     = Group + "/enforcement"      // "off": every write passes but data.plan's and what policies refuse; the planner writes nothing of Argo CD's, once replicas that rollout.x0y stopped are back
	AnnotationAcceptDiscovery = Group + "/accept-discovery" // the number of clusters that is right although it shrank
	AnnotationPausedReason    = Group + "/paused-reason"    // why, for people
	AnnotationPausedBy        = Group + "/paused-by"        // who, for people
	AnnotationCordon          = Group + "/cordon"           // replicas to empty, each until a time: "3=2026-11-20T17:00:00Z"

	// Annotations of the plan ConfigMap that one writes and the other takes away.
	AnnotationRollback = Group + "/rollback-to" // the revision of a kept plan to go back to: a person writes it, the leader takes it away once it is done or refused
	AnnotationRebase   = Group + "/rebase"      // "true": measure loads anew against what the fleet makes now; "undo": as before that; a person writes it, the leader takes it away once it is done or refused
	AnnotationTripped  = Group + "/tripped"     // why ballast stopped itself: the leader writes it, a person takes it away

	// Annotations of cluster Secrets and the workload that people write.
	AnnotationUnmanaged = Group + "/unmanaged" // "true": the object opted out, and ballast neither holds nor writes it, but for a write that makes its shard no replica's beside another Secret of its server
	AnnotationPin       = Group + "/pin"       // of a cluster Secret: the replica that it is to have; data.pins goes before it

	// EnvReplicas is what an application-controller takes for the number of replicas; it is read once, at its start.
	EnvReplicas = "ARGOCD_CONTROLLER_REPLICAS"

	// SecretTypeLabel and SecretTypeCluster mark Argo CD's cluster Secrets.
	SecretTypeLabel   = "argocd.argoproj.io/secret-type"
	SecretTypeCluster = "cluster"

	// ShardKey is the key of a cluster Secret's data that names its replica.
	ShardKey = "shard"
)

// MaxNoteBytes bounds the values of people's annotations that are lists: nobody cordons more than some hundred
// replicas, and an annotation may have 256 KiB.
const MaxNoteBytes = 16 << 10

// PlannersAnnotations are the annotations of the plan ConfigMap that only the planner writes.
func PlannersAnnotations() []string {
	return []string{AnnotationDecidedAt, AnnotationDecidedBy, AnnotationDigest, AnnotationMAC, AnnotationReason,
		AnnotationRevision, AnnotationStage}
}

// Digest is what stands in AnnotationDigest: the sha256 of data.plan in hex.
func Digest(planText string) string {
	sum := sha256.Sum256([]byte(planText))
	return hex.EncodeToString(sum[:])
}

// NormalizeServer is the form in which two server URLs are one cluster to Argo CD: without trailing slashes.
func NormalizeServer(server string) string { return strings.TrimRight(server, "/") }

// ServerHashLetters is the length of a row's server hash: 26^7 is 8e9, so that among 5,000 clusters two share a hash
// with a chance of 0.2 %. Anybody can find a URL that clashes, so that nothing is decided by it where the Secrets are
// there: a clash only means that a new cluster starts on a known cluster's replica.
const ServerHashLetters = 7

// ServerHash is the short hash of a server URL that rows carry. It has letters only, so that YAML never reads a number.
func ServerHash(server string) string {
	sum := sha256.Sum256([]byte(NormalizeServer(server)))
	var out [ServerHashLetters]byte
	for i := range out {
		out[i] = 'a' + sum[i]%26
	}
	return string(out[:])
}

// StopHeld is how long a stage that stops every replica holds them at 0. The planner gives up a stop after 5 minutes,
// and each stage has a since of its own, so that one which lasts longer has hardly a planner that ends it (but for
// Assigning under a longer rollout.stageTimeout): whoever keeps the planners from leading must not keep a fleet
// stopped, nor an administrator from bringing it back.
const StopHeld = 15 * time.Minute

// StopLapsed reports whether what has been stopped since a time is held at 0 no longer. A time in the future counts as
// now.
func StopLapsed(since, now time.Time) bool { return now.Sub(since) > StopHeld }
