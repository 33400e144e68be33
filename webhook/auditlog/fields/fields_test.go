package fields

import (
	"strings"
	"testing"
)

func TestPrint(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "-",
		"-":                          "-",
		"shard=3":                    "shard=3",
		"shard=-":                    "shard=-",
		"shard=invalid":              "shard=invalid",
		"shard=-1":                   "shard=-1",
		"shard=+1":                   "shard=invalid",
		"shard=":                     "shard=invalid",
		"shard":                      "shard=invalid",
		"shard=3=4":                  "shard=invalid",
		"shard=reference":            "shard=invalid",
		"shard=99999999999":          "shard=invalid",
		"shard=eyJhbGciOiJSUzI1NiJ9": "shard=invalid",
		"token=3":                    "invalid",
		"shard=3  shard=4":           "shard=3 invalid shard=4",
		"replicas=2147483647":        "replicas=2147483647",
		"replicas=4 ARGOCD_CONTROLLER_REPLICAS=reference requests.cpu=1500m": "replicas=4 ARGOCD_CONTROLLER_REPLICAS=reference requests.cpu=1500m",
		"limits.nvidia.com/gpu=2":                          "limits.nvidia.com/gpu=2",
		"limits.a/b/c=2":                                   "invalid",
		"limits.memory=lots":                               "limits.memory=invalid",
		"requests.eyJhbGciOi=1":                            "invalid",
		"plan=0123456789ab":                                "plan=0123456789ab",
		"plan=0123456789abc":                               "plan=invalid",
		"plan=- pins.prod-eu=3":                            "plan=- pins.prod-eu=3",
		"clusters.prod.eu-1=2":                             "clusters.prod.eu-1=2",
		"immutable=true plan=-":                            "immutable=true plan=-",
		"enforcement=off paused=true tripped=-":            "enforcement=off paused=true tripped=-",
		"enforcement=on paused=false tripped=set":          "enforcement=on paused=false tripped=set",
		"enforcement=Off paused=yes tripped=eyJhbGciOi":    "enforcement=invalid paused=invalid tripped=invalid",
		"cordon=1,3 rollback-to=12 accept-discovery=-1":    "cordon=1,3 rollback-to=12 accept-discovery=-1",
		"cordon=0,1,+17 pin=3 pins=37 unmanaged=true":      "cordon=0,1,+17 pin=3 pins=37 unmanaged=true",
		"cordon=+17 cordon=1,+2,3 cordon=1, cordon=1=2":    "cordon=invalid cordon=invalid cordon=invalid cordon=invalid",
		"pin=three pins=+1 unmanaged=1 rollback-to=last":   "pin=invalid pins=invalid unmanaged=invalid rollback-to=invalid",
		"secret-type=- secret-type=cluster":                "secret-type=- secret-type=cluster",
		"rebase=true rebase=undo rebase=- rebase=now":      "rebase=true rebase=undo rebase=- rebase=invalid",
		"selected=true selected=- selected=a":              "selected=true selected=- selected=invalid",
		"secret-type=repository secret-type=":              "secret-type=invalid secret-type=invalid",
		"paused.a=true pin.a=3":                            "invalid invalid",
		"cordon=" + strings.Repeat("1,", 21) + "1":         "cordon=invalid",
		"immutable=-":                                      "immutable=-",
		"immutable=eyJhbGciOi":                             "immutable=invalid",
		"pins.=2":                                          "invalid",
		"pins." + strings.Repeat("a", 254) + "=2":          "invalid",
		strings.Repeat("shard=1 ", 64) + "shard=1 shard=1": strings.Repeat("shard=1 ", 64) + "invalid",
	} {
		if got := Print(text); got != want {
			t.Errorf("%q is printed %q, want %q", text, got, want)
		}
	}
}
