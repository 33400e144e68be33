package plane

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"

	"ballast/e2e/assets"
	"ballast/e2e/plane/network"
)

// StartRedis runs a Redis that takes the password and keeps nothing, and gives
// its address when it listens.
func (p *Plane) StartRedis(ctx context.Context, a assets.ArgoCD, password string) (address string, err error) {
	port, err := network.FreePort(p.network.Host())
	if err != nil {
		return "", err
	}
	address = net.JoinHostPort(p.network.Host(), strconv.Itoa(port))
	cmd := exec.Command(a.Redis(), "--listen="+address)
	cmd.Dir, cmd.Env = p.dir, p.env("REDIS_PASSWORD="+password)
	c, err := p.start("redis", cmd)
	if err != nil {
		return "", err
	}
	return address, c.Await(ctx, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("connecting to Redis: %w", err)
		}
		return conn.Close()
	})
}
