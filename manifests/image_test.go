package manifests

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestTheImageRunsAsTheUserThatPodsRunAs(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindStringSubmatch(string(text))
	if found == nil {
		t.Fatal("the Dockerfile has no numeric USER; a kubelet refuses runAsNonRoot with a name")
	}
	for name, d := range decode(t, build(t, "base")).Deployments {
		security := d.Spec.Template.Spec.SecurityContext
		if got := strconv.FormatInt(*security.RunAsUser, 10); got != found[1] {
			t.Errorf("%s runs as user %s, the image as %s", name, got, found[1])
		}
		if got := strconv.FormatInt(*security.RunAsGroup, 10); got != found[2] {
			t.Errorf("%s runs as group %s, the image as %s", name, got, found[2])
		}
		if c := d.Spec.Template.Spec.Containers[0]; len(c.Command) > 0 || !strings.Contains(string(text), `ENTRYPOINT ["/ballast"]`) {
			t.Errorf("%s has its own command, or the image has no entrypoint for its args", name)
		}
	}
}

// TestTheReadmeSaysWhatTheImageIsMadeOf as the Dockerfile does.
func TestTheReadmeSaysWhatTheImageIsMadeOf(t *testing.T) {
	dockerfile, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for inDockerfile, inReadme := range map[string]string{
		"\nARG BASE_IMAGE=scratch\n":               "`FROM scratch`",
		"\nFROM ${BASE_IMAGE}\n":                   "--build-arg BASE_IMAGE=",
		"\nUSER 65532:65532\n":                     "as user 65532",
		"/etc/ssl/certs/ca-certificates.crt /etc/": "the CA certificates",
	} {
		if !strings.Contains(string(dockerfile), inDockerfile) || !strings.Contains(string(readme), inReadme) {
			t.Errorf("the Dockerfile lacks %q, or README.md %q", inDockerfile, inReadme)
		}
	}
	for name, d := range decode(t, build(t, overlays()["self-signed"])).Deployments {
		if got := d.Spec.Template.Spec.Containers[0].Image; got != "ballast:dev" || !strings.Contains(string(readme), "`"+got+"`") {
			t.Errorf("%s runs %s", name, got)
		}
	}
}
