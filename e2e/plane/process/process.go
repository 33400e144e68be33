// Package process runs child processes that cannot outlive their parent, and
// says what became of each.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Nursery starts child processes that cannot outlive this one. The kernel
// sends Pdeathsig when the *thread* that started the child ends, so all are
// started from one goroutine that holds its thread until the plane is gone.
type Nursery struct {
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

// NewNursery begins to take requests.
func NewNursery() *Nursery {
	n := &Nursery{requests: make(chan birth), closed: make(chan struct{})}
	go n.serve()
	return n
}

func (n *Nursery) serve() {
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

// Start runs the command in a process group of its own, so that a ^C at the
// terminal reaches only us, and we end the children in the right order.
func (n *Nursery) Start(name string, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	b := birth{cmd: cmd, result: make(chan error, 1)}
	select {
	case n.requests <- b:
	case <-n.closed:
		return fmt.Errorf("starting %q: %w", name, ErrStopped)
	}
	if err := <-b.result; err != nil {
		return fmt.Errorf("starting %q: %w", name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.started = append(n.started, Process{Name: name, PID: cmd.Process.Pid})
	return nil
}

// ErrStopped is given to whoever wants something of a plane that is gone.
var ErrStopped = errors.New("the plane is stopped")

// Close lets the thread go. Children still alive then would be killed, so it
// comes after the last of them.
func (n *Nursery) Close() { close(n.closed) }

// All are the processes that it started.
func (n *Nursery) All() []Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]Process(nil), n.started...)
}

// Child is a running process and what became of it.
type Child struct {
	Name string
	PID  int
	log  string
	Done chan struct{} // closed at the exit; Err is set before
	Err  error

	Wanted atomic.Bool // End was called: the exit is no news
}

// Spawn starts a command whose output goes to the end of the log file. It is a
// file and not a pipe: a grandchild that keeps a pipe open would hold Wait.
func (n *Nursery) Spawn(name, log string, cmd *exec.Cmd) (*Child, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %q: %w", name, err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := n.Start(name, cmd); err != nil {
		return nil, err
	}
	c := &Child{Name: name, PID: cmd.Process.Pid, log: log, Done: make(chan struct{})}
	go func() {
		c.Err = cmd.Wait()
		// What it left behind goes with it, now, while its number cannot yet
		// belong to anybody else.
		_ = syscall.Kill(-c.PID, syscall.SIGKILL)
		close(c.Done)
	}()
	return c, nil
}

// grace is how long a part has to end by itself: nothing of it is worth saving, so
// it is just enough on an idle machine.
const grace = 2 * time.Second

// End asks a part of the plane to stop, waits for at most its grace, then kills
// it. It returns when the process and its group are gone.
func (c *Child) End() {
	c.Wanted.Store(true)
	c.Signal(syscall.SIGTERM)
	select {
	case <-c.Done:
	case <-time.After(grace):
	}
	c.Signal(syscall.SIGKILL)
	<-c.Done
}

// Signal goes to the process and its children. One that is gone gets none: its
// number may be somebody else's.
func (c *Child) Signal(s syscall.Signal) {
	if !c.Exited() {
		_ = syscall.Kill(-c.PID, s)
	}
}

// Exited reports whether it has ended.
func (c *Child) Exited() bool {
	select {
	case <-c.Done:
		return true
	default:
		return false
	}
}

// Await polls until check gives no error. It gives up when the process ends or
// the context does, with the last error and the end of the process's log.
func (c *Child) Await(ctx context.Context, check func(context.Context) error) error {
	const interval = 25 * time.Millisecond
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.Done:
			return fmt.Errorf("waiting for %q, which exited: %w: %s", c.Name, errors.Join(c.Err, err), c.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %q: %w: %s", c.Name, errors.Join(ctx.Err(), err), c.LogTail())
		case <-time.After(interval):
		}
	}
}

// LogTail is the end of its log.
func (c *Child) LogTail() string {
	data, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return Tail(string(data))
}

// Tail is the end of a text, where commands say why they failed.
func Tail(s string) string {
	const limit = 2000
	s = strings.TrimSpace(s)
	if len(s) <= limit {
		return s
	}
	return "..." + s[len(s)-limit:]
}
