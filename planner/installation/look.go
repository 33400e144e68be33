package installation

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// configurationEvery is how long an answer about the webhook configuration is believed.
	configurationEvery = 5 * time.Minute
	// versionEvery is how long the API server's version is: it changes by an upgrade.
	versionEvery = time.Hour
)

// Looker looks at the installation from time to time. It is for one goroutine.
type Looker struct {
	Reader  client.Reader // without a cache: the planner may get the configuration, and neither list nor watch any
	Version func(context.Context) (gitVersion string, err error)
	Clock   clock.PassiveClock

	configuration, kubernetes       Seen
	configurationAsked, versionSeen time.Time
}

// Seen is what was found. Matches is whether the installed webhook configuration is the shipped one, nil while that is
// unknown.
type Seen struct {
	Matches  *bool
	Findings []Finding
}

// Look gives what is known. An error names what could not be asked; it is asked again at the next look, and what was
// known holds until then.
func (l *Looker) Look(ctx context.Context, n Names) (Seen, error) {
	var errs []error
	if l.due(l.configurationAsked, configurationEvery) {
		seen, err := l.compare(ctx, n)
		if errs = append(errs, err); err == nil {
			l.configuration, l.configurationAsked = seen, l.Clock.Now()
		}
	}
	if l.due(l.versionSeen, versionEvery) {
		found, err := l.judgeVersion(ctx)
		if errs = append(errs, err); err == nil {
			l.kubernetes, l.versionSeen = Seen{Findings: found}, l.Clock.Now()
		}
	}
	findings := append(append([]Finding{}, l.configuration.Findings...), l.kubernetes.Findings...)
	return Seen{Matches: l.configuration.Matches, Findings: findings}, errors.Join(errs...)
}

// due reports whether an answer is too old, or from a time to come.
func (l *Looker) due(asked time.Time, every time.Duration) bool {
	since := l.Clock.Since(asked)
	return asked.IsZero() || since < 0 || since >= every
}

func (l *Looker) judgeVersion(ctx context.Context) ([]Finding, error) {
	v, err := l.Version(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its version: %w", err)
	}
	return Kubernetes(v)
}

func (l *Looker) compare(ctx context.Context, n Names) (Seen, error) {
	shipped, err := Shipped(n)
	if err != nil {
		return Seen{}, err
	}
	installed, err := l.get(ctx, shipped.Name)
	if apierrors.IsForbidden(err) {
		return Seen{Findings: []Finding{{Kind: Unreadable, Subject: shipped.Name, Message: fmt.Sprintf(
			"ballast may not read MutatingWebhookConfiguration %q, so it cannot say whether it is the one that is shipped: "+
				"apply the manifests again, which grant that by ClusterRole ballast-planner.%s", shipped.Name,
			n.Namespace)}}}, nil
	}
	if err != nil {
		return Seen{}, err
	}
	found := Compare(shipped, Opened(n, installed))
	matches := len(found) == 0
	if shipped.Name == OldName {
		return Seen{Matches: &matches, Findings: found}, nil
	}
	old, err := l.get(ctx, OldName)
	if err == nil {
		found = append(found, Left(shipped, old, n.Namespace)...)
	}
	return Seen{Matches: &matches, Findings: found}, ignoreForbidden(err)
}

// ignoreForbidden passes over the name of older releases where the right to look at it was taken away: it is not there
// anew.
func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// get is an empty configuration where there is none.
func (l *Looker) get(ctx context.Context, name string) (*admissionv1.MutatingWebhookConfiguration, error) {
	c := &admissionv1.MutatingWebhookConfiguration{}
	err := l.Reader.Get(ctx, client.ObjectKey{Name: name}, c)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("getting MutatingWebhookConfiguration %q: %w", name, err)
	}
	return c, nil
}
