// Package crash holds tests alone: leaders that die, an API server that goes away, writes that are refused or lost, at
// any write of what people want of simulated fleets, on a real API server. Each run is one goroutine on a fake clock,
// so that a seed repeats it.
package crash
