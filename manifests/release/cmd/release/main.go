// The release command makes what a release consists of into a folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"ballast/manifests/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o release.Options
	flag.StringVar(&o.Checkout, "checkout", ".", "folder of the sources")
	flag.StringVar(&o.Out, "out", "bin/release", "folder to fill")
	flag.StringVar(&o.Version, "version", "devel", "version of the release")
	flag.StringVar(&o.Commit, "commit", "unknown", "commit of the sources")
	flag.StringVar(&o.Image, "image", "ballast", "repository that the image will be pulled from")
	flag.StringVar(&o.URL, "url", "https://releases.invalid/ballast",
		"folder that the archives will be downloaded from")
	seconds := flag.Int64("time", 0, "time of everything, in seconds since 1970: the commit's")
	flag.Parse()
	o.Time = time.Unix(*seconds, 0).UTC()
	if err := release.Make(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
