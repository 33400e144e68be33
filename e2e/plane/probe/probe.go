// Package probe carries out a container's probes against its loopback address.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kind is what a probe's verdict decides: traffic, or a restart.
type Kind string

// The kinds of probes.
const (
	Readiness Kind = "Readiness"
	Liveness  Kind = "Liveness"
	Startup   Kind = "startup"
)

// Verdict is a probe that reached one of its thresholds; a nil error is the
// success threshold.
type Verdict struct {
	Kind Kind
	Err  error
}

// eager is how often a process that has not passed yet is probed: waiting for
// a period of 10 s to come round would be most of a test's time.
const eager = 100 * time.Millisecond

// prober executes one probe of a pod against its loopback address.
type prober struct {
	kind      Kind
	probe     *corev1.Probe
	container *corev1.Container
	address   string
}

// probes are those of one run of a process.
type probes struct {
	container *corev1.Container
	address   string
	verdicts  chan Verdict
}

// Start probes until the context ends. Readiness and Liveness begin
// after startup has passed. Only verdicts that the runner acts upon arrive:
// readiness either way, failures of the others.
func Start(ctx context.Context, c *corev1.Container, address string) <-chan Verdict {
	p := &probes{container: c, address: address, verdicts: make(chan Verdict)}
	if c.StartupProbe == nil {
		p.startRest(ctx)
		return p.verdicts
	}
	starting, started := context.WithCancel(ctx)
	p.start(starting, Startup, c.StartupProbe, func(v Verdict) {
		if v.Err != nil {
			p.send(ctx, v)
			return
		}
		started()
		p.startRest(ctx)
	})
	return p.verdicts
}

// startRest starts what is probed of a process that has started. One without a
// readiness probe is ready at once.
func (p *probes) startRest(ctx context.Context) {
	send := func(v Verdict) { p.send(ctx, v) }
	p.start(ctx, Liveness, p.container.LivenessProbe, send)
	p.start(ctx, Readiness, p.container.ReadinessProbe, send)
	if p.container.ReadinessProbe == nil {
		go send(Verdict{Kind: Readiness})
	}
}

func (p *probes) start(ctx context.Context, kind Kind, probe *corev1.Probe, report func(Verdict)) {
	if probe != nil {
		go (&prober{kind: kind, probe: probe, container: p.container, address: p.address}).run(ctx, report)
	}
}

func (p *probes) send(ctx context.Context, v Verdict) {
	if v.Err == nil && v.Kind != Readiness {
		return
	}
	select {
	case p.verdicts <- v:
	case <-ctx.Done():
	}
}

// run reports each time a threshold is reached. Failures are counted in time,
// threshold minus one periods, and not in tries: an eager one fails no sooner.
func (p *prober) run(ctx context.Context, report func(Verdict)) {
	period := seconds(p.probe.PeriodSeconds, 10)
	patience := period * time.Duration(max(p.probe.FailureThreshold, 1)-1)
	good, passed := int32(0), false
	var failing time.Time
	for wait := seconds(p.probe.InitialDelaySeconds, 0); pause(ctx, wait); wait = p.interval(passed) {
		err := p.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			good, failing = good+1, time.Time{}
			if good >= max(p.probe.SuccessThreshold, 1) {
				passed = true
				report(Verdict{Kind: p.kind})
			}
			continue
		}
		good = 0
		if failing.IsZero() {
			failing = time.Now()
		}
		if time.Since(failing) >= patience {
			report(Verdict{Kind: p.kind, Err: err})
		}
	}
}

func (p *prober) interval(passed bool) time.Duration {
	period := seconds(p.probe.PeriodSeconds, 10)
	if !passed && p.kind != Liveness {
		return min(eager, period)
	}
	return period
}

func seconds(n, unset int32) time.Duration {
	if n == 0 {
		n = unset
	}
	return time.Duration(n) * time.Second
}

func (p *prober) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(p.probe.TimeoutSeconds, 1))
	defer cancel()
	switch {
	case p.probe.HTTPGet != nil:
		return p.http(ctx, p.probe.HTTPGet)
	case p.probe.TCPSocket != nil:
		return p.tcp(ctx, p.probe.TCPSocket)
	}
	return errors.New("probing: only httpGet and tcpSocket are executed here")
}

func (p *prober) tcp(ctx context.Context, action *corev1.TCPSocketAction) error {
	target, err := p.target(action.Host, action.Port)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		return err
	}
	return conn.Close()
}

// http does not verify the certificate nor follow redirects, and takes 200 to
// 399 for a success: as the kubelet does.
func (p *prober) http(ctx context.Context, action *corev1.HTTPGetAction) error {
	target, err := p.target(action.Host, action.Port)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(string(action.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		scheme+"://"+target+"/"+strings.TrimPrefix(action.Path, "/"), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "kube-probe/1.36")
	for _, h := range action.HTTPHeaders {
		req.Header.Set(h.Name, h.Value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("asking %q: status %s", action.Path, resp.Status)
	}
	return nil
}

// target resolves a port's name among those of the container.
func (p *prober) target(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = p.address
	}
	number := port.IntValue()
	if port.Type == intstr.String && number == 0 {
		for _, c := range p.container.Ports {
			if c.Name == port.StrVal {
				number = int(c.ContainerPort)
			}
		}
	}
	if number == 0 {
		return "", fmt.Errorf("finding port %q of container %q: there is none", port.String(), p.container.Name)
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}

// pause waits, and tells whether it could: false when the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
