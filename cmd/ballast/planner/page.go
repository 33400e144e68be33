package planner

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"ballast/cmd/ballast/serve"
	"ballast/cmd/ballast/web"
	"ballast/planner/config"
)

// pageKeep is for how long a page is everybody's: a look reads three ConfigMaps and lists the workload's pods.
const pageKeep = 2 * time.Second

// servePage adds the page for people, on leader and standby alike. Without its address planning goes on.
func (a *plannerApp) servePage() error {
	if a.options.pageAddress == "" {
		return nil
	}
	listener, loopback, err := web.Listen(a.options.pageAddress)
	if err != nil {
		a.log.Error(err, "serving no page for people; --page-address names another address, or none")
		return nil
	}
	source := &web.Source{Live: a.reader, Secrets: a.manager.GetClient(), Now: time.Now,
		Config: func(context.Context) (config.PlannerConfig, []string) { return a.config.Current(), nil }}
	handler := web.Handler(web.Options{Look: source.Look, Clock: clock.RealClock{}, Keep: pageKeep, Loopback: loopback,
		Hosts: a.options.pageHosts, HostFlag: "--page-host"})
	server := &manager.Server{Name: "page", Server: serve.PlainServer(handler), Listener: listener,
		ShutdownTimeout: ptr.To(time.Second)}
	if err := a.manager.Add(server); err != nil {
		return fmt.Errorf("adding the page: %w", err)
	}
	return nil
}
