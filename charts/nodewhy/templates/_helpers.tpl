{{- define "nodewhy.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "nodewhy.labels" -}}
app.kubernetes.io/name: nodewhy
app.kubernetes.io/part-of: nodewhy
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* The mode as the program reads it: to YAML, on and off without quotes are booleans. */ -}}
{{- define "nodewhy.mode" -}}
{{- if kindIs "bool" . }}{{ ternary "on" "off" . }}{{ else }}{{ default "off" . }}{{ end -}}
{{- end -}}

{{- /* Not empty where a taint is to be removed. */ -}}
{{- define "nodewhy.remediation" -}}
{{- range list .Values.removeStaleTaints .Values.removeUninitializedTaints -}}
{{- if ne (include "nodewhy.mode" .) "off" }}true{{ end -}}
{{- end -}}
{{- end -}}

{{- /* Not empty where cert-manager makes the certificate of the admission webhook. */ -}}
{{- define "nodewhy.certManager" -}}
{{- $asked := (.Values.admission).certManager -}}
{{- if kindIs "bool" $asked -}}
{{- if $asked }}true{{ end -}}
{{- else if .Capabilities.APIVersions.Has "cert-manager.io/v1" -}}
true
{{- end -}}
{{- end -}}

{{- /* One cluster, one nodewhy: the release's name is no part of it, as in manifests/. */ -}}
{{- define "nodewhy.selector" -}}
app.kubernetes.io/name: nodewhy
{{- end -}}

{{- /* Where the logs of pods may be read. */}}
{{- define "nodewhy.logNamespaces" -}}
{{- with .Values.logs }}{{ if .enabled }}{{ toYaml (default list .namespaces) }}{{ end }}{{ end }}
{{- end }}
