// Command progress prints what `go test -json` says on standard input as `go test` prints it, and meanwhile, about
// twice a minute, what is running and for how long: a package that takes minutes looks like one that hangs.
//
// It ends with exit code 0 whatever the tests say, so that a pipeline's exit code is go test's.
package main

import (
	"fmt"
	"os"
	"time"
)

// quiet is how long nothing is printed before what runs is told.
const quiet = 30 * time.Second

func main() {
	if err := follow(os.Stdin, os.Stdout, time.Now, quiet); err != nil {
		fmt.Fprintln(os.Stderr, "progress: reading what go test says:", err)
		os.Exit(1)
	}
}
