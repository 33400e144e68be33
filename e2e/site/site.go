// Package site is what the end-to-end suite and the demo have in common: an Argo CD installation with a simulated fleet
// and a Prometheus on a real control plane, into which ballast is installed as its quick start says. Everything is done
// by kubectl and the API server, and nothing in here knows ballast's inside.
package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/kustomize/api/types"

	"ballast/e2e/assets"
	"ballast/e2e/fleet"
	"ballast/e2e/plane"
)

// Options make a site.
type Options struct {
	Binaries assets.Binaries
	Ballast  string // the command's file, as BuildBallast made it
	Fleet    fleet.Options
	Dir      string    // as plane.Options.Dir
	Log      io.Writer // as plane.Options.Log
}

// Site is a running installation.
type Site struct {
	Plane    *plane.Plane
	Fleet    *fleet.Fleet
	Exporter *fleet.Exporter
	// Client is the administrator's.
	Client kubernetes.Interface
	// Prometheus is its URL once Monitor is done.
	Prometheus string
	// Patches are what a person's overlay changes of ballast's manifests beside the configuration.
	Patches []types.Patch

	ballast string
	kubectl string
	log     io.Writer
	server  *http.Server
	address string             // the server's
	unwatch context.CancelFunc // ends the exporter's watch
	doors   *doors             // the pods' own metrics
}

// Start brings up the control plane. The context bounds the life of the site.
func Start(ctx context.Context, o Options) (*Site, error) {
	p, err := plane.Start(ctx, plane.Options{Binaries: o.Binaries, Dir: o.Dir, Log: o.Log})
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	config := p.Config()
	config.WarningHandler = rest.NoWarnings{} // whoever looks at warnings writes by kubectl
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		p.Stop()
		return nil, fmt.Errorf("making the administrator's client: %w", err)
	}
	f := fleet.New(o.Fleet)
	s := &Site{Plane: p, Fleet: f, Exporter: f.NewExporter(time.Now), Client: client, ballast: o.Ballast,
		kubectl: o.Binaries.Path("kubectl"),
		log:     cmp.Or(o.Log, io.Discard)}
	s.doors = &doors{handler: s.Exporter.Handler(), at: p.PodAddress}
	if err := s.serveMetrics(); err != nil {
		p.Stop()
		return nil, err
	}
	return s, nil
}

// serveMetrics stands in for the metrics ports of the application-controller's pods.
func (s *Site) serveMetrics() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for scrapes: %w", err)
	}
	s.address = listener.Addr().String()
	s.server = &http.Server{Handler: s.Exporter.Handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.server.Serve(listener) }() // it ends with Stop, and a scrape that fails shows in Prometheus
	return nil
}

// Stop ends every process and returns when all are gone.
func (s *Site) Stop() {
	if s.unwatch != nil {
		s.unwatch()
	}
	s.doors.close()
	_ = s.server.Close() // its connections are Prometheus's, which ends as well
	s.Plane.Stop()
}

// InstallArgoCD applies the installation and the fleet, each cluster Secret passed through shape first, which may be
// nil. It returns when every replica is ready and the simulated Argo CD has taken its clusters.
func (s *Site) InstallArgoCD(ctx context.Context, shape func(*corev1.Secret)) error {
	if err := s.Apply(ctx, "", s.Fleet.Installation()...); err != nil {
		return fmt.Errorf("installing Argo CD: %w", err)
	}
	for _, secret := range s.Fleet.Secrets() {
		if shape != nil {
			shape(secret)
		}
		if _, err := s.Client.CoreV1().Secrets(s.Fleet.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating cluster secret %q: %w", secret.Name, err)
		}
	}
	if err := s.WaitReady(ctx, s.Fleet.Replicas); err != nil {
		return err
	}
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	s.unwatch = unwatch
	defer context.AfterFunc(ctx, unwatch)() // only while it begins
	return s.Exporter.Watch(watching, s.Client, func() {
		if err := fleet.WriteTargets(s.targets(), s.Exporter.Targets(s.address)); err != nil {
			fmt.Fprintln(s.log, err)
		}
		if err := s.doors.follow(s.Exporter.Running()); err != nil {
			fmt.Fprintln(s.log, err)
		}
	})
}

func (s *Site) targets() string { return filepath.Join(s.Plane.Dir(), "targets.json") }

// WaitReady returns when the application-controller has that many pods, all ready, of its present template.
func (s *Site) WaitReady(ctx context.Context, replicas int) error {
	return Poll(ctx, func(ctx context.Context) error { return s.Ready(ctx, replicas) })
}

// Ready is nil if the application-controller has that many pods, all ready, of its present template.
func (s *Site) Ready(ctx context.Context, replicas int) error {
	sts, err := s.StatefulSet(ctx)
	if err != nil {
		return err
	}
	st, want := sts.Status, int32(replicas)
	if st.ObservedGeneration < sts.Generation || st.Replicas != want || st.ReadyReplicas != want || st.UpdatedReplicas != want {
		return fmt.Errorf("stateful set %q has %d pods, %d ready, %d updated, want %d", fleet.Workload, st.Replicas,
			st.ReadyReplicas, st.UpdatedReplicas, want)
	}
	return nil
}

const (
	scrapeInterval = 2 * time.Second
	// past covers the longest range of the default queries, 3 h of 10 min windows, with room for a slow start.
	past     = 3*time.Hour + 30*time.Minute
	pastStep = time.Minute

	longest = 4 * time.Minute // that anything is waited for, unless the caller says
)

// Monitor gives the fleet a past and starts a Prometheus that scrapes its pods.
func (s *Site) Monitor(ctx context.Context) error {
	config, err := fleet.PrometheusConfig(s.targets(), scrapeInterval)
	if err != nil {
		return err
	}
	history, w := io.Pipe()
	go func() {
		to := time.Now().Truncate(pastStep)
		w.CloseWithError(s.Exporter.WriteHistory(w, to.Add(-past), to, pastStep))
	}()
	s.Prometheus, err = s.Plane.StartPrometheus(ctx, plane.PrometheusOptions{Config: config, OpenMetrics: history})
	return err
}

// once asks once, and for a minute at most: a request that nobody answers is made anew.
func once(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return check(ctx)
}

// Poll asks until there is no error, or the context ends: then the last error says what was still amiss.
//
// A context without a deadline gets one: what has not come after four minutes does not come, and a demo must end with
// what it waited for.
func Poll(ctx context.Context, check func(context.Context) error) error {
	const interval = 100 * time.Millisecond
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, longest, fmt.Errorf("given up after %s", longest))
		defer cancel()
	}
	var amiss error // before the end, by which a request that was under way then failed
	for {
		err := once(ctx, check)
		if err == nil {
			return nil
		}
		if amiss == nil || ctx.Err() == nil {
			amiss = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(amiss, context.Cause(ctx))
		case <-time.After(interval):
		}
	}
}
