package source

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"ballast/cmd/ballast/say"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/printable"
)

// mostInputs bounds a file of inputs: a fleet of 20,000 clusters has some 60 MB.
const mostInputs = 256 << 20

// readInputs reads what saveInputs wrote.
func readInputs(file string) (in input.Inputs, err error) {
	opened, err := os.Open(file)
	if err != nil {
		return in, fmt.Errorf("--inputs: %w", err)
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, mostInputs+1)) // a pipe has no size, and may have no end
	if err != nil {
		return in, fmt.Errorf("--inputs: %w", err)
	}
	if len(data) > mostInputs {
		return in, fmt.Errorf("--inputs: %s has more than %d bytes, which is more than a cycle's inputs have", file,
			int64(mostInputs))
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return in, fmt.Errorf("--inputs: %s is no file that ballast plan --save-inputs wrote: %w", file, err)
	}
	if n := in.Workload.Replicas; n > discover.MostReplicas {
		return in, fmt.Errorf("--inputs: %s is no file that ballast plan --save-inputs wrote: a workload of %d replicas is written as one of %d",
			file, n, discover.MostReplicas)
	}
	if in.Now.IsZero() || in.Config.Kind == "" {
		return in, fmt.Errorf("--inputs: %s is no file that ballast plan --save-inputs wrote: it has no time, or no configuration", file)
	}
	return in, nil
}

// Save writes what a cycle saw, without credentials: those within URLs become a mark. It answers how many
// clusters' server URLs had some.
func Save(file string, in input.Inputs) (masked int, err error) {
	data, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		return 0, fmt.Errorf("encoding the inputs: %w", err)
	}
	servers, masked := maskedServers(in.Discovered.Secrets)
	text := strings.NewReplacer(servers...).Replace(string(data)) // where it is a Prometheus label's value, too
	text = printable.Visible(printable.MaskCredentials(text))
	if !json.Valid([]byte(text)) { // a server like "n@" is part of an escape elsewhere
		return 0, errors.New("saving the inputs: the credentials in a cluster's server URL cannot be masked, so nothing was saved: mend data.server first")
	}
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		return 0, fmt.Errorf("saving the inputs: %w", err)
	}
	return masked, nil
}

// maskedServers are the texts that replace servers with credentials in saved inputs, and the short hashes that rows
// have of them, each behind what it replaces; and how many Secrets have such a server. Servers that differ still do:
// they are compared where the inputs run again.
func maskedServers(secrets []discover.Secret) (replace []string, masked int) {
	shown, taken, count := map[string]string{}, map[string]bool{}, map[string]int{}
	for _, s := range secrets {
		if server := plan.NormalizeServer(s.Server); printable.MaskServer(server) == server {
			taken[server] = true
		}
	}
	for _, s := range secrets {
		server := plan.NormalizeServer(s.Server)
		mask := printable.MaskServer(server)
		if mask == server {
			continue
		}
		masked++
		if shown[server] != "" {
			continue
		}
		name := mask
		for taken[name] {
			count[mask]++
			name = fmt.Sprintf("%s#%d", mask, 1+count[mask])
		}
		shown[server], taken[name] = name, true
	}
	return replacing(shown), masked
}

// replacing is what a strings.Replacer is made of: the longest servers first, for another may begin like them.
func replacing(shown map[string]string) (pairs []string) {
	longestFirst := func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }
	for _, server := range slices.SortedFunc(maps.Keys(shown), longestFirst) {
		name := shown[server]
		pairs = append(pairs, say.WithinJSON(server), say.WithinJSON(name),
			`"srv": "`+plan.ServerHash(server)+`"`, `"srv": "`+plan.ServerHash(name)+`"`)
	}
	return pairs
}
