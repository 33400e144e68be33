package plane

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

// probeKind is what a probe's verdict decides: traffic, or a restart.
type probeKind string

const (
	readiness probeKind = "readiness"
	liveness  probeKind = "liveness"
	startup   probeKind = "startup"
)

// verdict is a probe that reached one of its thresholds; a nil error is the
// success threshold.
type verdict struct {
	kind probeKind
	err  error
}

// eager is how often a process that has not passed yet is probed: waiting for
// a period of 10 s to come round would be most of a test's time.
const eager = 100 * time.Millisecond

// prober executes one probe of a pod against its loopback address.
type prober struct {
	kind      probeKind
	probe     *corev1.Probe
	container *corev1.Container
	address   string
}

// startProbes probes until the context ends. Readiness and liveness begin
// after startup has passed. Only verdicts that the runner acts upon arrive:
// readiness either way, failures of the others.
func (r *podRunner) startProbes(ctx context.Context) <-chan verdict {
	verdicts := make(chan verdict)
	pod := r.current()
	c := &pod.Spec.Containers[0]
	address, err := r.kubelet.plane.network.loopback(pod.Status.PodIP)
	if err != nil {
		address = pod.Status.PodIP
	}
	start := func(kind probeKind, p *corev1.Probe, on func(verdict)) {
		if p != nil {
			go (&prober{kind: kind, probe: p, container: c, address: address}).run(ctx, on)
		}
	}
	send := func(v verdict) {
		if v.err == nil && v.kind != readiness {
			return
		}
		select {
		case verdicts <- v:
		case <-ctx.Done():
		}
	}
	rest := func() {
		start(liveness, c.LivenessProbe, send)
		start(readiness, c.ReadinessProbe, send)
		if c.ReadinessProbe == nil {
			go send(verdict{kind: readiness})
		}
	}
	if c.StartupProbe == nil {
		rest()
		return verdicts
	}
	started := false // touched by the startup prober's goroutine only
	start(startup, c.StartupProbe, func(v verdict) {
		switch {
		case v.err != nil && !started:
			send(v)
		case v.err == nil && !started:
			started = true
			rest()
		}
	})
	return verdicts
}

// run reports each time a threshold is reached. Failures are counted in time,
// threshold minus one periods, and not in tries: an eager one fails no sooner.
func (p *prober) run(ctx context.Context, report func(verdict)) {
	if !pause(ctx, seconds(p.probe.InitialDelaySeconds, 0)) {
		return
	}
	period := seconds(p.probe.PeriodSeconds, 10)
	patience := period * time.Duration(max(p.probe.FailureThreshold, 1)-1)
	good, passed := int32(0), false
	var failing time.Time
	for {
		err := p.once(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			good, failing = good+1, time.Time{}
			if good >= max(p.probe.SuccessThreshold, 1) {
				passed = true
				report(verdict{kind: p.kind})
			}
		default:
			good = 0
			if failing.IsZero() {
				failing = time.Now()
			}
			if time.Since(failing) >= patience {
				report(verdict{kind: p.kind, err: err})
			}
		}
		wait := period
		if !passed && p.kind != liveness {
			wait = min(eager, period)
		}
		if !pause(ctx, wait) {
			return
		}
	}
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
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // as the kubelet
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+target+"/"+strings.TrimPrefix(action.Path, "/"), nil)
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
