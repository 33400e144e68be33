package helmchart

import "strings"

// names are the marks that stand for words, and Helm's expressions of them.
var names = map[string]string{
	markers.Namespace:       ".Release.Namespace",
	markers.Workload:        ".Values.workload",
	markers.PlannerAccount:  ".Values.planner.serviceAccount",
	markers.WebhookAccount:  ".Values.webhook.serviceAccount",
	"ZZIMAGE":               `include "ballast.image" .`,
	"ZZAUDIENCE":            ".Values.prometheusToken.audience",
	"ZZCLIENTNAME":          ".Values.clientAuth.name",
	"ZZPROMETHEUSNAMESPACE": ".Values.networkPolicy.prometheusNamespace",
	"ZZRUNBOOKS":            ".Values.alerts.runbooks",
}

// words are what the manifests say where the chart has a value, by the key that they stand under; "" is any.
var words = map[[2]string]string{
	{"image", "ballast:dev"}:                      "ZZIMAGE",
	{"audience", "prometheus"}:                    "ZZAUDIENCE",
	{"", "--client-name=ballast-apiserver"}:       "--client-name=ZZCLIENTNAME",
	{"kubernetes.io/metadata.name", "monitoring"}: "ZZPROMETHEUSNAMESPACE",
}

// lines are the marks that stand for whole lines: <in> is the mark's own indentation, <of> the Deployment's group of
// values.
var lines = map[string]string{
	"zzConfig":      "  config.yaml: |\n{{- include \"ballast.config\" . | nindent 4 }}\n",
	"zzLabels":      "{{- with .Values.monitoringLabels }}\n{{- toYaml . | nindent 4 }}\n{{- end }}\n",
	"zzAPIServers":  "{{- with .Values.networkPolicy.apiServers }}\n    from:\n{{- range . }}\n    - ipBlock:\n        cidr: {{ . | quote }}\n{{- end }}\n{{- end }}\n",
	"zzReplicas":    "  replicas: {{ .Values.<of>.replicas }}\n",
	"zzResources":   "        resources:\n{{- toYaml .Values.<of>.resources | nindent 10 }}\n",
	"zzPullPolicy":  "{{- with .Values.image.pullPolicy }}\n        imagePullPolicy: {{ . }}\n{{- end }}\n",
	"zzAnnotations": optional("podAnnotations", "      annotations:"),
	"zzPriority":    "      priorityClassName: {{ .Values.priorityClassName | default (printf \"ballast.%s\" .Release.Namespace) | quote }}\n",
	"zzPod": optional("nodeSelector", "      nodeSelector:") + optional("tolerations", "      tolerations:") +
		optional("affinity", "      affinity:") +
		"{{- with .Values.image.pullSecrets }}\n      imagePullSecrets:\n{{- toYaml . | nindent 6 }}\n{{- end }}\n",
}

func optional(value, key string) string {
	return "{{- with .Values.<of>." + value + " }}\n" + key + "\n{{- toYaml . | nindent 8 }}\n{{- end }}\n"
}

// mark puts marks where the chart has values.
func mark(o Object) {
	putWords("", map[string]any(o))
	component := o.text("metadata", "labels", "app.kubernetes.io/component")
	switch o.text("kind") {
	case "ConfigMap":
		if o.text("metadata", "name") == "ballast-config" {
			o["data"] = map[string]any{"zzConfig": ""}
		}
	case "PodMonitor", "PrometheusRule":
		within(o, "metadata", "labels")["zzLabels"] = ""
	case "NetworkPolicy":
		if component == "webhook" {
			within(o, "spec")["ingress"].([]any)[0].(map[string]any)["zzAPIServers"] = ""
		}
	case "Deployment":
		markDeployment(o, component)
	}
}

func markDeployment(o Object, of string) {
	if of == "planner" || of == "webhook" { // one of the others is all that may be
		swap(within(o, "spec"), "replicas", "zzReplicas-"+of)
		swap(within(o, "spec", "template", "spec"), "priorityClassName", "zzPriority-"+of)
	}
	within(o, "spec", "template", "metadata")["zzAnnotations-"+of] = ""
	pod := within(o, "spec", "template", "spec")
	pod["zzPod-"+of] = ""
	container := pod["containers"].([]any)[0].(map[string]any)
	container["zzPullPolicy"] = ""
	swap(container, "resources", "zzResources-"+of)
}

func swap(in map[string]any, key, mark string) {
	delete(in, key)
	in[mark] = ""
}

func within(o Object, path ...string) map[string]any {
	at := map[string]any(o)
	for _, key := range path {
		at = at[key].(map[string]any)
	}
	return at
}

func putWords(under string, in any) any {
	switch v := in.(type) {
	case map[string]any:
		for key := range v {
			v[key] = putWords(key, v[key])
		}
	case []any:
		for i := range v {
			v[i] = putWords("", v[i])
		}
	case string:
		if word, ok := words[[2]string{under, v}]; ok {
			return word
		}
		if anchor, ok := strings.CutPrefix(v, "docs/runbooks.md#"); ok && under == "runbook_url" {
			return "ZZRUNBOOKS#" + anchor
		}
	}
	return in
}

// whole is the lines that a line with nothing but a mark stands for.
func whole(line string) (string, bool) {
	key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
	name, of, _ := strings.Cut(key, "-")
	text, ok := lines[name]
	return strings.ReplaceAll(text, "<of>", of), ok
}
