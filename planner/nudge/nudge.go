// Package nudge wakes the new owner of a moved cluster. An application-controller that is given a cluster leaves it
// alone until an Application that deploys there is refreshed; until then nobody owns the cluster, by default for up to
// three minutes. Nudger asks Argo CD to refresh one of them.
package nudge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/patchable"
)

const (
	// keep is how long a listing tells where to look. It may be old: what it names is read again before it is written.
	keep = 10 * time.Minute
	// stands is how long one tells it while another one takes longer than waitsFor.
	stands   = 30 * time.Minute
	waitsFor = 5 * time.Second
	// fresh is how old a listing may be to say that a cluster has no Application: two nudges of one cluster apart. One
	// that was made since, before the cluster moved, is found by the second.
	fresh = 10 * time.Second
	// tries is how many Applications of a cluster are read to find one without fault.
	tries = 4

	fieldOwner = "ballast-planner"
)

// Nudge asks for a refresh of one Application of the cluster: of its server or, where it is not empty, its name in Argo
// CD. namespace is Argo CD's; cluster is the Secret's name, for errors. The answer is the Application as
// namespace/name, or empty where there is none that Argo CD would look at: such a cluster needs no nudge. Missing
// rights are a ForbiddenError.
func (n *Nudger) Nudge(ctx context.Context, namespace, cluster, server, name string) (string, error) {
	application, err := n.find(ctx, namespace, server, name)
	if err != nil {
		return "", fmt.Errorf("nudging the owner of cluster %q: %w", cluster, err)
	}
	return application, nil
}

// find looks into the last listing first, and into one of now where that did not serve.
func (n *Nudger) find(ctx context.Context, namespace, server, name string) (string, error) {
	kept, err := n.kept(ctx, namespace)
	if err != nil {
		return "", err
	}
	application, err := n.refreshOne(ctx, kept.applications.of(server, name), server, name)
	if err != nil || application != "" {
		return application, err
	}
	l, err := n.listed(ctx, namespace, fresh)
	if err != nil || l == kept {
		return "", err
	}
	return n.refreshOne(ctx, l.applications.of(server, name), server, name)
}

// kept is a listing that tells where to look. Where one of now takes long, an older one does as long as that goes on
// beside.
func (n *Nudger) kept(ctx context.Context, namespace string) (*listing, error) {
	waits := cmp.Or(n.waits, waitsFor)
	older := n.last.Load()
	if !older.serves(namespace, n.Clock.Now(), stands) {
		return n.listed(ctx, namespace, keep)
	}
	if n.underWay(waits) {
		return older, nil
	}
	wait, end := context.WithTimeout(ctx, waits)
	defer end()
	l, err := n.listed(wait, namespace, keep)
	if late := wait.Err() != nil && ctx.Err() == nil; err != nil && late {
		return older, nil
	}
	return l, err
}

// refreshOne asks for a refresh of the best of the candidates as they are now, or of none. One that may not be read or
// written stands in no other's way; if there is no other, it is the error.
func (n *Nudger) refreshOne(ctx context.Context, candidates []Application, server, name string) (string, error) {
	var forbidden error
	tolerate := func(err error) error {
		if isForbidden(err) || errors.Is(err, ErrCrowded) || isFull(err) {
			forbidden = err
			return nil
		}
		return client.IgnoreNotFound(err)
	}
	var faulty []Application
	for _, c := range candidates[:min(tries, len(candidates))] {
		a, err := n.read(ctx, c)
		if err == nil && a.serves(server, name) {
			if a.rank() > 0 {
				faulty = append(faulty, a)
				continue
			}
			if err = n.request(ctx, a); err == nil {
				return a.Namespace + "/" + a.Name, nil
			}
		}
		if err := tolerate(err); err != nil {
			return "", err
		}
	}
	slices.SortFunc(faulty, Application.compare)
	for _, a := range faulty {
		err := n.request(ctx, a)
		if err == nil {
			return a.Namespace + "/" + a.Name, nil
		}
		if err := tolerate(err); err != nil {
			return "", err
		}
	}
	return "", forbidden
}

func (n *Nudger) read(ctx context.Context, a Application) (Application, error) {
	var u unstructured.Unstructured
	u.SetGroupVersionKind(applicationKind)
	if err := n.Reader.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Name}, &u); err != nil {
		return Application{}, refused("get", a.Namespace,
			fmt.Errorf("reading Application %q in %q: %w", a.Name, a.Namespace, err))
	}
	if patchable.FewManagers(u.GetManagedFields()) != nil {
		return Application{}, fmt.Errorf("refreshing Application %q in %q: %w", a.Name, a.Namespace, ErrCrowded)
	}
	return fromUnstructured(&u)
}

// isFull reports whether the API server takes no annotation more of that Application, whose writer filled it up.
func isFull(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// ErrCrowded: of a time that JSON does not have the API server makes no patch, and it merges all managers of an object
// with each write, for half a minute where they are thousands. It is the Application of somebody, who must not have
// others wait.
var ErrCrowded = errors.New("too many managers of its fields, or one with a time beyond the year 9999 (kubectl patch --type=merge -p '{\"metadata\":{\"managedFields\":[{}]}}' starts the list anew)")

// request sets the annotation. Setting it to what it is would be a write without an event, by which nobody is woken: a
// request that is pending is taken back first and then made again as it was.
func (n *Nudger) request(ctx context.Context, a Application) error {
	if a.Refresh != "" {
		if err := n.annotate(ctx, a, nil); err != nil {
			return err
		}
		return n.annotate(ctx, a, &a.Refresh)
	}
	normal := refreshNormal
	return n.annotate(ctx, a, &normal)
}

func (n *Nudger) annotate(ctx context.Context, a Application, value *string) error {
	var u unstructured.Unstructured
	u.SetGroupVersionKind(applicationKind)
	u.SetNamespace(a.Namespace)
	u.SetName(a.Name)
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{annotationRefresh: value}}})
	if err != nil {
		return fmt.Errorf("marshalling the refresh of Application %q: %w", a.Name, err)
	}
	if err := n.Client.Patch(ctx, &u, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return refused("patch", a.Namespace, fmt.Errorf("refreshing Application %q in %q: %w", a.Name, a.Namespace,
			answer.Unquoted(err)))
	}
	return nil
}
