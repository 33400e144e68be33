package rewatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// TestAWatchGoesOnOnlyFromWhatIsSure: client-go lists anew after any error but a refused connection and a 429.
func TestAWatchGoesOnOnlyFromWhatIsSure(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	busy := apierrors.NewTooManyRequests("later", 1)
	type answer int
	const (
		goesOn answer = iota
		listsAnew
		expired
	)
	for name, c := range map[string]struct {
		from, latest      string
		listing, watching error
		initial           bool
		want              answer
	}{
		"the version is the latest":              {from: "100", latest: "100", want: goesOn},
		"others were written since":              {from: "100", latest: "5000", want: goesOn},
		"etcd was restored":                      {from: "100", latest: "99", want: expired},
		"and the version has fewer digits":       {from: "1000", latest: "999", want: expired},
		"from the first there is":                {from: "0", latest: "99", want: goesOn},
		"no version of etcd's":                   {from: "100", latest: "x", want: goesOn},
		"nobody answers":                         {from: "100", listing: refused, want: listsAnew},
		"nobody answers the watch alone":         {from: "100", latest: "100", watching: refused, want: listsAnew},
		"too many requests":                      {from: "100", listing: busy, want: listsAnew},
		"too many watches":                       {from: "100", latest: "100", watching: fmt.Errorf("watching: %w", busy), want: listsAnew},
		"the version is too old":                 {from: "100", latest: "100", watching: apierrors.NewResourceExpired("too old"), want: expired},
		"the objects come along, whatever is up": {from: "100", latest: "1", listing: refused, initial: true, want: goesOn},
	} {
		t.Run(name, func(t *testing.T) {
			var watched []string
			lw := &listerWatcher{ListerWatcher: &cache.ListWatch{
				ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
					if o.Limit != 1 || o.ResourceVersion != "" {
						t.Errorf("asked for %d objects from version %q: want one, of the latest", o.Limit, o.ResourceVersion)
					}
					return &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: c.latest}}, c.listing
				},
				WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
					watched = append(watched, o.ResourceVersion)
					return watch.NewFake(), c.watching
				},
			}}
			w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: c.from, SendInitialEvents: &c.initial})
			got := goesOn
			switch {
			case apierrors.IsResourceExpired(err):
				got = expired
			case err != nil:
				got = listsAnew
			}
			if got != c.want {
				t.Fatalf("got %v (%v), want %v", got, err, c.want)
			}
			if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
				t.Errorf("client-go would take up the watch after %v", err)
			}
			if c.want == goesOn && (w == nil || len(watched) != 1 || watched[0] != c.from) {
				t.Errorf("watches from %q, want one from %q", watched, c.from)
			}
			if c.want != goesOn && w != nil {
				t.Errorf("a watch beside the error %v", err)
			}
		})
	}
}

// TestABrokenWatchSaysWhy: the words of the cause stay.
func TestABrokenWatchSaysWhy(t *testing.T) {
	const want = "watching, which begins with a list again: the door is shut"
	if got := broken(errors.New("the door is shut")).Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
