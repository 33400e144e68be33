package site

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// AuditEvent is what the API server's audit log says of a write that one of ballast's webhooks saw.
type AuditEvent struct {
	Time       time.Time
	User       string
	Verb       string
	Resource   string // with its subresource: statefulsets/scale
	Name       string
	Code       int32
	Webhook    string // clusters | controllers | scale | plan
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

// Audit reads the audit log: every write with an annotation of ballast's, in the order of the log.
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
		if e, ours := l.event(); ours {
			events = append(events, e)
		}
	}
}

func (l auditLine) event() (AuditEvent, bool) {
	if l.Stage != "ResponseComplete" || l.ObjectRef == nil {
		return AuditEvent{}, false
	}
	e := AuditEvent{
		Time: l.RequestReceivedTimestamp, User: l.User.Username, Verb: l.Verb, Resource: l.ObjectRef.Resource, Name: l.ObjectRef.Name,
		DryRun: strings.Contains(l.RequestURI, "dryRun=All"),
	}
	if l.ObjectRef.Subresource != "" {
		e.Resource += "/" + l.ObjectRef.Subresource
	}
	if l.ResponseStatus != nil {
		e.Code = l.ResponseStatus.Code
	}
	ours := false
	for key, value := range l.Annotations {
		webhook, field, found := strings.Cut(key, webhookSuffix)
		if strings.HasPrefix(key, "failed-open.") && strings.Contains(value, "ballast.argoproj.io") {
			e.FailedOpen, ours = true, true
		}
		if !found || strings.Contains(webhook, "/") {
			continue
		}
		e.Webhook, ours = webhook, true
		e.set(field, value)
	}
	return e, ours
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
