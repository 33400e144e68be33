package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"ballast/cmd/ballast/say"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		ends = append(ends, syscall.SIGHUP)
		// It comes twice, from the shell and from the terminal that goes: the second one ends nothing.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
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
