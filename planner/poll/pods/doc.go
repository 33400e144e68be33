// Package pods makes the default metrics of what the application-controllers' own pods show, where there is no
// Prometheus. A Window is given each scrape that is made for ownership, and answers as Prometheus would answer the
// default queries (planner/poll/defaults.go) if it had made the same scrapes:
//
//   - events, reconciles: at each full five minutes the rate of the last ten, of each pod's counters alone and then summed: the
//     counters of a pod that lost a cluster stand still, and a pod that restarted begins at 0. Of the last three hours' rates
//     nine tenths of the time are at or below the answer.
//   - objects: the most that a pod showed in the last hour, in slots of five minutes.
//   - apps: the most Applications that one pod showed at once in the last ten minutes, likewise. Prometheus counts those that
//     came and went in between as well.
//
// A pod that did not answer leaves a gap, and no zero. All is a function of values; when a scrape was is part of it.
package pods
