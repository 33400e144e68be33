package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// nursery starts child processes that cannot outlive this one. The kernel
// sends Pdeathsig when the *thread* that started the child ends, so all are
// started from one goroutine that holds its thread until the plane is gone.
type nursery struct {
	requests chan birth
	closed   chan struct{}

	mu      sync.Mutex
	started []Process
}

type birth struct {
	cmd    *exec.Cmd
	result chan error
}

// Process is a child that a plane started at some time.
type Process struct {
	Name string
	PID  int
}

func newNursery() *nursery {
	n := &nursery{requests: make(chan birth), closed: make(chan struct{})}
	go n.serve()
	return n
}

func (n *nursery) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case b := <-n.requests:
			b.result <- b.cmd.Start()
		case <-n.closed:
			return
		}
	}
}

// start runs the command in a process group of its own, so that a ^C at the
// terminal reaches only us, and we end the children in the right order.
func (n *nursery) start(name string, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	b := birth{cmd: cmd, result: make(chan error, 1)}
	select {
	case n.requests <- b:
	case <-n.closed:
		return fmt.Errorf("starting %q: %w", name, errStopped)
	}
	if err := <-b.result; err != nil {
		return fmt.Errorf("starting %q: %w", name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.started = append(n.started, Process{Name: name, PID: cmd.Process.Pid})
	return nil
}

// errStopped is given to whoever wants something of a plane that is gone.
var errStopped = errors.New("the plane is stopped")

// close lets the thread go. Children still alive then would be killed, so it
// comes after the last of them.
func (n *nursery) close() { close(n.closed) }

func (n *nursery) all() []Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]Process(nil), n.started...)
}

// child is a running process and what became of it.
type child struct {
	name string
	pid  int
	log  string
	done chan struct{} // closed at the exit; err is set before
	err  error

	wanted atomic.Bool // end was called: the exit is no news
}

// spawn starts a command whose output goes to the end of the log file. It is a
// file and not a pipe: a grandchild that keeps a pipe open would hold Wait.
func (n *nursery) spawn(name, log string, cmd *exec.Cmd) (*child, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %q: %w", name, err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := n.start(name, cmd); err != nil {
		return nil, err
	}
	c := &child{name: name, pid: cmd.Process.Pid, log: log, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		// What it left behind goes with it, now, while its number cannot yet
		// belong to anybody else.
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
		close(c.done)
	}()
	return c, nil
}

// end asks a part of the plane to stop, waits for at most its grace, then kills
// it. It returns when the process and its group are gone.
func (c *child) end() {
	c.wanted.Store(true)
	c.signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(partGrace):
	}
	c.signal(syscall.SIGKILL)
	<-c.done
}

// signal goes to the process and its children. One that is gone gets none: its
// number may be somebody else's.
func (c *child) signal(s syscall.Signal) {
	if !c.exited() {
		_ = syscall.Kill(-c.pid, s)
	}
}

func (c *child) exited() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// await polls until check gives no error. It gives up when the process ends or
// the context does, with the last error and the end of the process's log.
func (c *child) await(ctx context.Context, check func(context.Context) error) error {
	const interval = 25 * time.Millisecond
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.done:
			return fmt.Errorf("waiting for %q, which exited: %w: %s", c.name, errors.Join(c.err, err), c.logTail())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %q: %w: %s", c.name, errors.Join(ctx.Err(), err), c.logTail())
		case <-time.After(interval):
		}
	}
}

func (c *child) logTail() string {
	data, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return tail(string(data))
}
