package status

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/serve"
	"ballast/cmd/ballast/steer"
	"ballast/cmd/ballast/web"
	"ballast/planner/config"
)

// webKeep is for how long a page serves: each look lists the cluster Secrets.
const webKeep = 5 * time.Second

// serve serves the page of the fleet until the context ends.
func (o *options) serve(ctx context.Context, out io.Writer) error {
	c, err := o.cluster.Client()
	if err != nil {
		return err
	}
	return o.serveFleet(ctx, c, out)
}

func (o *options) serveFleet(ctx context.Context, c client.Client, out io.Writer) error {
	listener, loopback, err := web.Listen(o.address)
	if err != nil {
		return err
	}
	source := &web.Source{Live: c, Secrets: c, Now: o.now,
		Config: func(ctx context.Context) (config.PlannerConfig, []string) { return o.planners(ctx, c) }}
	if _, err := source.Look(ctx); err != nil { // what keeps every page from being made is told here
		_ = listener.Close()
		return err
	}
	server := serve.PlainServer(web.Handler(web.Options{Look: source.Look, Clock: clock.RealClock{}, Keep: webKeep,
		Loopback: loopback}))
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	say.To(out, "The page of the fleet is at http://%s until this command is interrupted.\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// planners is the planner's configuration, with what could not be read of it.
func (o *options) planners(ctx context.Context, c client.Client) (config.PlannerConfig, []string) {
	s := &observation{state: steer.State{}}
	s.readConfig(ctx, c, o)
	return s.config, s.unread
}
