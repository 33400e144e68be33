package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"ballast/cmd/ballast/say"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, as it would without us
	root := newRootCommand()
	root.SetArgs(asCalled(root, os.Args))
	err := root.ExecuteContext(ctx)
	say.Flush(root)
	if err != nil {
		say.Error(say.Clean(os.Stderr), err)
		os.Exit(say.ExitCode(err))
	}
}
