package helmchart

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// markers are the settings that the templates are built for. They stand in no other text of the manifests.
var markers = Settings{"ZZNAMESPACE", "ZZWORKLOAD", "ZZPLANNERACCOUNT", "ZZWEBHOOKACCOUNT"}

// part is what one value of the chart switches on: resources or components over the base.
type part struct {
	file                  string
	when                  string // a Helm condition
	resources, components []string
	beside                []string // components that are there with it, whose objects are not its own
}

func parts() []part {
	component := func(name, when string) part {
		return part{file: name, when: when, components: []string{"components/" + name}}
	}
	return []part{
		component("alerts", ".Values.alerts.enabled"),
		component("cert-manager", `eq .Values.certificates "cert-manager"`),
		component("client-auth", ".Values.clientAuth.enabled"),
		component("dashboard", ".Values.dashboard"),
		component("fail-closed", ".Values.failClosed"),
		component("floor", ".Values.floor"),
		component("network-policy", ".Values.networkPolicy.narrow"),
		component("nudge", `eq .Values.nudge "namespace"`),
		component("nudge-any-namespace", `eq .Values.nudge "any-namespace"`),
		component("prometheus-token", ".Values.prometheusToken.enabled"),
		component("recording-rules", ".Values.recordingRules"),
		component("self-signed", `eq .Values.certificates "self-signed"`),
		component("size-nodes", ".Values.sizeNodes"),
		{file: "watch", when: ".Values.watch.enabled", resources: []string{"watch"}},
		{file: "watch-alerts", when: "and .Values.watch.enabled .Values.watch.alerts", resources: []string{"watch"},
			components: []string{"watch/alerts"}, beside: []string{"watch"}},
	}
}

// Templates are the chart's templates by file name.
func (s Source) Templates() (map[string]string, error) {
	base, err := s.Build(markers, nil, nil)
	if err != nil {
		return nil, err
	}
	texts, order := map[string]*text{}, []string{}
	files := map[string]string{}
	for _, o := range base {
		lines, err := render(o)
		if err != nil {
			return nil, err
		}
		texts[o.ID()] = &text{component: o.text("metadata", "labels", "app.kubernetes.io/component"), lines: lines}
		order = append(order, o.ID())
	}
	for _, p := range parts() {
		added, err := s.apply(p, texts)
		if err != nil {
			return nil, err
		}
		if added != "" {
			files[p.file+".yaml"] = "{{- if " + p.when + " }}\n" + added + "{{- end }}\n"
		}
	}
	for _, id := range order {
		merged, err := texts[id].merged()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		files[texts[id].component+".yaml"] += "---\n" + expressions(merged)
	}
	for name, text := range files {
		files[name] = head + text
	}
	return files, nil
}

const head = "{{- /* Made of manifests/base and manifests/components by package manifests/helmchart: edit those, and run make golden. */ -}}\n"

// apply notes what the part changes of the base's objects, and gives those that it adds.
func (s Source) apply(p part, texts map[string]*text) (string, error) {
	objects, err := s.Build(markers, p.resources, p.components)
	if err != nil {
		return "", err
	}
	others := map[string]bool{}
	if len(p.beside) > 0 {
		beside, err := s.Build(markers, p.beside, nil)
		if err != nil {
			return "", err
		}
		for _, o := range beside {
			others[o.ID()] = true
		}
	}
	var added strings.Builder
	for _, o := range objects {
		lines, err := render(o)
		if err != nil {
			return "", err
		}
		switch base := texts[o.ID()]; {
		case base != nil:
			base.edits = append(base.edits, edits(p.when, base.lines, lines)...)
		case !others[o.ID()]:
			added.WriteString("---\n" + expressions(strings.Join(lines, "")))
		}
	}
	return added.String(), nil
}

// render gives the object's YAML, line by line, with marks where values of the chart go.
func render(o Object) ([]string, error) {
	mark(o)
	raw, err := yaml.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("marshalling %q: %w", o.ID(), err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(raw), "\n"), "\n"), nil
}

// text is an object of the base, and what parts change of it.
type text struct {
	component string
	lines     []string
	edits     []edit
}

// edit replaces lines from..to of the base by others while the condition holds.
type edit struct {
	from, to int
	lines    []string
	when     string
}

// merged is the object with each edit as an `if` in its place. Two parts that change the same lines cannot both be had.
func (t *text) merged() (string, error) {
	slices.SortStableFunc(t.edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	at := 0
	for _, e := range t.edits {
		if e.from < at {
			return "", fmt.Errorf("two parts change line %d", e.from+1)
		}
		out.WriteString(block(t.lines[at:e.from]))
		out.WriteString("{{- if " + e.when + " }}\n" + block(e.lines))
		if e.from < e.to {
			out.WriteString("{{- else }}\n" + block(t.lines[e.from:e.to]))
		}
		out.WriteString("{{- end }}\n")
		at = e.to
	}
	out.WriteString(block(t.lines[at:]))
	return out.String(), nil
}

func block(lines []string) string {
	text := strings.Join(lines, "")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// edits is the shortest way from one text to the other, by their longest common subsequence.
func edits(when string, from, to []string) []edit {
	if slices.Equal(from, to) {
		return nil
	}
	common := commonAfter(from, to)
	var found []edit
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		start, with := i, j
		for i < len(from) || j < len(to) {
			if i < len(from) && j < len(to) && same(from[i], to[j]) {
				break
			}
			if j == len(to) || i < len(from) && common[i+1][j] >= common[i][j+1] {
				i++
			} else {
				j++
			}
		}
		if i > start || j > with {
			found = append(found, edit{start, i, to[with:j], when})
		}
		for i < len(from) && j < len(to) && same(from[i], to[j]) {
			i, j = i+1, j+1
		}
	}
	return found
}

// commonAfter is how many lines the two texts have in common from each pair of places on.
func commonAfter(from, to []string) [][]int {
	common := make([][]int, len(from)+1)
	for i := range common {
		common[i] = make([]int, len(to)+1)
	}
	for i, a := range slices.Backward(from) {
		for j, b := range slices.Backward(to) {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if same(a, b) {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	return common
}

func same(a, b string) bool { return strings.TrimSuffix(a, "\n") == strings.TrimSuffix(b, "\n") }

// expressions puts Helm's expressions in the place of the marks. Braces of the manifests' own, which alerts have, stay
// text.
func expressions(text string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSuffix(text, "\n") + "\n") {
		out.WriteString(expression(line))
	}
	return out.String()
}

func expression(line string) string {
	if strings.HasPrefix(line, "{{-") { // an `if` of merged
		return line
	}
	if text, ok := whole(line); ok {
		return text
	}
	line = strings.ReplaceAll(line, "{{", "{{ \"{{\" }}")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasSuffix(strings.TrimSuffix(line, "\n"), ": "+name) || strings.HasSuffix(strings.TrimSuffix(line, "\n"), "- "+name) {
			line = strings.Replace(line, name, "{{ "+names[name]+" | quote }}", 1)
		}
		line = strings.ReplaceAll(line, name, "{{ "+names[name]+" }}")
	}
	return line
}
