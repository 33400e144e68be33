// Command views answers whose clusters are, by Argo CD's own controller/sharding package. It keeps the view that each
// pod of an application-controller has: what the pod read when it started, and the events that it has seen since. It
// reads a request a line as JSON from its standard input, and answers each with a line. The package e2e/gaps is its
// client.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"
)

// request is a number of steps, taken in their order, and the clusters whose owners are asked for after them.
type request struct {
	Steps []step   `json:"steps"`
	Ask   []string `json:"ask"` // server URLs
}

// step is what happens to one pod: it starts, stops, or sees an event of a cluster Secret. A reset ends all pods.
type step struct {
	Do  string `json:"do"` // reset | start | stop | add | update | delete
	Pod string `json:"pod"`

	// Of start: what the pod reads once.
	Start *start `json:"start,omitempty"`

	// Of an event: the Secret before it and after it.
	Old *secret `json:"old,omitempty"`
	New *secret `json:"new,omitempty"`
}

// start is a pod's environment and what it lists first.
type start struct {
	Replicas  string         `json:"replicas"` // ARGOCD_CONTROLLER_REPLICAS
	Shard     string         `json:"shard"`    // ARGOCD_CONTROLLER_SHARD, or the number at the end of the host name
	Algorithm string         `json:"algorithm"`
	InCluster bool           `json:"inCluster"` // cluster.inClusterEnabled
	Secrets   []secret       `json:"secrets"`
	Apps      map[string]int `json:"apps,omitempty"` // Applications by server
}

// secret is a cluster Secret; Shard is data.shard's text, nil where there is none.
type secret struct {
	UID    string  `json:"uid"`
	Name   string  `json:"name"`
	Server string  `json:"server"`
	Shard  *string `json:"shard,omitempty"`
}

// response has, for each server asked for, the pods that manage it, in the order of their start.
type response struct {
	Owners [][]string `json:"owners"`
	Error  string     `json:"error,omitempty"`
}

func main() {
	logrus.SetOutput(io.Discard)
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "views:", err)
		os.Exit(1)
	}
}

func serve(r io.Reader, w io.Writer) error {
	requests, out := json.NewDecoder(bufio.NewReader(r)), bufio.NewWriter(w)
	responses := json.NewEncoder(out)
	var v views
	for {
		var q request
		switch err := requests.Decode(&q); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("reading a request: %w", err)
		}
		var a response
		if err := v.take(q.Steps); err != nil {
			a.Error = err.Error()
		} else {
			a.Owners = v.owners(q.Ask)
		}
		if err := responses.Encode(a); err != nil {
			return fmt.Errorf("writing a response: %w", err)
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("writing a response: %w", err)
		}
	}
}
