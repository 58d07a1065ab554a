{{/* Names of kinds and CustomResourceDefinitions come from crds/, so that a new kind needs no change here. */}}
{{- define "mooring.plurals" -}}
{{- $plurals := list -}}
{{- range $path, $_ := .Files.Glob "crds/*.yaml" -}}
{{- $plurals = append $plurals ($.Files.Get $path | fromYaml).spec.names.plural -}}
{{- end -}}
{{- $plurals | sortAlpha | toJson -}}
{{- end -}}

{{- define "mooring.statuses" -}}
{{- $statuses := list -}}
{{- range include "mooring.plurals" . | fromJsonArray -}}
{{- $statuses = append $statuses (printf "%s/status" .) -}}
{{- end -}}
{{- $statuses | toJson -}}
{{- end -}}

{{- define "mooring.crdNames" -}}
{{- $names := list -}}
{{- range $path, $_ := .Files.Glob "crds/*.yaml" -}}
{{- $names = append $names ($.Files.Get $path | fromYaml).metadata.name -}}
{{- end -}}
{{- $names | sortAlpha | toJson -}}
{{- end -}}

{{- define "mooring.labels" -}}
{{ include "mooring.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* Takes (dict "root" $ "component" "operator"); the component may be left out. */}}
{{- define "mooring.selector" -}}
app.kubernetes.io/name: mooring
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "mooring.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* How the operator runs edges (operator/endpoint/kubernetes/settings.ts), as JSON. */}}
{{- define "mooring.edges" -}}
{{- $edges := pick .Values.edges "service" "logLevel" "resources" "heapMiB" "podAnnotations" "nodeSelector" "tolerations" "affinity" "priorityClassName" "extraEnv" -}}
{{- $own := .Values.edges.image -}}
{{- $repository := $own.repository | default .Values.image.repository -}}
{{- $tag := $own.tag | default .Values.image.tag | default .Chart.AppVersion -}}
{{- $edges = merge (dict "image" (printf "%s:%s" $repository $tag) "pullPolicy" .Values.image.pullPolicy) $edges -}}
{{- merge (dict "pullSecrets" .Values.imagePullSecrets "networkPolicy" .Values.networkPolicy.enabled) $edges | toJson -}}
{{- end -}}

{{/* How servers are backed up (operator/server/kubernetes/backup/settings.ts), as JSON. */}}
{{- define "mooring.backups" -}}
{{- $own := .Values.backups -}}
{{- $env := dict -}}
{{- with $own.region }}{{ $_ := set $env "AWS_REGION" . }}{{ end -}}
{{- with $own.endpoint }}{{ $_ := set $env "AWS_ENDPOINT_URL" . }}{{ end -}}
{{- $backups := pick $own "url" "secretName" "egress" "dns" "resources" "heapMiB" -}}
{{- $backups = merge (dict "claim" $own.claims.servers "env" $env "logLevel" .Values.logLevel) $backups -}}
{{- merge (dict "image" (include "mooring.image" .) "pullPolicy" .Values.image.pullPolicy) $backups | toJson -}}
{{- end -}}

{{/* How the metrics of servers are exported (operator/server/kubernetes/exporter/settings.ts), as JSON. */}}
{{- define "mooring.monitoring" -}}
{{- $images := dict -}}
{{- range $family, $own := omit .Values.monitoring.exporters "resources" "pullPolicy" -}}
{{- $_ := set $images $family $own.image -}}
{{- end -}}
{{- $exporters := pick .Values.monitoring.exporters "resources" "pullPolicy" -}}
{{- merge (dict "images" $images) $exporters (pick .Values.monitoring "prometheus" "podMonitor") | toJson -}}
{{- end -}}

{{- define "mooring.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "mooring.podSecurity" -}}
{{- $user := .user | default 1000 | int -}}
runAsNonRoot: true
runAsUser: {{ $user }}
runAsGroup: {{ $user }}
fsGroup: {{ $user }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "mooring.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "mooring.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: metrics }
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: metrics }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: metrics }
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
{{- end -}}

{{/* Takes (dict "root" $ "component" "operator"): where its pods run. */}}
{{- define "mooring.scheduling" -}}
{{- $own := index .root.Values .component }}
{{- with $own.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  {{- if $own.affinity }}
  {{- toYaml $own.affinity | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "mooring.selector" . | nindent 14 }}
  {{- end }}
{{- end -}}
