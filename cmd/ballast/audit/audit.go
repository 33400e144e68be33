// Package audit is `ballast audit`.
package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ballast/webhook/auditlog"
)

type options struct {
	output       string
	since, until string
	users        []string
	objects      []string
	reasons      []string
	namespaces   []string
	planners     []string
	all          bool
	now          func() time.Time
}

// NewCommand makes `ballast audit`.
func NewCommand() *cobra.Command {
	o := &options{now: time.Now}
	cmd := &cobra.Command{
		Use:     "audit [FILE...]",
		Short:   "Show from the API server's audit log who tried what, and what was enforced",
		Long:    auditLong(),
		Example: auditExamples,
		RunE: func(cmd *cobra.Command, files []string) error {
			return o.run(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), files)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "table", "table, json (an object a line) or totals (a row a user)")
	f.StringVar(&o.since, "since", "", "only writes from this `time` on: RFC 3339, or how long ago (90m, 24h)")
	f.StringVar(&o.until, "until", "", "only writes before this `time`: RFC 3339, or how long ago")
	f.StringArrayVar(&o.users, "user", nil,
		"only users of this `pattern`, impersonating or impersonated; * matches any text, a leading ! excludes; may be repeated")
	f.StringArrayVar(&o.objects, "object", nil, "only objects of this `pattern`, as kind/name or name: secret/prod-*; as for --user")
	f.StringArrayVarP(&o.namespaces, "namespace", "n", nil, "only namespaces of this `pattern`; as for --user")
	f.StringArrayVar(&o.reasons, "reason", nil, "only reasons of this `pattern`, those too that are not shown without; as for --user")
	f.StringArrayVar(&o.planners, "planner-user", nil,
		"`user` of a planner, whose upkeep of its plan, history and key is not shown (default: ServiceAccount ballast-planner of the object's namespace); may be repeated")
	f.BoolVar(&o.all, "all", false, "also writes that agreed with the plan, and those that a rule lets pass")
	return cmd
}

const auditExamples = `  ballast audit /var/log/kubernetes/audit.log
  ballast audit --since 24h --user '!system:serviceaccount:argocd:ballast-planner' audit-*.log.gz audit.log
  ballast audit -o totals audit.log
  tail -n +1 -F audit.log | ballast audit -o json | jq 'select(.effect == "Bypassed")'`

const auditActs = `The powerful acts, as they stand under REQUESTED; a dash takes away, and "invalid" is what ballast does not read
    pins.CLUSTER, pins     a pin in data.pins; of more than 20, how many
    enforcement=off        break-glass: every write passes but one to data.plan, and what the API server's policies refuse
    paused=true            freeze: it begins nothing by itself
    cordon=3,5             replicas to empty
    rollback-to=12         back to an earlier plan
    rebase=true            references are taken anew (undo: as they were before)
    tripped=-              ballast stopped itself, and may go on
    accept-discovery=12    so many clusters are right, although there were more
    unmanaged=true         a Secret or the workload opts out
    pin=3                  a Secret's own pin
    selected=-             a Secret is none of discover.selector's any more (true: it is again)
    secret-type=cluster    a Secret becomes a cluster's, with the annotations that it brings along
    secret-type=-          a Secret is no cluster's any more
In the planner's own name they stand where it made a plan ConfigMap anew that somebody had deleted (which is shown,
too): what people had written there comes back with it. In any other write of its name they are not its own.

Shown are also those that no webhook is asked about (NotAsked): deletions of Secrets (the log does not tell which were a
cluster's), of the plan, the history and the workload; writes to ballast's ConfigMaps and Secrets, but for its planner's to
plan, history and key; changes of its webhook configuration and admission policies; writes to the workload's status by
others than Kubernetes' controllers, which may bring an opt-out along (the log does not tell); resizes of the workload's pods
(patch resize), which ballast puts back. Under components/fail-closed no webhook is asked about Secrets that are written in
the planner's name: those by the token of its pod are shown by --all, as its resizes are, and those of anybody who
impersonates it, or had a token made for it, always. Shown is, too, who has a token of its account, or another of ballast's,
made (create token) and is no node, whose kubelet makes those of its pods; and Kubernetes (system:kube-controller-manager)
where it puts a token into a Secret: the log does not tell whose it is; who made that Secret stands in an earlier line of it.
Deletions of Secrets are shown in namespace argocd, in those that -n names, and in those where the log has shown ballast
at work before. A deletion is never shown as a dry run: what makes it one stands in the request's body, which the log does
not hold. Nor is a token, which the API server makes all the same. The planner is the ServiceAccount ballast-planner of the
namespace; --planner-user names the one that you renamed.`

const auditReasons = `Reasons
    InPlan        it agreed with the plan
    Restored      the plan's value was put back
    Assigned      a cluster that is not in the plan yet has a replica
    Pinned        a person's pin decided
    PinAdded      rows that somebody edited in the plan became pins
    PinRefused    a pin that cannot be: the one write that the webhook refuses. What the API server's policies refuse (the
                  plan or history by another's hand, filler, oversize, immutable, owners) has no reason of ballast's
    PlanKept      the plan, which only the planner writes, was put back
    StalePlan     the plan is damaged or was deleted, and the last good one decided; or it stopped every replica, and no
                  planner ended that within 15 minutes: replicas pass then
    Immutable     the Secret can no longer be changed, so that its shard stays; or Kubernetes would refuse the size
    NoPlan        there is no plan: it passed
    Observing     the plan only observes, or enforcement is switched off: it passed
    Unmanaged     the object is none of ballast's, or opted out: it passed
    Faulted       ballast failed: it passed
    FailedOpen    no webhook answered: it passed (failurePolicy Ignore)
    FailedClosed  no webhook answered: it was refused (failurePolicy Fail)
    NotAsked      no webhook is asked: a deletion, or a write to what ballast remembers, is configured by or registered with
    invalid       the log names a reason that ballast does not have`

func auditLong() string {
	return `audit reads audit logs of the API server (JSON lines; plain or gzip; "-" or no file is the standard input) and answers who
tried what on which object, what was enforced instead, and at which revision of the plan. It asks no cluster.

Shown are the writes that were rewritten, refused, passed unchanged because ballast failed (Faulted) or because no webhook
answered (FailedOpen; FailedClosed where the failure policy refused them), those of an immutable Secret, and the powerful
acts. --all shows every write that ballast was asked about. RESULT says what became of the write as a whole. A request that
authorization or an earlier admission plugin refused never came to ballast, and is here only where it is NotAsked. A patch
that the API server repeats, since another write came between, is shown as ballast answered its first attempt: the log
keeps no other answer.

` + auditActs + `

` + auditReasons + `

Turning the audit log on: give the API server --audit-policy-file and --audit-log-path (--audit-log-maxsize and
--audit-log-maxbackup rotate it). This policy is enough; in one that you have, put its rule first, with Argo CD's namespace:

` + indent(auditlog.Policy, "    ") + `
Keep to level Metadata. It records who wrote, when, and ballast's annotations. Level Request adds the objects: every cluster
Secret's bearer token would stand in the log; and on Kubernetes 1.36 a server-side apply of a YAML body loses its event at
that level. Logs of the levels Request and RequestResponse are read as well; nothing of an object is ever printed.

A log shipper's wrapper has to come off first: jq -c '.log | fromjson'. Rotated files are best given oldest first. A request
that stands in two of them is counted once. Lines that cannot be read are counted at the end, and stop nothing.`
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by) + "\n"
}

// auditWriter is a form of output.
type auditWriter interface {
	write(auditlog.Write) error
	// end writes what is left.
	end() error
}

func (o *options) run(in io.Reader, out, notes io.Writer, files []string) error {
	filter, err := o.filter()
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(out, 64<<10)
	w, err := o.writer(buffered)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	log, hidden := auditlog.NewLog(auditlog.Options{Namespaces: o.sites(), Planners: o.planners}), 0
	each := func(write auditlog.Write) error {
		switch {
		case !filter.Covers(write):
			return nil
		case o.output != "totals" && !filter.Shows(write):
			hidden++
			return nil
		}
		return w.write(write)
	}
	var unread []error
	for _, file := range files {
		err := readAudit(log, file, in, buffered, each)
		if full := (*outputError)(nil); errors.As(err, &full) {
			return full
		}
		unread = append(unread, err)
	}
	if err := errors.Join(w.end(), buffered.Flush()); err != nil {
		return &outputError{err}
	}
	noteAudit(notes, log, hidden)
	return errors.Join(unread...)
}

// outputError tells a failure to write from one to read, after which the other files are still read.
type outputError struct{ cause error }

func (e *outputError) Error() string { return "writing the output: " + e.cause.Error() }

func (e *outputError) Unwrap() error { return e.cause }

func readAudit(log *auditlog.Log, file string, in io.Reader, out *bufio.Writer, each func(auditlog.Write) error) error {
	name := file
	if file == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("opening an audit log: %w", err)
		}
		defer f.Close()
		in = f
	}
	plain, err := unzip(flushingReader{in, out})
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	return log.Read(name, plain, func(w auditlog.Write) error {
		if err := each(w); err != nil {
			return &outputError{err}
		}
		return nil
	})
}

// flushingReader puts out what is known before it waits for more: a log may be followed.
type flushingReader struct {
	io.Reader
	out *bufio.Writer
}

func (r flushingReader) Read(p []byte) (int, error) {
	if err := r.out.Flush(); err != nil {
		return 0, &outputError{err}
	}
	return r.Reader.Read(p)
}

// unzip knows gzip by its first bytes, whatever a file is called.
func unzip(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	first, err := b.Peek(2)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.Equal(first, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	return gzip.NewReader(b)
}

// sites are the namespaces that are known to be Argo CD's before the log tells.
func (o *options) sites() []string {
	named := slices.Clone(o.namespaces)
	return append(slices.DeleteFunc(named, func(n string) bool { return strings.ContainsAny(n, "!*?") }), "argocd")
}

func (o *options) filter() (auditlog.Filter, error) {
	f := auditlog.Filter{
		Users: auditlog.NewGlobs(o.users...), Objects: auditlog.NewGlobs(o.objects...),
		Namespaces: auditlog.NewGlobs(o.namespaces...),
		Reasons:    auditlog.NewGlobs(o.reasons...), All: o.all,
	}
	for _, r := range o.reasons {
		known := slices.Contains(auditlog.Reasons(), strings.TrimPrefix(r, "!"))
		if !known && !strings.ContainsAny(r, "*?") {
			return f, fmt.Errorf("--reason: %q is none of %s", r, strings.Join(auditlog.Reasons(), ", "))
		}
	}
	var err error
	if f.Since, err = o.bound("--since", o.since); err != nil {
		return f, err
	}
	f.Until, err = o.bound("--until", o.until)
	return f, err
}

// bound reads a point in time; zero for none.
func (o *options) bound(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return o.now().Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%s: %q is neither a time (2026-08-01T12:00:00Z) nor how long ago (90m, 24h)", flag,
		text)
}
