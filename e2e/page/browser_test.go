// Package page has the tests of the page in a real browser. It is a module of its own: ballast itself needs none of this.
package page

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// needed makes a browser that is missing a failure, as in CI.
const needed = "BALLAST_CHROMIUM_NEEDED"

var (
	chromium string // its path
	server   string // the path of e2e/pageserver, built
	started  context.Context
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	for _, name := range []string{os.Getenv("BALLAST_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && name != "" {
			chromium = path
			break
		}
	}
	if chromium == "" {
		fmt.Println("The page is not tested: there is no Chromium (apt-get install chromium, or BALLAST_CHROMIUM=/path/to/it).")
		if os.Getenv(needed) != "" {
			return 1
		}
		return 0
	}
	dir, err := os.MkdirTemp("", "ballast-page-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	server = filepath.Join(dir, "pageserver")
	build := exec.Command("go", "build", "-o", server, "./e2e/pageserver")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("building the page's server: %v\n%s", err, out)
		return 1
	}
	flags := []chromedp.ExecAllocatorOption{chromedp.ExecPath(chromium), chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.WSURLReadTimeout(time.Minute)}
	for _, f := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update",
		"disable-sync", "hide-scrollbars"} {
		flags = append(flags, chromedp.Flag(f, true))
	}
	// A name that somebody points at the page: what DNS rebinding does.
	flags = append(flags, chromedp.Flag("host-resolver-rules", "MAP rebound.example 127.0.0.1"))
	allocator, end := chromedp.NewExecAllocator(context.Background(), flags...)
	defer end()
	browser, closeIt := chromedp.NewContext(allocator)
	defer closeIt()
	if err := chromedp.Do(browser); err != nil {
		fmt.Println("starting Chromium:", err)
		return 1
	}
	started = browser
	defer stopServers()
	return m.Run()
}

var servers = struct {
	sync.Mutex
	of map[int]*exec.Cmd
	at map[int]string
}{of: map[int]*exec.Cmd{}, at: map[int]string{}}

// serves is the URL of the page of a fleet of so many clusters.
func serves(t *testing.T, clusters int) string {
	t.Helper()
	servers.Lock()
	defer servers.Unlock()
	if at := servers.at[clusters]; at != "" {
		return at
	}
	cmd := exec.Command(server, "-clusters", fmt.Sprint(clusters))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	servers.of[clusters] = cmd
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	servers.at[clusters] = strings.TrimSpace(line)
	return servers.at[clusters]
}

func stopServers() {
	for _, cmd := range servers.of {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// tabTimeout bounds what one tab takes, on a machine that does much else.
const tabTimeout = 4 * time.Minute

// look is how somebody looks at the page.
type look struct {
	width, height int64
	dark          bool
	scriptless    bool
}

var wide = look{width: 1280, height: 1000}

// tab is a new tab with what went wrong in it.
type tab struct {
	context.Context
	mutex    sync.Mutex
	errors   []string
	requests []string
}

// open opens an address in a tab of its own.
func open(t *testing.T, address string, l look) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(started)
	t.Cleanup(end)
	b := &tab{}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(ctx, tabTimeout)
	t.Cleanup(stop)
	b.Context = ctx
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	call(t, b, network.Enable, network.EnableParams{})
	call(t, b, cdplog.Enable, cdp.Empty{})
	call(t, b, runtime.Enable, cdp.Empty{})
	call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	call(t, b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1})
	call(t, b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.scriptless})
	b.do(t, chromedp.Navigate(address))
	return b
}

func call[P, R any](t *testing.T, b *tab, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(b, command, params); err != nil {
		t.Fatalf("%s: %v", command.Method, err)
	}
}

func (b *tab) hear(event any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *cdplog.EventEntryAdded:
		b.errors = append(b.errors, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Text)
	}
}

// fails is what the browser complained of so far.
func (b *tab) fails() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Clone(b.errors)
}

// elsewhere are the requests that went to another origin.
func (b *tab) elsewhere(origin string) (list []string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	own, _ := url.Parse(origin)
	for _, r := range b.requests {
		if u, err := url.Parse(r); err != nil || u.Scheme != own.Scheme || u.Host != own.Host {
			list = append(list, r)
		}
	}
	return list
}

func (b *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b, actions...); err != nil {
		t.Fatal(err)
	}
}

// value is what an expression is in the page.
func value[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
