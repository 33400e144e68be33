package plane

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"ballast/e2e/assets"
	"ballast/e2e/plane/process"
)

// role is the switch that turns this test binary into something else: the
// process of a pod, or a parent that is killed.
const role = "PLANE_TEST_ROLE"

// shared is the plane that most tests run on.
var shared *Plane

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "pod":
		os.Exit(result(servePod(os.Args[1:])))
	case "parent":
		os.Exit(result(raiseChild()))
	}
	os.Exit(runTests(m))
}

func result(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runTests(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := assets.Build(ctx, os.Stderr)
	if err != nil {
		return result(err)
	}
	shared, err = Start(ctx, Options{Binaries: b, Log: os.Stderr})
	if err != nil {
		return result(err)
	}
	defer shared.Stop()
	return m.Run()
}

// raiseChild starts a process through a nursery, tells its number and waits to
// be killed.
func raiseChild() error {
	cmd := exec.Command("sleep", "600")
	if err := process.NewNursery().Start("sleep", cmd); err != nil {
		return err
	}
	fmt.Println(cmd.Process.Pid)
	return cmd.Wait()
}

// servePod is an HTTPS server as a webhook is: /readyz follows a mounted
// ConfigMap, /note shows a mounted Secret, /validate refuses whatever carries
// the label refuse.
func servePod(args []string) error {
	flags := flag.NewFlagSet("pod", flag.ContinueOnError)
	listen := flags.String("listen", "", "address and port")
	certs := flags.String("certs", "", "folder of tls.crt and tls.key")
	settings := flags.String("settings", "", "folder of the settings")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := sayWhoIAm(); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if data, err := os.ReadFile(filepath.Join(*settings, "ready")); err != nil || string(data) != "true" {
			http.Error(w, "not ready by its settings", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/note", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, os.Getenv("NOTE")) })
	mux.HandleFunc("/validate", validate)
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 30 * time.Second, TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(filepath.Join(*certs, "tls.crt"), filepath.Join(*certs, "tls.key"))
			return &c, err
		},
	}}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		<-time.After(300 * time.Millisecond) // work that a SIGKILL would cut off
		fmt.Println("goodbye")
		os.Exit(0)
	})
	return server.ListenAndServeTLS("", "")
}

func sayWhoIAm() error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println("I am", review.Status.UserInfo.Username)
	return nil
}

func validate(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var object metav1.PartialObjectMetadata
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, &object); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, refuse := object.Labels["refuse"]
	review.Response = &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Allowed: !refuse,
		Result: &metav1.Status{Message: "refused by " + os.Getenv("POD_NAME")},
	}
	_ = json.NewEncoder(w).Encode(review)
}

// eventually polls until check passes, and fails the test with its last error.
func eventually(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var last error
	done := func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	}
	if err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, done); err != nil {
		t.Fatalf("%s: not within %s: %v", what, limit, last)
	}
}

// kubectl runs it as the administrator and fails the test if it fails.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, _, err := shared.Kubectl(t.Context(), "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func apply(t *testing.T, manifest string) {
	t.Helper()
	if _, _, err := shared.KubectlStdin(t.Context(), strings.NewReader(manifest), "", "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// namespace makes a new one of that name and a number, and waits for its
// default ServiceAccount, without which no pod can be created.
func namespace(t *testing.T, name string) string {
	t.Helper()
	name = fmt.Sprintf("%s-%d", name, time.Now().UnixNano())
	kubectl(t, "create", "namespace", name)
	kubectl(t, "wait", "--for=create", "--timeout=2m", "-n", name, "serviceaccount/default")
	return name
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func body(t *testing.T, url string) (string, error) {
	t.Helper()
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}
