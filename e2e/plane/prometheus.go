package plane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"

	"ballast/e2e/assets"
	"ballast/e2e/plane/network"
	"ballast/e2e/plane/process"
)

// PrometheusOptions say what a Prometheus scrapes and remembers.
type PrometheusOptions struct {
	// Config is prometheus.yml. The binary knows static_configs and
	// file_sd_configs only. Nil scrapes nothing.
	Config []byte
	// OpenMetrics is a past: samples with timestamps, in the OpenMetrics text
	// format with its # EOF. Nil: none.
	OpenMetrics io.Reader
	// ListenAddr is host:port. Empty: a free port of the plane's own address.
	ListenAddr string
}

// StartPrometheus writes the past into the database, starts on it, and returns
// the server's URL when it answers queries.
func (p *Plane) StartPrometheus(ctx context.Context, o PrometheusOptions) (url string, err error) {
	err = p.step(assets.Prometheus, func() error {
		url, err = p.startPrometheus(ctx, o)
		return err
	})
	return url, err
}

func (p *Plane) startPrometheus(ctx context.Context, o PrometheusOptions) (string, error) {
	dir, err := os.MkdirTemp(p.dir, "prometheus-")
	if err != nil {
		return "", fmt.Errorf("making Prometheus's folder: %w", err)
	}
	if err := os.WriteFile(dir+"/prometheus.yml", o.Config, 0o600); err != nil {
		return "", fmt.Errorf("writing Prometheus's configuration: %w", err)
	}
	if o.OpenMetrics != nil {
		if err := p.writePast(ctx, dir, o.OpenMetrics); err != nil {
			return "", err
		}
	}
	address := o.ListenAddr
	if address == "" {
		port, err := network.FreePort(p.network.Host())
		if err != nil {
			return "", err
		}
		address = net.JoinHostPort(p.network.Host(), strconv.Itoa(port))
	}
	c, err := p.run(assets.Prometheus, assets.Prometheus, "--config.file="+dir+"/prometheus.yml",
		"--storage.tsdb.path="+dir+"/data",
		"--storage.tsdb.retention.time=3650d", "--storage.tsdb.no-lockfile", "--web.listen-address="+address,
		"--log.level=warn")
	if err != nil {
		return "", err
	}
	url := "http://" + address
	return url, c.Await(ctx, healthy(url+"/-/ready", nil, nil))
}

// writePast turns samples into blocks of the database, as a backfill does.
func (p *Plane) writePast(ctx context.Context, dir string, samples io.Reader) error {
	past, err := os.Create(dir + "/past.om")
	if err != nil {
		return fmt.Errorf("making the file of past samples: %w", err)
	}
	_, err = io.Copy(past, samples)
	if closed := past.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("writing past samples: %w", err)
	}
	cmd := exec.Command(p.binaries.Path(assets.Promtool), "tsdb", "create-blocks-from", "openmetrics", past.Name(),
		dir+"/data")
	cmd.Dir, cmd.Env = dir, p.env()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := p.runToEnd(ctx, assets.Promtool, cmd); err != nil {
		return fmt.Errorf("importing past samples: %w: %s", err, process.Tail(out.String()))
	}
	return nil
}

// StopPrometheus ends every Prometheus of the plane, as an outage does.
func (p *Plane) StopPrometheus() {
	p.mu.Lock()
	parts := p.parts
	p.mu.Unlock()
	for _, c := range parts {
		if c.Name == assets.Prometheus {
			c.End()
		}
	}
}
