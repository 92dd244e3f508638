{{/* The six workloads, with what the images and the services fix. `port` is what `calls` reach. */}}
{{- define "latchkey.workloads" -}}
gateway:
  calls: [identity, apps, files]
  port: 8080
  ports: { http: 8080 }
  exposed: [http]
apps:
  port: 8082
  ports: { http: 8082, grpc: 9082 }
  exposed: [http, grpc]
  secrets: [SECRET_KEY, APPS_DATABASE_URL]
identity:
  calls: [apps]
  port: 8083
  ports: { http: 8083, grpc: 9083 }
  exposed: [http, grpc]
  secrets: [SECRET_KEY, IDENTITY_DATABASE_URL, SMTP_URL]
files:
  calls: [apps, identity]
  port: 8084
  ports: { http: 8084, grpc: 9084 }
  exposed: [http, grpc]
  secrets: [SECRET_KEY, FILES_DATABASE_URL, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY]
  settings: { AVATAR_WORKER: apart }
  objects: true
# Decodes untrusted images: without SECRET_KEY. It listens for probes only.
avatar-worker:
  service: files
  arguments: [avatar-worker]
  calls: [identity]
  ports: { http: 8084, grpc: 9084 }
  exposed: []
  secrets: [FILES_DATABASE_URL, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY]
  settings: { AVATAR_WORKER: apart }
  objects: true
realtime:
  options: [--max-semi-space-size=8]
  calls: [apps]
  port: 8081
  ports: { realtime: 8081, http: 8085, grpc: 9085 }
  exposed: [realtime]
{{- end }}

{{- define "latchkey.labels" -}}
app.kubernetes.io/name: latchkey
app.kubernetes.io/part-of: latchkey
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Arguments: the root context, the object's name and, of a workload, its component. */}}
{{- define "latchkey.metadata" -}}
name: {{ .name }}
labels:
  {{- include "latchkey.labels" .root | nindent 2 }}
  {{- with .component }}
  app.kubernetes.io/component: {{ . }}
  {{- end }}
{{- end }}

{{/* Arguments: a component. */}}
{{- define "latchkey.selector" -}}
{ app.kubernetes.io/name: latchkey, app.kubernetes.io/component: {{ . }} }
{{- end }}

{{- define "latchkey.image" -}}
{{ .repository }}:{{ .tag }}{{ with .digest }}@{{ . }}{{ end }}
{{- end }}

{{/* Security, image and account of every pod. Arguments: the root context, and the pod's additions. */}}
{{- define "latchkey.pod" -}}
{{- $pod := dict
  "automountServiceAccountToken" false
  "enableServiceLinks" false
  "securityContext" (dict "runAsNonRoot" true "runAsUser" 10001 "runAsGroup" 10001 "fsGroup" 10001
    "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault")) -}}
{{- mergeOverwrite $pod (deepCopy .root.Values.pod) (deepCopy (.pod | default dict)) | toYaml }}
{{- end }}

{{- define "latchkey.container" -}}
name: latchkey
image: {{ include "latchkey.image" (mergeOverwrite (dict) .Values.image (dict "tag" (.Values.image.tag | default .Chart.AppVersion))) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
# `kubectl describe` shows the last lines of a process that failed.
terminationMessagePolicy: FallbackToLogsOnError
securityContext: {{ include "latchkey.security" . }}
{{- end }}

{{- define "latchkey.security" -}}
{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: [ALL] } }
{{- end }}

{{/* Environment variables from a map. Numbers are written as in the file: 1000000, not 1e+06. */}}
{{- define "latchkey.env" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
{{- end }}
{{- end }}

{{/* Environment variables from existing Secrets. Arguments: the Secrets, and names of variables. */}}
{{- define "latchkey.secretEnv" -}}
{{- range .names }}
{{- $secret := index $.secrets . }}
{{- if $secret.existingSecret }}
- name: {{ regexReplaceAll "^[A-Z]+_(DATABASE_URL)$" . "$1" }}
  valueFrom:
    secretKeyRef: { name: {{ $secret.existingSecret }}, key: {{ $secret.key }} }
{{- end }}
{{- end }}
{{- end }}

{{/* Settings of all processes. */}}
{{- define "latchkey.settings" -}}
{{- $settings := .Values.settings -}}
{{- if .Values.evaluation.enabled -}}
{{- $settings = mergeOverwrite (dict
  "PUBLIC_URL" "http://localhost:8080"
  "S3_ENDPOINT" "http://evaluation:7070"
  "S3_PUBLIC_ENDPOINT" "http://localhost:7070"
  "S3_FORCE_PATH_STYLE" "true") $settings -}}
{{- end -}}
{{- if not $settings.PUBLIC_URL }}
{{- fail "settings.PUBLIC_URL is required: the URL for clients, such as https://latchkey.example.com" }}
{{- end }}
{{- if not (or .Values.evaluation.enabled $settings.TRUSTED_PROXIES) }}
{{- fail "settings.TRUSTED_PROXIES is required: addresses of the ingress controller (docs/deployment.md#trusted-proxies)" }}
{{- end }}
{{- toYaml $settings }}
{{- end }}

{{/* Ports of a NetworkPolicy from a list of numbers. */}}
{{- define "latchkey.ports" -}}
{{- range . }}
- { protocol: TCP, port: {{ . }} }
{{- end }}
{{- end }}

{{- define "latchkey.dns" -}}
- to: {{- toYaml .Values.networkPolicy.dns | nindent 4 }}
  ports: [{ protocol: UDP, port: 53 }, { protocol: TCP, port: 53 }]
{{- end }}
