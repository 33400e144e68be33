// Command pageserver serves the page of a fleet of package sample: to look at, and for the tests in a real browser.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/utils/clock"

	"ballast/cmd/ballast/serve"
	"ballast/cmd/ballast/web"
	"ballast/planner/page"
	"ballast/planner/page/sample"
	"ballast/planner/page/view"
	"ballast/planner/replay"
	"ballast/planner/replay/picture"
)

func main() {
	clusters := flag.Int("clusters", 200, "how many clusters the fleet has")
	address := flag.String("address", "127.0.0.1:0", "where to listen")
	file := flag.String("file", "", "write the page as a file that stands alone instead, and end")
	report := flag.Bool("report", false, "with -file: the report of a replay instead of a fleet")
	flag.Parse()
	if err := run(*clusters, *address, *file, *report); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints the page's URL, and serves it until the process ends. Each look makes the page anew, so that its time is
// in the answer.
func run(clusters int, address, file string, report bool) error {
	fleet := sample.Fleet(clusters)
	if report {
		reports := []replay.Report{replayed("now", 1.2), replayed("tighter", 1.05)}
		text, err := picture.Page("a day", reports, []string{"These figures are made up."})
		if err != nil {
			return err
		}
		return os.WriteFile(file, text, 0o600)
	}
	if file != "" {
		text, err := view.Alone(page.Of(fleet))
		if err != nil {
			return err
		}
		return os.WriteFile(file, text, 0o600)
	}
	listener, loopback, err := web.Listen(address)
	if err != nil {
		return err
	}
	look := func(context.Context) (page.Fleet, error) { return fleet, nil }
	handler := web.Handler(web.Options{Look: look, Clock: clock.RealClock{}, Keep: time.Millisecond,
		Loopback: loopback})
	fmt.Printf("http://%s/\n", listener.Addr())
	return serve.PlainServer(handler).Serve(listener)
}

// replayed is a report of a day, an hour a point.
func replayed(name string, over float64) replay.Report {
	from := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	r := replay.Report{Name: name, From: from, To: from.Add(24 * time.Hour), Clusters: 24, Cycles: 1440, Moves: 48}
	for hour := range 25 {
		at := from.Add(time.Duration(hour) * time.Hour)
		r.Series = append(r.Series, replay.Point{At: at, Replicas: 3 + hour%2, MaxOverIdeal: over +
			0.02*float64(hour%5), Moves: 2 * hour})
	}
	return r
}
