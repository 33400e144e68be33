package nudge

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Argo CD's names.
const (
	annotationRefresh = "argocd.argoproj.io/refresh" // normal or hard; Argo CD removes it when it has done so
	refreshNormal     = "normal"
	refreshHard       = "hard"
)

var applicationKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}

// Application is what is kept of one: where it is, where it deploys to, and what makes another the better choice.
type Application struct {
	Namespace, Name string
	Server          string // spec.destination.server
	Cluster         string // spec.destination.name: the cluster's in Argo CD
	Refresh         string // the refresh that is asked for and was not yet made: normal, hard or empty
	Deleting        bool
	Invalid         bool // Argo CD found fault with the spec or its project, and goes no further: not to the cluster, either
	Skipped         bool // Argo CD passes over it
}

// rank is how bad a choice it is; 0 is without fault.
func (a Application) rank() int {
	rank := 0
	if a.Refresh != "" {
		rank++
	}
	if a.Deleting {
		rank += 2
	}
	if a.Invalid {
		rank += 4
	}
	return rank
}

// compare puts the best choice first, in a total order.
func (a Application) compare(b Application) int {
	return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// destination is a cluster as an Application names it: by its server, or by its name in Argo CD.
type destination struct{ server, name string }

// destination is none for an Application that Argo CD passes over, and for one that names no cluster or names it twice,
// which Argo CD refuses.
func (a Application) destination() (destination, bool) {
	if a.Skipped || a.Server != "" && a.Cluster != "" {
		return destination{}, false
	}
	d := destination{server: a.Server, name: a.Cluster} // as it is spelled: Argo CD finds no cluster by a URL with a slash behind it
	return d, d != destination{}
}

func (a Application) serves(server, name string) bool {
	d, found := a.destination()
	return found && slices.Contains(destinations(server, name), d)
}

// destinations are the ways to name a cluster.
func destinations(server, name string) []destination {
	var ds []destination
	if s := trimServer(server); s != "" {
		ds = append(ds, destination{server: s})
	}
	if name != "" {
		ds = append(ds, destination{name: name})
	}
	return ds
}

// trimServer is a Secret's URL as Argo CD keys clusters by it.
func trimServer(server string) string { return strings.TrimRight(server, "/") }

// index has the Applications of each destination, best choice first.
type index map[destination][]Application

func newIndex(all []Application) index {
	x := index{}
	for _, a := range all {
		if d, found := a.destination(); found {
			x[d] = append(x[d], a)
		}
	}
	for _, as := range x { // each alone: the order of the map does not show
		slices.SortFunc(as, Application.compare)
	}
	return x
}

// of is the cluster's Applications, best choice first.
func (x index) of(server, name string) []Application {
	var as []Application
	for _, d := range destinations(server, name) {
		as = append(as, x[d]...)
	}
	slices.SortFunc(as, Application.compare)
	return as
}

// annotations are those of an Application's that are read: it may have tens of thousands.
type annotations struct {
	Refresh *string `json:"argocd.argoproj.io/refresh"`
	Skip    string  `json:"argocd.argoproj.io/skip-reconcile"` // Argo CD passes over it
}

// What no name, and no cluster's URL that anybody uses, is longer than. A longer one is nobody's, and is not kept.
const (
	longestName   = 253
	LongestServer = 1 << 10
)

// document is the part of an Application, as it is in the API, that is read.
type document struct {
	Metadata struct {
		Namespace         string      `json:"namespace"`
		Name              string      `json:"name"`
		DeletionTimestamp string      `json:"deletionTimestamp"`
		Annotations       annotations `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Destination struct {
			Server string `json:"server"`
			Name   string `json:"name"`
		} `json:"destination"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type string `json:"type"`
		} `json:"conditions"`
	} `json:"status"`
}

func (d document) application() Application {
	a := Application{
		Namespace: d.Metadata.Namespace, Name: d.Metadata.Name,
		Server: d.Spec.Destination.Server, Cluster: d.Spec.Destination.Name,
		Deleting: d.Metadata.DeletionTimestamp != "",
	}
	if asked := d.Metadata.Annotations.Refresh; asked != nil {
		a.Refresh = refreshNormal // any value but hard is a normal one to Argo CD
		if *asked == refreshHard {
			a.Refresh = refreshHard
		}
	}
	a.Skipped, _ = strconv.ParseBool(d.Metadata.Annotations.Skip)
	if len(a.Server) > LongestServer || len(a.Cluster) > longestName {
		a.Server, a.Cluster = "", ""
	}
	for _, c := range d.Status.Conditions {
		a.Invalid = a.Invalid || c.Type == "InvalidSpecError" || c.Type == "UnknownError"
	}
	return a
}

func fromUnstructured(u *unstructured.Unstructured) (Application, error) {
	var d document
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
		return Application{}, fmt.Errorf("reading what Application %q in %q says: %w", u.GetName(), u.GetNamespace(),
			err)
	}
	return d.application(), nil
}
