package secrets

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

// pages answers a list of Secrets with at most so many at once, and forgets its beginning as often as it is told.
type pages struct {
	client.Reader
	holds, forgets, lists int
}

func (p *pages) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.Limit == 0 {
		return errors.New("all are asked for at once")
	}
	p.lists++
	from := 0
	if o.Continue != "" {
		if p.forgets--; p.forgets >= 0 {
			return apierrors.NewResourceExpired("the continue token is too old")
		}
		var err error
		if from, err = strconv.Atoi(o.Continue); err != nil {
			return err
		}
	}
	if err := p.Reader.List(ctx, list, client.InNamespace(o.Namespace), client.MatchingLabelsSelector{Selector: o.LabelSelector}); err != nil {
		return err
	}
	all := list.(*corev1.SecretList)
	until := min(from+p.holds, from+int(o.Limit), len(all.Items))
	if until < len(all.Items) {
		all.Continue = strconv.Itoa(until)
	}
	all.Items = all.Items[from:until]
	return nil
}

// TestWhatIsReadByPagesIsWhatIsReadAtOnce, whatever pages the API server makes, and if it forgets once where they began.
func TestWhatIsReadByPagesIsWhatIsReadAtOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := fake.NewClientBuilder()
		for i := range rapid.IntRange(0, 12).Draw(rt, "secrets") {
			s := clusterSecret(fmt.Sprintf("c%02d", i))
			if team := rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "team"); team != "" {
				s.Labels["team"], s.Labels["else"] = team, team
			}
			s.Data[plan.ShardKey] = []byte(rapid.SampledFrom([]string{"", "1", "x"}).Draw(rt, "shard"))
			s.Data["config"] = []byte(rapid.SampledFrom([]string{"{}", "{"}).Draw(rt, "config"))
			b = b.WithObjects(s)
		}
		c := b.WithObjects(configMap("argocd-cm", map[string]string{"cluster.inClusterEnabled": "false"})).Build()
		selector := labels.SelectorFromSet(labels.Set{plan.SecretTypeLabel: plan.SecretTypeCluster})
		groups := rapid.SampledFrom([][]string{nil, {"team"}, {"team", "none"}}).Draw(rt, "groups")
		want, err := ReadInput(rt.Context(), c, "argocd", selector, discover.Known{}, groups...)
		if err != nil {
			rt.Fatal(err)
		}
		api := &pages{Reader: c, holds: rapid.IntRange(1, 5).Draw(rt, "holds"), forgets: rapid.IntRange(0, 1).Draw(rt, "forgets")}
		got, err := ReadInput(rt.Context(), Paged(refuses(c), api), "argocd", selector, discover.Known{}, groups...)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			rt.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// refuses is a client that lists no Secrets: they are asked for by pages alone.
func refuses(c client.WithWatch) client.Client {
	lists := func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*corev1.SecretList); ok {
			return errors.New("all Secrets are listed at once")
		}
		return c.List(ctx, list, opts...)
	}
	return interceptor.NewClient(c, interceptor.Funcs{List: lists})
}

// TestAListThatExpiresTwiceIsAnError, and no part of a fleet.
func TestAListThatExpiresTwiceIsAnError(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(clusterSecret("a"), clusterSecret("b")).Build()
	api := &pages{Reader: c, holds: 1, forgets: 2}
	got, err := ReadInput(t.Context(), Paged(c, api), "argocd", labels.Everything(), discover.Known{})
	if !apierrors.IsResourceExpired(err) || len(got.Secrets) > 0 || api.lists != 4 {
		t.Errorf("got %d Secrets in %d lists, and %v", len(got.Secrets), api.lists, err)
	}
}

// TestOtherListsAreReadAsEver: neither pages nor a bound are put on what ReadInput does not read.
func TestOtherListsAreReadAsEver(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(clusterSecret("a"), configMap("m", nil)).Build()
	paged := Paged(c, &pages{Reader: c})
	var secrets corev1.SecretList
	var maps corev1.ConfigMapList
	for _, list := range []client.ObjectList{&secrets, &maps} {
		if err := paged.List(t.Context(), list, client.InNamespace("argocd")); err != nil {
			t.Fatal(err)
		}
	}
	if len(secrets.Items) != 1 || len(secrets.Items[0].Data) == 0 || len(maps.Items) != 1 {
		t.Errorf("%d Secrets, with data %v, and %d ConfigMaps", len(secrets.Items), secrets.Items[0].Data, len(maps.Items))
	}
}
