package network

import "testing"

func TestAPodIPHasItsLoopbackAddress(t *testing.T) {
	n := &Network{N: 64}
	for ip, want := range map[string]string{"10.64.0.1": "127.64.0.1", "10.64.3.255": "127.64.3.255", "10.65.0.1": "", "127.64.0.1": "", "": "", "::1": ""} {
		if got, err := n.Loopback(ip); got != want || (err == nil) != (want != "") {
			t.Errorf("loopback(%q): got %q, %v, want %q", ip, got, err, want)
		}
	}
}
