// Command redis is a server that speaks Redis and forgets everything when it ends: what an Argo CD without a past
// needs. It takes the password from REDIS_PASSWORD, as Argo CD does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:6379", "address and port")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *listen, os.Getenv("REDIS_PASSWORD")); err != nil {
		fmt.Fprintln(os.Stderr, "redis:", err)
		os.Exit(1)
	}
}

// serve lets time pass: this server expires keys only when it is told the time.
func serve(ctx context.Context, address, password string) error {
	server := miniredis.NewMiniRedis()
	server.RequireAuth(password)
	if err := server.StartAddr(address); err != nil {
		return fmt.Errorf("listening on %q: %w", address, err)
	}
	defer server.Close()
	const step = time.Second
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			server.FastForward(step)
		}
	}
}
