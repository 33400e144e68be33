package objects

import (
	"io"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/say"
)

// PartOf is the label of everything that ballast's manifests install; its value is "ballast". Whoever writes an object
// can give it that label: it is ballast's by its name, too.
const PartOf = "app.kubernetes.io/part-of"

func isBallasts(o client.Object) bool { return o.GetLabels()[PartOf] == "ballast" }

// kindOf is an object's kind: the types of Kubernetes are named after theirs.
func kindOf(o client.Object) string {
	if u, is := o.(*unstructured.Unstructured); is {
		return u.GetKind()
	}
	return reflect.TypeOf(o).Elem().Name()
}

// made reports whether the manifests make an object of that kind by that name; of what has no namespace, by that name
// before the dot.
func made(o client.Object, name string) bool {
	return slices.Contains(namesMade(kindOf(o)), name)
}

// namesMade are the names that the manifests give to objects of a kind, which nobody's settings change but those of
// ServiceAccounts.
func namesMade(kind string) []string {
	switch kind {
	case "Deployment", "ServiceAccount", "NetworkPolicy":
		return []string{"ballast-planner", "ballast-webhook", "ballast-certs"}
	case "PodDisruptionBudget":
		return []string{"ballast-planner", "ballast-webhook"}
	case "Role", "RoleBinding":
		return []string{"ballast-planner", "ballast-planner-target", "ballast-planner-nudge", "ballast-webhook",
			"ballast-certs"}
	case "ClusterRole", "ClusterRoleBinding":
		return []string{"ballast-planner", "ballast-planner-nudge", "ballast-planner-nodes", "ballast-certs"}
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return []string{"ballast-plan", "ballast-planner", "ballast-pods", "ballast-floor",
			"ballast-certs", "ballast-certs-webhooks", "ballast-issuer"}
	case "Service":
		return []string{"ballast-webhook"}
	case "ConfigMap":
		return []string{"ballast-config", "ballast-settings", "ballast-dashboard"}
	case "Issuer":
		return []string{"ballast-root", "ballast-ca"}
	case "Certificate":
		return []string{"ballast-ca", "ballast-webhook"}
	case "MutatingWebhookConfiguration", "PriorityClass", "PodMonitor":
		return []string{"ballast"}
	case "PrometheusRule":
		return []string{"ballast", "ballast-recording"}
	}
	return nil
}

// watching is the name of all that manifests/watch makes. Who takes ballast out may well go on watching.
const watching = "ballast-watch"

// mostForeigners is how many are named: anybody may make any number of them.
const mostForeigners = 50

// Tell names what stays of others once, for who gave it ballast's label may have meant it to go.
func Tell(out io.Writer, foreign []client.Object) {
	for _, f := range foreign[:min(len(foreign), mostForeigners)] {
		why := "has ballast's label, and is none that ballast's manifests make"
		if f.GetName() == watching {
			why = "is of `ballast watch`, which is an installation of its own"
		}
		say.To(out, "  %s %q %s: it stays\n", kindOf(f), f.GetName(), why)
	}
	if more := len(foreign) - mostForeigners; more > 0 {
		say.To(out, "  and %d more\n", more)
	}
}

// foreign reports whether what has no namespace has ballast's label, and a name that no installation gives to it. What
// refers to other namespaces alone is for those who uninstall there.
func foreign(namespace string, o client.Object) bool {
	base := o.GetName()
	if dot := strings.LastIndexByte(base, '.'); dot >= 0 {
		base = base[:dot]
	}
	refers := namespacesOf(o)
	concerns := len(refers) == 0 || slices.Contains(refers, namespace)
	return isBallasts(o) && concerns && !made(o, base)
}
