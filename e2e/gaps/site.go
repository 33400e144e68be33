package gaps

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"

	"ballast/e2e/assets"
	"ballast/e2e/fleet"
	"ballast/e2e/gaps/gates"
	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
)

// Options make a site.
type Options struct {
	Binaries assets.Binaries
	ArgoCD   assets.ArgoCD
	Ballast  string // the command's file, as site.BuildBallast made it; empty where ballast is not installed

	Replicas           int // application-controllers to begin with; default 2
	ControllerReplicas int // ARGOCD_CONTROLLER_REPLICAS; default Replicas
	Clusters           int // default 24
	// Shard is data.shard of the cluster Secret of that number; nil deals them out in turn, and "" is none.
	Shard     func(i int) string
	Algorithm string              // controller.sharding.algorithm; empty: Argo CD's default
	Dynamic   bool                // dynamic cluster distribution: a Deployment, whose pods claim their slots
	Resync    time.Duration       // timeout.reconciliation; default 1 h, so that nothing but a nudge wakes an owner
	Requests  corev1.ResourceList // of an application-controller; upstream's manifests have none

	Dir string    // as plane.Options.Dir
	Log io.Writer // as plane.Options.Log
}

// Site is a plane with Argo CD's own application-controllers. It is a site.Site into which ballast can be installed,
// but whose Argo CD is real: InstallArgoCD and Monitor are this package's, and its fleet serves for the clusters' names
// only.
type Site struct {
	*site.Site
	Clusters []timeline.Cluster // by name

	options Options
	objects dynamic.Interface
	gates   *gates.Gates // nil until they are open
	logs    *logs
	log     io.Writer

	unfollow context.CancelFunc // ends Monitor's watch of the pods; nil before
	unclaim  context.CancelFunc // ends the watch of the claims; nil where there are none
}

// Start brings up the control plane, Argo CD and its clusters, and returns when every application-controller is ready
// and every cluster has been synced by an owner. The context bounds the life of the site.
func Start(ctx context.Context, o Options) (*Site, error) {
	o.Replicas = cmp.Or(o.Replicas, 2)
	o.ControllerReplicas = cmp.Or(o.ControllerReplicas, o.Replicas)
	o.Clusters = cmp.Or(o.Clusters, 24)
	o.Resync = cmp.Or(o.Resync, time.Hour)
	if o.Shard == nil {
		o.Shard = func(i int) string { return strconv.Itoa(i % o.Replicas) }
	}
	base, err := site.Start(ctx, site.Options{
		Binaries: o.Binaries, Ballast: o.Ballast, Dir: o.Dir, Log: o.Log,
		Fleet: fleet.Options{Seed: 1, Clusters: o.Clusters, Replicas: o.Replicas},
	})
	if err != nil {
		return nil, err
	}
	s := &Site{Site: base, options: o, logs: &logs{path: base.Plane.PodLogPath}, log: cmp.Or(o.Log, io.Discard)}
	if err := s.install(ctx); err != nil {
		words := s.LastControllerWords(context.WithoutCancel(ctx), 20)
		s.Stop()
		return nil, fmt.Errorf("installing Argo CD: %w\n%s", err, words)
	}
	return s, nil
}

// Stop ends every process and returns when all are gone.
func (s *Site) Stop() {
	for _, end := range []context.CancelFunc{s.unfollow, s.unclaim} {
		if end != nil {
			end()
		}
	}
	s.Site.Stop()
	if s.gates != nil {
		s.gates.Close()
	}
}

// install does what a person does who installs Argo CD and gives it clusters.
func (s *Site) install(ctx context.Context) error {
	var err error
	if s.objects, err = dynamic.NewForConfig(s.Plane.Config()); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if s.gates, err = gates.Open(s.Plane.URL(), s.options.Clusters); err != nil {
		return err
	}
	for i, name := range s.Fleet.Names() {
		s.Clusters = append(s.Clusters, timeline.Cluster{Name: name, Server: s.gates.URLs[i]})
	}
	if err := s.installController(ctx); err != nil {
		return err
	}
	if err := s.addClusters(ctx); err != nil {
		return err
	}
	if s.options.Dynamic {
		if err := s.followClaims(ctx); err != nil {
			return err
		}
	}
	if err := s.Plane.RunProgram(ctx, fleet.Workload, s.options.ArgoCD.ApplicationController()); err != nil {
		return err
	}
	return s.settle(ctx)
}

// settle returns when every application-controller is ready and every cluster is synced.
func (s *Site) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.WaitReady(ctx, s.options.Replicas); err != nil {
		return err
	}
	return s.WaitSynced(ctx)
}

// startTimeout is for a busy machine: the pods start one after the other, 6 s each on an idle one, and a first sync of
// a cluster takes half a second of a core.
const startTimeout = 5 * time.Minute
