package site

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AuditEvent is what the API server's audit log says of a write. The fields from Webhook on are ballast's annotations,
// empty where none of its webhooks saw the write.
type AuditEvent struct {
	Time       time.Time
	User       string
	Verb       string
	Resource   string // with its subresource: statefulsets/scale
	Name       string
	Code       int32
	Webhook    string // clusters | controllers | scale | plan | pods
	Reason     string
	Revision   int
	Requested  string
	Enforced   string
	DryRun     bool
	FailedOpen bool // the webhook did not answer
}

type auditLine struct {
	Stage                    string            `json:"stage"`
	Verb                     string            `json:"verb"`
	RequestURI               string            `json:"requestURI"`
	RequestReceivedTimestamp time.Time         `json:"requestReceivedTimestamp"`
	Annotations              map[string]string `json:"annotations"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int32 `json:"code"`
	} `json:"responseStatus"`
}

const webhookSuffix = ".ballast.argoproj.io/"

// Ours reports whether one of ballast's webhooks saw the write, or should have.
func (e AuditEvent) Ours() bool { return e.Webhook != "" || e.FailedOpen }

// Audit reads the writes in the audit log, in its order.
func (s *Site) Audit() ([]AuditEvent, error) {
	f, err := os.Open(s.Plane.AuditLogPath())
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer f.Close()
	return readAudit(f)
}

func readAudit(r io.Reader) ([]AuditEvent, error) {
	var events []AuditEvent
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return events, nil // a last line without its end is being written
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var l auditLine
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("reading line %d of the audit log: %w", n, err)
		}
		if e, write := l.event(); write {
			events = append(events, e)
		}
	}
}

func (l auditLine) event() (AuditEvent, bool) {
	if l.Stage != "ResponseComplete" || l.ObjectRef == nil || slices.Contains([]string{"get", "list", "watch"}, l.Verb) {
		return AuditEvent{}, false
	}
	e := AuditEvent{
		Time: l.RequestReceivedTimestamp, User: l.User.Username, Verb: l.Verb, Resource: l.ObjectRef.Resource,
		Name:   l.ObjectRef.Name,
		DryRun: strings.Contains(l.RequestURI, "dryRun=All"),
	}
	if l.ObjectRef.Subresource != "" {
		e.Resource += "/" + l.ObjectRef.Subresource
	}
	if l.ResponseStatus != nil {
		e.Code = l.ResponseStatus.Code
	}
	for key, value := range l.Annotations {
		if strings.HasPrefix(key, "failed-open.") && strings.Contains(value, "ballast.argoproj.io") {
			e.FailedOpen = true
		}
		if webhook, field, found := strings.Cut(key, webhookSuffix); found && !strings.Contains(webhook, "/") {
			e.Webhook = webhook
			e.set(field, value)
		}
	}
	return e, true
}

func (e *AuditEvent) set(field, value string) {
	switch field {
	case "reason":
		e.Reason = value
	case "revision":
		e.Revision, _ = strconv.Atoi(value)
	case "requested":
		e.Requested = value
	case "enforced":
		e.Enforced = value
	}
}
