{{- define "ballast.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "ballast.config" -}}
{{- $target := dict "namespace" .Release.Namespace "name" .Values.workload -}}
{{- $head := dict "apiVersion" "ballast.argoproj.io/v1alpha1" "kind" "PlannerConfig" "target" $target -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $head) -}}
{{- end -}}
