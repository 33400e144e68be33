// Package audit is the chapter of `make demo` in which the API server's audit log is read.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ballast/e2e/demo/stage"
	"ballast/e2e/site"
)

// audited is a write as `ballast audit -o json` tells of it.
type audited struct {
	Verb        string `json:"verb"`
	Kind        string `json:"kind"`
	Subresource string `json:"subresource"`
	Name        string `json:"name"`
	Effect      string `json:"effect"`
	Reason      string `json:"reason"`
	Revision    int    `json:"revision"`
	Requested   string `json:"requested"`
	Enforced    string `json:"enforced"`
	DryRun      bool   `json:"dryRun"`
}

// Read is step 7: who tried what against the plan.
func Read(ctx context.Context, s *stage.Stage) error {
	namespace := "--namespace=" + s.Site.Fleet.Namespace
	if _, err := ballastAudit(ctx, s, true, namespace, "--user=alice"); err != nil {
		return err
	}
	text, err := ballastAudit(ctx, s, false, namespace, "--user=alice", "--all", "--output=json")
	if err != nil {
		return err
	}
	writes, err := readAudited(text)
	if err != nil {
		return err
	}
	if err := tellsAll(s, writes); err != nil {
		return err
	}
	totals, err := ballastAudit(ctx, s, true, namespace, "--output=totals")
	if err != nil {
		return err
	}
	if err := addsUp(totals, "alice", writes); err != nil {
		return err
	}
	s.Passed("the totals are the sums of her writes")
	return noSecretShown(s)
}

// ballastAudit asks the command about the API server's audit log, as somebody in the log's folder does.
func ballastAudit(ctx context.Context, s *stage.Stage, show bool, args ...string) (stdout string, err error) {
	log := s.Site.Plane.AuditLogPath()
	if show {
		s.Out.Command("ballast audit " + stage.Quote(append(slices.Clone(args), filepath.Base(log))))
	}
	stdout, stderr, err := s.Site.RunBallast(ctx, s.Bob, append(append([]string{"audit"}, args...), log)...)
	if show {
		s.Out.Seen(stdout + stderr)
	}
	return stdout, err
}

func readAudited(lines string) ([]audited, error) {
	var writes []audited
	for d := json.NewDecoder(strings.NewReader(lines)); ; {
		var w audited
		switch err := d.Decode(&w); {
		case errors.Is(err, io.EOF):
			return writes, nil
		case err != nil:
			return nil, fmt.Errorf("reading what ballast audit wrote: %w", err)
		}
		writes = append(writes, w)
	}
}

// tellsAll checks that the command has told what the log holds of alice, and that this is what she did.
func tellsAll(s *stage.Stage, writes []audited) error {
	events, err := s.Site.Audit()
	if err != nil {
		return err
	}
	var logged []audited
	for _, e := range events {
		if e.User == "alice" && e.Ours() {
			logged = append(logged, auditedOf(e))
		}
	}
	seen := map[string]bool{}
	told := slices.Clone(writes)
	for i, w := range told {
		seen[w.object()+" "+w.Reason] = true
		told[i].Effect = ""
	}
	if !slices.Equal(told, logged) {
		return fmt.Errorf("ballast audit tells of %v, want what is in the log: %v", told, logged)
	}
	for _, want := range []string{"secret Restored", "statefulset/scale Restored", "statefulset Restored", "secret Pinned", "secret Assigned", "configmap PinRefused"} {
		if !seen[want] {
			return fmt.Errorf("no write of alice's with object and reason %q, want each thing she did", want)
		}
	}
	s.Passed("everything alice did is there, with what was enforced instead")
	return nil
}

func auditedOf(e site.AuditEvent) audited {
	resource, subresource, _ := strings.Cut(e.Resource, "/")
	return audited{Verb: e.Verb, Kind: strings.TrimSuffix(resource, "s"), Subresource: subresource, Name: e.Name,
		Reason: e.Reason, Revision: e.Revision, Requested: e.Requested, Enforced: e.Enforced, DryRun: e.DryRun}
}

func (a audited) object() string {
	if a.Subresource == "" {
		return a.Kind
	}
	return a.Kind + "/" + a.Subresource
}

// addsUp checks a person's row of the totals against her writes.
func addsUp(totals, person string, writes []audited) error {
	effects, all := map[string]int{}, 0
	for _, w := range writes {
		if !w.DryRun {
			effects[w.Effect]++
			all++
		}
	}
	want := []string{person, "-", "person", strconv.Itoa(all), strconv.Itoa(effects["Rewritten"]),
		strconv.Itoa(effects["Refused"])}
	for line := range strings.Lines(totals) {
		if row := strings.Fields(line); len(row) > len(want) && row[0] == person {
			return stage.Equal("the totals of "+person, strings.Join(want, " "), strings.Join(row[:len(want)], " "))
		}
	}
	return fmt.Errorf("the totals have no row of %s", person)
}

// noSecretShown looks for the fleet's credentials in everything that the processes wrote.
func noSecretShown(s *stage.Stage) error {
	leaks, err := s.Site.Leaks()
	if err != nil {
		return err
	}
	if len(leaks) > 0 {
		return fmt.Errorf("a cluster's bearer token stands in %v, want it in no log", leaks)
	}
	s.Passed("no cluster's credentials stand in any log")
	return nil
}
