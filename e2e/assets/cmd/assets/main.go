// The assets command builds the control plane's binaries, if they are not
// built yet, and prints their folder: what KUBEBUILDER_ASSETS is set to.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"ballast/e2e/assets"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "assets:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := assets.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if _, err := assets.BuildArgoCD(ctx, os.Stderr); err != nil {
		return err
	}
	if _, err := assets.BuildHelm(ctx, os.Stderr); err != nil {
		return err
	}
	fmt.Println(b.Dir)
	return nil
}
