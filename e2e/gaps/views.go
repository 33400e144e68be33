package gaps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"ballast/e2e/assets"
)

// Views answers whose clusters are by Argo CD's own sharding package, which runs in a process of its own: the command
// e2e/argocd/views, of whose requests these are the types. It keeps the view of each pod that was started.
type Views struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

// Step is what happens to one pod.
type Step struct {
	Do  Do     `json:"do"`
	Pod string `json:"pod,omitempty"`
	// Start is what the pod reads when it starts.
	Start *ViewStart `json:"start,omitempty"`
	// Old and New are the cluster Secret before and after an event that the pod sees.
	Old *ViewSecret `json:"old,omitempty"`
	New *ViewSecret `json:"new,omitempty"`
}

// Do is a kind of step.
type Do string

// The kinds of steps. A reset ends all pods.
const (
	DoReset  Do = "reset"
	DoStart  Do = "start"
	DoStop   Do = "stop"
	DoAdd    Do = "add"
	DoUpdate Do = "update"
	DoDelete Do = "delete"
)

// ViewStart is a pod's environment, as its text stands there, and what it lists at its start.
type ViewStart struct {
	Replicas  string         `json:"replicas"` // ARGOCD_CONTROLLER_REPLICAS
	Shard     string         `json:"shard"`    // the number at the end of its host name
	Algorithm string         `json:"algorithm"`
	InCluster bool           `json:"inCluster"` // cluster.inClusterEnabled
	Secrets   []ViewSecret   `json:"secrets"`
	Apps      map[string]int `json:"apps,omitempty"` // Applications by server
}

// ViewSecret is a cluster Secret as far as Argo CD's sharding looks at it. Shard is data.shard's text, nil where there
// is none.
type ViewSecret struct {
	UID    string  `json:"uid"`
	Name   string  `json:"name"`
	Server string  `json:"server"`
	Shard  *string `json:"shard,omitempty"`
}

// StartViews starts the process. It ends with Close, and with this process whatever happens to it: its input ends then.
func StartViews(ctx context.Context, argocd assets.ArgoCD) (*Views, error) {
	cmd := exec.CommandContext(ctx, argocd.Views())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the views: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the views: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the views: %w", err)
	}
	return &Views{cmd: cmd, in: in, answers: json.NewDecoder(out)}, nil
}

// Ask takes the steps in their order and then gives, for each server, the pods that manage it.
func (v *Views) Ask(steps []Step, servers ...string) ([][]string, error) {
	request, err := json.Marshal(map[string]any{"steps": steps, "ask": servers})
	if err != nil {
		return nil, fmt.Errorf("marshalling a request for owners: %w", err)
	}
	if _, err := v.in.Write(append(request, '\n')); err != nil {
		return nil, fmt.Errorf("asking for owners: %w", err)
	}
	var answer struct {
		Owners [][]string `json:"owners"`
		Error  string     `json:"error"`
	}
	if err := v.answers.Decode(&answer); err != nil {
		return nil, fmt.Errorf("reading the owners: %w", err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("asking for owners: %s", answer.Error)
	}
	return answer.Owners, nil
}

// Close ends the process and returns when it is gone.
func (v *Views) Close() error {
	if err := errors.Join(v.in.Close(), v.cmd.Wait()); err != nil {
		return fmt.Errorf("ending the views: %w", err)
	}
	return nil
}
