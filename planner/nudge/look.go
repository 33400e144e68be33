package nudge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/paged"
)

// listsFor is how long one listing may go on.
const listsFor = 5 * time.Minute

// listed is a listing of at most that age: the last one, or one that is made now, for all that wait for it. It goes on
// beside whoever waits no longer: one that took longer than anybody waits would never end.
func (n *Nudger) listed(ctx context.Context, namespace string, age time.Duration) (*listing, error) {
	for {
		if l := n.last.Load(); l.serves(namespace, n.Clock.Now(), age) {
			return l, nil
		}
		r := n.begin(ctx, namespace, age)
		select {
		case <-r.done:
			if r.namespace == namespace {
				return r.found, r.err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for a listing of Applications: %w", context.Cause(ctx))
		}
	}
}

// begin begins a listing, or answers the one that goes on, or the last one where that is of at most that age by now.
func (n *Nudger) begin(ctx context.Context, namespace string, age time.Duration) *run {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running != nil {
		return n.running
	}
	r := &run{namespace: namespace, began: n.Clock.Now(), done: make(chan struct{})}
	if l := n.last.Load(); l.serves(namespace, r.began, age) {
		r.found = l
		close(r.done)
		return r
	}
	n.running = r
	go func() {
		within, end := context.WithTimeout(context.WithoutCancel(ctx), listsFor)
		defer end()
		r.found, r.err = n.look(within, namespace, r.began)
		n.mu.Lock()
		n.running = nil
		n.mu.Unlock()
		close(r.done)
	}()
	return r
}

// look lists all Applications, which are anybody's: a panic there is a listing that failed.
func (n *Nudger) look(ctx context.Context, namespace string, now time.Time) (l *listing, err error) {
	defer func() {
		if p := recover(); p != nil {
			l, err = nil, fmt.Errorf("listing Applications: a panic of type %T", p)
		}
	}()
	setting, err := n.setting(ctx, namespace)
	if err != nil {
		return nil, err
	}
	all, problems, err := n.list(ctx, namespace, Watch(namespace, setting))
	if err != nil {
		return nil, err
	}
	n.report(problems)
	l = &listing{namespace: namespace, at: now, took: n.Clock.Since(now), partial: all.more > 0 || all.unread,
		setting: setting, problems: problems,
		applications: newIndex(all.applications)}
	n.last.Store(l)
	return l, nil
}

// underWay reports whether a listing goes on for that long already.
func (n *Nudger) underWay(long time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running != nil && n.Clock.Since(n.running.began) >= long
}

// Current is the age that a listing may have for one who counts by it each cycle: where Argo CD's setting of the
// namespaces is another one by now, the last listing says nothing of what the controllers that start by that one work
// on. A setting that cannot be read now is read with the next listing.
func (n *Nudger) Current(ctx context.Context, namespace string, age time.Duration) time.Duration {
	l := n.last.Load()
	if !l.serves(namespace, n.Clock.Now(), age) {
		return age
	}
	if setting, err := n.setting(ctx, namespace); err != nil || setting == l.setting {
		return age
	}
	return 0
}

// Listed is what the last listing went by: a digest of Argo CD's setting of the namespaces, and what keeps Applications
// from being found.
func (n *Nudger) Listed() (setting string, problems []ListingProblem) {
	l := n.last.Load()
	if l == nil {
		return "", nil
	}
	digest := sha256.Sum256([]byte(l.setting))
	return hex.EncodeToString(digest[:8]), l.problems
}

func (n *Nudger) report(problems []ListingProblem) {
	for _, p := range problems {
		if n.Report != nil && !slices.Contains(n.reported, p) {
			n.Report(p)
		}
	}
	n.reported = problems
}

// list finds what Argo CD looks at. With patterns among its namespaces that takes a look at all of them; without, or
// where that is forbidden, at each that is known by name. Only Argo CD's own has to be allowed.
func (n *Nudger) list(ctx context.Context, own string, watched *Watched) (*kept, []ListingProblem, error) {
	var problems []ListingProblem
	unread := len(failed(watched.expressions)) > 0
	if watched.Open() {
		all := &kept{most: n.MostKept, unread: unread}
		if err := n.listIn(ctx, "", watched, all); !isForbidden(err) {
			return all, all.left(watched.problems()), err
		}
		if watched.beyondNames() {
			unread = true
			problems = append(problems, ListingProblem{NamespaceForbidden,
				fmt.Sprintf("Applications are looked for in %s only: the planner may not list them in all namespaces, "+
					"as Argo CD's setting %s asks for; add component nudge-any-namespace", firstOf(watched.Named()), keyNamespaces)})
		}
	}
	all := &kept{most: n.MostKept, unread: unread}
	for _, namespace := range watched.Named() {
		err := n.listIn(ctx, namespace, watched, all)
		switch {
		case isForbidden(err) && namespace != own:
			all.unread = true
			problems = append(problems, ListingProblem{NamespaceForbidden,
				fmt.Sprintf("no Application is looked for in %q: the planner may not list them there; add component nudge-any-namespace, or a Role in that namespace", namespace)})
		case err != nil:
			return nil, nil, err
		}
	}
	return all, all.left(append(watched.problems(), problems...)), nil
}

// firstOf are names for people, five at most.
func firstOf(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// setting is application.namespaces, as the application-controller has it.
func (n *Nudger) setting(ctx context.Context, own string) (string, error) {
	if n.Own != nil {
		if setting, set, err := n.Own(ctx); err != nil || set {
			return setting, err
		}
	}
	var cm corev1.ConfigMap
	err := n.Reader.Get(ctx, types.NamespacedName{Namespace: own, Name: configMapParams}, &cm)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading ConfigMap %q in %q: %w", configMapParams, own, err)
	}
	return cm.Data[keyNamespaces], nil
}

// listIn lists a namespace, or all, and keeps what Argo CD looks at. A listing that takes so long that the API server
// has forgotten its beginning is begun anew once.
func (n *Nudger) listIn(ctx context.Context, namespace string, watched *Watched, all *kept) error {
	before := *all
	err := n.listPages(ctx, namespace, watched, all)
	if apierrors.IsResourceExpired(err) {
		*all = before
		err = n.listPages(ctx, namespace, watched, all)
	}
	switch {
	case meta.IsNoMatchError(err): // without the kind there is none of it
		return nil
	case err != nil && namespace == "":
		return refused("list", "", fmt.Errorf("listing Applications in all namespaces: %w", err))
	case err != nil:
		return refused("list", namespace, fmt.Errorf("listing Applications in %q: %w", namespace, err))
	}
	return nil
}

func (n *Nudger) listPages(ctx context.Context, namespace string, watched *Watched, all *kept) error {
	limit, next := firstPage, ""
	for {
		p := newPage()
		err := n.Reader.List(ctx, p, client.InNamespace(namespace), client.Limit(int64(limit)), client.Continue(next))
		if fewer, ok := paged.Fewer(err, limit); ok {
			limit = fewer
			continue
		}
		if err != nil {
			return err
		}
		for _, d := range p.Kept {
			if a := d.application(); watched.Has(a.Namespace) {
				all.add(a)
			}
		}
		if next = p.GetContinue(); next == "" {
			return nil
		}
		limit = nextLimit(len(p.Kept), p.Bytes)
	}
}
