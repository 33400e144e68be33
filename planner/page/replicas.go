package page

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/observed"
	"ballast/planner/page/view"
	"ballast/planner/page/wording"
	"ballast/planner/plan"
	"ballast/planner/plan/probing"
	"ballast/planner/printable"
)

func serverOf(s plan.Shard) string { return printable.Server(s.Server) }

func replicaTable(s scene) *view.Replicas {
	type sum struct {
		load             plan.Load
		clusters, pinned int
	}
	sums := make([]sum, s.replicas)
	for _, c := range s.clusters {
		if c.at < 0 || c.at >= s.replicas {
			continue
		}
		r := &sums[c.at]
		r.load, r.clusters = r.load.Plus(c.load), r.clusters+1
		if c.pinned {
			r.pinned++
		}
	}
	p := s.Document.Plan
	t := &view.Replicas{Sizes: p.Sizes != nil || p.Resources != nil}
	for i, r := range sums {
		row := view.ReplicaRow{ID: strconv.Itoa(i), Clusters: wording.Count(r.clusters), Load: r.load.Display(),
			Of: percent(r.load, s.capacity), Pinned: wording.Count(r.pinned),
			Level: view.Neutral, State: "no pod is seen", Holds: held(*p, i)}
		podOf(&row, s, i)
		t.Rows = append(t.Rows, row)
	}
	return t
}

// podOf says how the replica's pod is; where a Deployment replaces it, how the one is that came last in the list.
func podOf(row *view.ReplicaRow, s scene, replica int) {
	for _, pod := range s.Pods {
		if pod.Replica != replica {
			continue
		}
		row.Pod, row.Has = wording.Name(pod.Name), has(pod)
		row.State, row.Level = state(pod, s.Now)
	}
	if s.Status == nil {
		return
	}
	for _, u := range s.Status.Unwell {
		if u.Replica == replica {
			row.State, row.Level = wording.Line(u.Message), view.Bad
		}
	}
}

func state(pod observed.Pod, now time.Time) (string, view.Level) {
	text, level := "ready", view.Good
	if !pod.Ready {
		text, level = "not ready", view.Warn
	}
	if pod.Restarts > 0 {
		text += ", " + wording.Plural(pod.Restarts, "restart")
		if !pod.RestartedAt.IsZero() {
			text += ", the last " + wording.Since(pod.RestartedAt, now)
		}
	}
	if pod.OOMKilled {
		text, level = text+", killed for its memory", view.Warn
	}
	if pod.Size != nil && pod.Size.Resize != "" {
		text += ", resize " + wording.Line(string(pod.Size.Resize))
	}
	return text, level
}

// held is the size that the plan holds a replica at.
func held(p plan.Plan, replica int) string {
	if p.Resources != nil {
		return sizeText(*p.Resources)
	}
	size, ok := p.SizeOf(replica)
	if !ok {
		return "-"
	}
	return sizeText(size)
}

// has is what the node has given the pod, as far as it is known.
func has(pod observed.Pod) string {
	var parts []string
	if pod.Size != nil {
		if text := sizeText(pod.Size.Has); text != "-" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 && pod.MemoryLimit > 0 {
		parts = append(parts, "memory at most "+plan.Bytes(pod.MemoryLimit).String())
	}
	if pod.Memory > 0 {
		parts = append(parts, plan.Bytes(pod.Memory).String()+" in use")
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}

// sizeText is requests and limits of each resource.
func sizeText(r plan.Resources) string {
	names := map[string]bool{}
	for n := range r.Requests {
		names[n] = true
	}
	for n := range r.Limits {
		names[n] = true
	}
	var parts []string
	for _, n := range slices.Sorted(maps.Keys(names)) {
		request, asked := r.Requests[n]
		limit, limited := r.Limits[n]
		text := fmt.Sprintf("%s %s", n, request)
		switch {
		case limited && !asked:
			text = fmt.Sprintf("%s at most %s", n, limit)
		case limited && limit != request:
			text += " to " + limit
		}
		parts = append(parts, wording.Line(text))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// byUser is whose writes the webhooks put back or refused, as far as its pods said it; none: no leader heard them.
func byUser(f Fleet) []view.Table {
	if f.Status == nil || f.Status.PutBack == nil {
		return nil
	}
	p := f.Status.PutBack
	t := view.Table{ID: "by-user", Title: "Enforcement by user",
		Caption: "Whose writes were put back or refused since " + wording.Moment(p.Since),
		Head:    []string{"User", "Put back", "Refused", "Last"}}
	if p.Unverified {
		t.Caption += ", as callers say: whoever reaches the webhook's port may name any user (manifests/components/client-auth ends that)"
	}
	for _, u := range p.Users[:min(len(p.Users), probing.MostUsers)] {
		t.Rows = append(t.Rows, []string{wording.Name(u.User), wording.Count(u.PutBack), wording.Count(u.Refused),
			wording.Since(u.Last, f.Now)})
	}
	if p.Others > 0 {
		t.Rows = append(t.Rows, []string{"others", fmt.Sprintf("%s, put back or refused", wording.Count(p.Others)), "",
			""})
	}
	if len(t.Rows) == 0 {
		t.Rows = [][]string{{"nobody", "0", "0", ""}}
	}
	return []view.Table{t}
}
