package main

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

// audit is step 7: who tried what against the plan.
func (s *story) audit(ctx context.Context) error {
	namespace := "--namespace=" + s.site.Fleet.Namespace
	if _, err := s.ballastAudit(ctx, true, namespace, "--user=alice"); err != nil {
		return err
	}
	text, err := s.ballastAudit(ctx, false, namespace, "--user=alice", "--all", "--output=json")
	if err != nil {
		return err
	}
	writes, err := readAudited(text)
	if err != nil {
		return err
	}
	if err := s.tellsAll(writes); err != nil {
		return err
	}
	totals, err := s.ballastAudit(ctx, true, namespace, "--output=totals")
	if err != nil {
		return err
	}
	if err := addsUp(totals, "alice", writes); err != nil {
		return err
	}
	s.passed("the totals are the sums of her writes")
	return s.noSecretShown()
}

// ballastAudit asks the command about the API server's audit log, as somebody in the log's folder does.
func (s *story) ballastAudit(ctx context.Context, show bool, args ...string) (stdout string, err error) {
	log := s.site.Plane.AuditLogPath()
	if show {
		s.out.Command("ballast audit " + quote(append(slices.Clone(args), filepath.Base(log))))
	}
	stdout, stderr, err := s.site.RunBallast(ctx, s.bob, append(append([]string{"audit"}, args...), log)...)
	if show {
		s.out.Seen(stdout + stderr)
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
func (s *story) tellsAll(writes []audited) error {
	events, err := s.site.Audit()
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
	s.passed("everything alice did is there, with what was enforced instead")
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
	want := []string{person, "-", "person", strconv.Itoa(all), strconv.Itoa(effects["Rewritten"]), strconv.Itoa(effects["Refused"])}
	for line := range strings.Lines(totals) {
		if row := strings.Fields(line); len(row) > len(want) && row[0] == person {
			return equal("the totals of "+person, strings.Join(want, " "), strings.Join(row[:len(want)], " "))
		}
	}
	return fmt.Errorf("the totals have no row of %s", person)
}
