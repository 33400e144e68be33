package timeline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Kind is what a line of an application-controller's log tells.
type Kind string

const (
	// Began and Ended are a process's: its first line, and its last if it was asked to end. One that is killed says
	// nothing: whoever kills it says so.
	Began Kind = "began"
	Ended Kind = "ended"
	// Assigned and Changed are a pod's view of a cluster's shard.
	Assigned Kind = "assigned"
	Changed  Kind = "changed"
	// Syncing is when a pod takes a cluster: from then on it watches it and compares its Applications. Synced and
	// Failed are how that ended.
	Syncing Kind = "syncing"
	Synced  Kind = "synced"
	Failed  Kind = "failed"
	// Invalidated is when a pod leaves a cluster.
	Invalidated Kind = "invalidated"
	// Refreshed is when a pod takes up a refresh that was asked for: a nudge that arrived.
	Refreshed Kind = "refreshed"
	// Claimed is when a pod takes another slot than it had: it has none of its clusters any more, and says nothing of
	// it.
	Claimed Kind = "claimed"
)

// Event is one line. At is when the process wrote it, by its own clock.
type Event struct {
	At          time.Time
	Pod         string
	Kind        Kind
	Server      string // of a cluster's
	Shard       int    // of Assigned, Changed and Claimed: the new one
	Application string // of Refreshed
}

type logLine struct {
	Time        time.Time `json:"time"`
	Msg         string    `json:"msg"`
	Server      string    `json:"server"`
	Application string    `json:"application"`
}

// ReadEvents reads what a pod's processes have logged and calls take for each event, in its order. It gives the number
// of bytes of the whole lines: the last one may still be being written. What is not JSON, as a panic's trace is not, is
// no event.
func ReadEvents(pod string, r io.Reader, take func(Event)) (int64, error) {
	lines := bufio.NewReader(r)
	for read := int64(0); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return read, nil
		}
		if err != nil {
			return read, fmt.Errorf("reading the log of %q: %w", pod, err)
		}
		read += int64(len(line))
		if e, ok := parseLine(pod, line); ok {
			take(e)
		}
	}
}

func parseLine(pod string, line []byte) (Event, bool) {
	line = bytes.TrimSpace(line)
	if !bytes.HasPrefix(line, []byte("{")) {
		return Event{}, false
	}
	var l logLine
	if err := json.Unmarshal(line, &l); err != nil || l.Time.IsZero() {
		return Event{}, false
	}
	e := Event{At: l.Time, Pod: pod, Server: l.Server}
	switch l.Msg {
	case "ArgoCD Application Controller is starting":
		e.Kind = Began
	case "clean shutdown":
		e.Kind = Ended
	case "Start syncing cluster":
		e.Kind = Syncing
	case "Cluster successfully synced":
		e.Kind = Synced
	case "Failed to sync cluster":
		e.Kind = Failed
	case "Invalidated cluster":
		e.Kind = Invalidated
	default:
		return e.read(l)
	}
	return e, e.Server != "" || e.Kind == Began || e.Kind == Ended
}

// read takes the messages that carry more than a field does.
func (e Event) read(l logLine) (Event, bool) {
	if strings.HasPrefix(l.Msg, "Refreshing app status (") && strings.Contains(l.Msg, " refresh requested)") {
		e.Kind, e.Application = Refreshed, l.Application
		return e, l.Application != ""
	}
	words := strings.Fields(l.Msg)
	if len(words) < 2 || words[0] != "Cluster" {
		return Event{}, false
	}
	e.Server = words[1]
	rest, last := strings.Join(words[2:len(words)-1], " "), words[len(words)-1]
	switch {
	case rest == "has been assigned to shard":
		e.Kind = Assigned
	case strings.HasPrefix(rest, "has changed shard from "):
		e.Kind = Changed
	default:
		return Event{}, false
	}
	var err error
	e.Shard, err = strconv.Atoi(last)
	return e, err == nil
}
