package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/paged"
)

// Paged is a client by which ReadInput reads page by page, and packs each page before the next: whoever may create
// cluster Secrets makes each of a megabyte. A cache has no pages, and packs what it keeps. Bounded asks the API server,
// too, and reads no answer that is too large (paged.Bounded).
func Paged(c client.Client, bounded client.Reader) client.Client { return pagedClient{c, bounded} }

type pagedClient struct {
	client.Client
	bounded client.Reader
}

// packing is a list option that says how ReadInput has Secrets packed. To any client but that of Paged it says nothing.
type packing func(any) (any, error)

// ApplyToList implements client.ListOption.
func (packing) ApplyToList(*client.ListOptions) {}

// List implements client.Reader.
func (p pagedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	into, ok := list.(*corev1.SecretList)
	pack := packingOf(opts)
	if !ok || pack == nil {
		return p.Client.List(ctx, list, opts...)
	}
	err := p.read(ctx, into, pack, opts)
	if apierrors.IsResourceExpired(err) { // it took so long that the API server has forgotten its beginning
		err = p.read(ctx, into, pack, opts)
	}
	return err
}

func (p pagedClient) read(ctx context.Context, into *corev1.SecretList, pack packing, opts []client.ListOption) error {
	into.Items = nil
	return paged.Pages(paged.Many, func(limit int64, next string) (string, error) {
		var page corev1.SecretList // JSON is decoded into what there is: nothing of one page may be in the next
		err := p.bounded.List(ctx, &page, append(opts[:len(opts):len(opts)], client.Limit(limit),
			client.Continue(next))...)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			kept, err := pack(&page.Items[i])
			if err != nil {
				return "", err
			}
			s, ok := kept.(*corev1.Secret)
			if !ok {
				return "", fmt.Errorf("packing Secret %q: it became a %T", page.Items[i].Name, kept)
			}
			into.Items = append(into.Items, *s)
		}
		return page.Continue, nil
	})
}

func packingOf(opts []client.ListOption) packing {
	for _, o := range opts {
		if pack, ok := o.(packing); ok {
			return pack
		}
	}
	return nil
}
