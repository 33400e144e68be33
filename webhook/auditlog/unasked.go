package auditlog

import (
	"slices"
	"strings"
)

// The names that ballast's own objects begin with: ConfigMaps, Secrets, webhook configurations, admission policies and
// bindings; and those that tell who may write them.
const (
	ownPrefix   = "ballast"
	configName  = "ballast-config"
	historyName = "ballast-history"
	keyName     = "ballast-plan-key"
	planName    = "ballast-plan"
	statusName  = "ballast-plan-status"
)

// unasked is the kind of an object that no webhook is asked about, in an event that concerns ballast all the same;
// empty for none. Whether a Secret was a cluster's does not stand in the log.
func (e event) unasked(p planners) string {
	o, deletes := e.ObjectRef, e.deletes()
	changes := deletes || e.Verb == "create" || e.Verb == "update" || e.Verb == "patch"
	own := e.Verb == verbDeleteAll || isOwn(o.Name)
	switch o.APIGroup + "/" + o.Resource + "/" + o.Subresource {
	case "/secrets/":
		stamps := !own && p.named(e) // under components/fail-closed nobody asks about what comes by a planner's name
		concerns := stamps || own && !p.keep(e, keyName)
		return when(deletes || changes && (concerns || e.putsToken()), kindSecret)
	case "/configmaps/":
		// The plan's are asked about; what ballast remembers and how it is configured are not.
		return when(deletes || changes && own && !p.keep(e, planName, historyName, statusName), kindConfigMap)
	case "apps/statefulsets/":
		return when(deletes, kindStatefulSet)
	case "apps/deployments/":
		return when(deletes, kindDeployment)
	case "apps/statefulsets/status":
		return when(changes && !e.keepsStatus(), kindStatefulSet)
	case "apps/deployments/status":
		return when(changes && !e.keepsStatus(), kindDeployment)
	case "/serviceaccounts/token":
		return when(changes && e.makesToken(p), kindAccount)
	case "/pods/resize":
		return when(changes, kindPod)
	case "admissionregistration.k8s.io/mutatingwebhookconfigurations/":
		return when(changes && own, "mutatingwebhookconfiguration")
	case "admissionregistration.k8s.io/validatingadmissionpolicies/":
		return when(changes && own, "validatingadmissionpolicy")
	case "admissionregistration.k8s.io/validatingadmissionpolicybindings/":
		return when(changes && own, "validatingadmissionpolicybinding")
	}
	return ""
}

// makesToken reports whether somebody has a token of a planner's, or another of ballast's accounts made, who is not the
// kubelet that its pods get theirs from.
func (e event) makesToken(p planners) bool {
	kubelet := e.ImpersonatedUser == nil && strings.HasPrefix(e.User.Username, "system:node:")
	ours := isOwn(e.ObjectRef.Name) || p.are("system:serviceaccount:"+e.ObjectRef.Namespace+":"+e.ObjectRef.Name,
		e.ObjectRef.Namespace)
	return ours && !kubelet
}

// controllerManager is who puts a ServiceAccount's token into a Secret that somebody made for it.
const controllerManager = "system:kube-controller-manager"

// putsToken reports whether Kubernetes puts a token into a Secret of type kubernetes.io/service-account-token. At level
// Metadata no type stands in the log, nor whose account it is, and kube-controller-manager writes into no other
// Secrets.
func (e event) putsToken() bool {
	return e.ImpersonatedUser == nil && e.User.Username == controllerManager &&
		(e.Verb == "update" || e.Verb == "patch")
}

// keepsStatus reports whether a controller of Kubernetes wrote, whose work a workload's status is. The API server lets
// whoever else writes it change the annotations as well, the one that opts out among them.
func (e event) keepsStatus() bool {
	if e.ImpersonatedUser != nil {
		return false
	}
	switch e.User.Username {
	case controllerManager, "system:serviceaccount:kube-system:statefulset-controller",
		"system:serviceaccount:kube-system:deployment-controller":
		return true
	}
	return false
}

func isOwn(name string) bool {
	rest, ok := strings.CutPrefix(name, ownPrefix)
	return ok && (rest == "" || rest[0] == '-' || rest[0] == '.')
}

func when(it bool, kind string) string {
	if it {
		return kind
	}
	return ""
}

// planners are the users of planners; none stands for the one that is shipped.
type planners []string

// keep reports whether an event is a planner's own upkeep of one of these objects: it writes its history every few
// minutes. The shipped planner is one account of the object's own namespace; no part of a name is believed.
func (p planners) keep(e event, names ...string) bool {
	return slices.Contains(names, e.ObjectRef.Name) && p.wrote(e)
}

// wrote reports whether an event is a planner's own.
func (p planners) wrote(e event) bool { return e.ImpersonatedUser == nil && p.named(e) }

// named reports whether the API server took who wrote for a planner: whoever impersonates one counts.
func (p planners) named(e event) bool {
	user := e.User
	if e.ImpersonatedUser != nil {
		user = *e.ImpersonatedUser
	}
	return p.are(user.Username, e.ObjectRef.Namespace)
}

// are reports whether a user is a planner of that namespace.
func (p planners) are(user, namespace string) bool {
	if len(p) == 0 {
		return user == "system:serviceaccount:"+namespace+":ballast-planner"
	}
	return slices.Contains(p, user)
}

// among reports whether a line may name a planner, as who wrote or as whom somebody impersonated.
func (p planners) among(has func(string) bool) bool {
	if len(p) == 0 {
		return has(`:ballast-planner"`)
	}
	return slices.ContainsFunc(p, func(user string) bool { return has(`"` + user + `"`) })
}

// maxSites bounds what is remembered of where ballast is at work.
const maxSites = 256

// sites are where ballast is at work, as far as the log has told: the namespaces of its objects, and their names.
type sites struct{ namespaces, objects []string }

// learn takes what a webhook of ballast's was asked about.
func (s *sites) learn(w Write) {
	if len(s.namespaces) < maxSites && !slices.Contains(s.namespaces, w.Namespace) {
		s.namespaces = append(s.namespaces, w.Namespace)
	}
	if w.Kind == kindSecret || w.Kind == kindPod || len(s.objects) >= maxSites { // there are many, and they are known by what they are of
		return
	}
	if at := w.Namespace + "/" + w.Object(); !slices.Contains(s.objects, at) {
		s.objects = append(s.objects, at)
	}
}

// concern reports whether a write that no webhook was asked about is ballast's concern.
func (s *sites) concern(w Write) bool {
	here := w.Namespace == "" || slices.Contains(s.namespaces, w.Namespace)
	switch {
	case w.Verb == verbDeleteAll:
		return here
	case w.Kind == kindSecret:
		return here || isOwn(w.Name)
	case w.Kind == kindConfigMap:
		return strings.HasPrefix(w.Name, ownPrefix) || slices.Contains(s.objects, w.Namespace+"/"+w.Object())
	case w.Kind == kindPod:
		return strings.Contains(w.Name, "application-controller-") || s.podOf(w)
	case w.Kind == kindStatefulSet, w.Kind == kindDeployment:
		return strings.HasSuffix(w.Name, "application-controller") ||
			slices.Contains(s.objects, w.Namespace+"/"+w.Object())
	}
	return true
}

// podOf reports whether a pod is called like one of a workload's that the log told of.
func (s *sites) podOf(w Write) bool {
	return slices.ContainsFunc(s.objects, func(object string) bool {
		rest, here := strings.CutPrefix(object, w.Namespace+"/")
		kind, name, _ := strings.Cut(rest, "/")
		return here && (kind == kindStatefulSet || kind == kindDeployment) && strings.HasPrefix(w.Name, name+"-")
	})
}
