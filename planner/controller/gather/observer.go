package gather

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/ownership/scrape"
)

// Observer asks the application-controllers' pods who has which cluster, and Prometheus for those that cannot be
// reached: a NetworkPolicy may keep ballast from the pods. Reader reads past any cache. Count, which may be nil, is how
// many Applications each server has, by a listing of at most that age, and when that was so; ByServer, which may be
// nil, how many of them give the server and not the cluster's name.
type Observer struct {
	Reader client.Reader
	Scrape *scrape.Scraper
	Count  Count
	Clock  clock.PassiveClock

	ByServer Count

	// Listed, which may be nil, is what the last listing went by, and what keeps Applications from being found.
	Listed func() (setting string, unlisted []string)

	waits    time.Duration // for a listing; 0 stands for besideFor
	all      asked         // of Count
	byServer asked         // of ByServer
}

// Count is how many Applications each server of a fleet has, by a listing of at most that age, and when that was so.
type Count func(ctx context.Context, namespace string, fleet discover.Fleet, age time.Duration) (ownership.Applications, time.Time, error)

// asked is one question about Applications that goes on beside the cycles that wait for its answer no longer, and the
// last answer.
type asked struct {
	running chan counted // the listing that goes on
	last    counted
}

// counted is how many Applications there are, and when that was so.
type counted struct {
	namespace string
	of        ownership.Applications
	at        time.Time
	ended     time.Time // by this process' clock
	err       error
}
