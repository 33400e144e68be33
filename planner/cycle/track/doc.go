// Package track has what a leader follows over time, look by look, and hands to the next one in the memory: each is a
// value whose Next is with what is seen now.
package track
