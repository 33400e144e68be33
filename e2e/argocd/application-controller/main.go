// Command application-controller is Argo CD's own, as upstream's image runs it, with what a container gives it beside
// its environment: a host name and an address of its own.
//
//   - The controller finds its shard at the end of its host name or, distributed dynamically, claims one under it. Here that is
//     the machine's, so it is told HOSTNAME instead.
//   - It serves metrics and health on every address of its host, which here it shares with the other replicas. So it gets a
//     port of its own, and what comes in at port 8082 of PLANE_POD_IP is passed on to it.
package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	"github.com/argoproj/argo-cd/v3/common"
	_ "github.com/argoproj/argo-cd/v3/controller/sharding" // whose variable hostname is
	"github.com/argoproj/argo-cd/v3/util/log"
	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
)

// hostname is what Argo CD's sharding asks for the host name: the variable that its own tests replace. Were it called
// otherwise, this one would be nil.
//
//go:linkname hostname github.com/argoproj/argo-cd/v3/controller/sharding.osHostnameFunction
var hostname func() (string, error)

func main() {
	// Upstream's main formats klog so; the rest is formatted from the first line on, and not from when the flags are
	// read: that line tells when a process began.
	logrus.SetFormatter(log.CreateFormatter(log.JsonFormat))
	klog.SetLogger(log.NewLogrusLogger(log.NewWithCurrentConfig()))
	if err := run(os.Getenv("HOSTNAME"), os.Getenv("PLANE_POD_IP"), flags(os.Args[1:])); err != nil {
		fmt.Fprintln(os.Stderr, "application-controller:", err)
		os.Exit(1)
	}
}

// flags leaves out the first word of upstream's manifests, where it names the program for the image's entrypoint.
func flags(args []string) []string {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args[1:]
	}
	return args
}

func run(pod, podIP string, args []string) error {
	if hostname == nil {
		return errors.New("this Argo CD asks for its host name elsewhere: look for os.Hostname in controller/sharding")
	}
	if pod != "" {
		hostname = func() (string, error) { return pod, nil }
	}
	if podIP != "" {
		port, err := ownPort(podIP)
		if err != nil {
			return err
		}
		if err := passOn(net.JoinHostPort(podIP, strconv.Itoa(common.DefaultPortArgoCDMetrics)), port); err != nil {
			return err
		}
		args = append(args, "--metrics-port", strconv.Itoa(port))
	}
	command := commands.NewCommand()
	command.SetArgs(args)
	return command.Execute()
}

// ownPort is one that nobody listens on, on any address. It lies below the ephemeral ports, so that no connection takes
// it before the controller does, and the search begins elsewhere for each pod, so that two that start at once do not
// meet.
func ownPort(podIP string) (int, error) {
	const first, count = 20000, 10000
	h := fnv.New32a()
	_, _ = h.Write([]byte(podIP))
	var last error
	for i := range 100 {
		port := first + (int(h.Sum32()%count)+i)%count
		listener, err := net.Listen("tcp", net.JoinHostPort("0.0.0.0", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("finding a port for metrics: %w", last)
}

// passOn carries connections to the port of this process. While nobody listens there, which is until the controller has
// its caches, a connection is closed at once, as one to the pod would be refused.
func passOn(address string, port int) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening for metrics: %w", err)
	}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				logrus.WithError(err).Fatal("Failed to accept connections for metrics")
			}
			go carry(near, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		}
	}()
	return nil
}

func carry(near net.Conn, to string) {
	defer near.Close()
	away, err := net.DialTimeout("tcp", to, time.Second)
	if err != nil {
		return
	}
	defer away.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, away}, {away, near}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // whichever side ends, ends both
			done <- struct{}{}
		}()
	}
	<-done
}
