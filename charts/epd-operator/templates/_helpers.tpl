{{/* Name of the chart in names of objects. */}}
{{- define "epd.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Prefix of all names. */}}
{{- define "epd.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "epd.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "epd.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What pods are selected by. Takes (list . component). */}}
{{- define "epd.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "epd.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of an object. Takes (list . component). */}}
{{- define "epd.labels" -}}
{{- $root := index . 0 -}}
{{ include "epd.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: epd
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name ($root.Chart.Version | replace "+" "_") }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* name, namespace, labels and annotations of a namespaced object. Takes (list . component suffix). */}}
{{- define "epd.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "epd.fullname" $root }}{{ index . 2 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "epd.labels" (list $root (index . 1)) | nindent 2 }}
{{- with $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The same of a cluster-wide object, whose name holds the namespace's, since releases may share a name. */}}
{{- define "epd.clusterMetadata" -}}
{{- $root := index . 0 -}}
name: {{ include "epd.clusterName" $root }}{{ index . 2 }}
labels:
  {{- include "epd.labels" (list $root (index . 1)) | nindent 2 }}
{{- with $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "epd.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "epd.fullname" .) -}}
{{- end -}}

{{/* Of a name that must be a DNS name. */}}
{{- define "epd.webhookConfiguration" -}}
{{- printf "%s.%s" (include "epd.fullname" .) .Release.Namespace -}}
{{- end -}}

{{/* An image reference. Takes (list . image registry). */}}
{{- define "epd.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- with default (index . 2) $image.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default $root.Chart.AppVersion $image.tag }}{{ end -}}
{{- end -}}

{{/* Name of a service account. Takes (list . component values). */}}
{{- define "epd.serviceAccount" -}}
{{- $account := (index . 2).serviceAccount -}}
{{- if $account.name -}}
{{- $account.name -}}
{{- else if $account.create -}}
{{- include "epd.fullname" (index . 0) }}{{ if eq (index . 1) "webhook" }}-webhook{{ end -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{/* What every pod template begins with. Takes (list . component values). */}}
{{- define "epd.podMetadata" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
labels:
  {{- $labels := include "epd.labels" (list $root (index . 1)) | fromYaml }}
  {{- toYaml (merge $labels $values.podLabels) | nindent 2 }}
{{- with merge (dict "kubectl.kubernetes.io/default-container" (index . 1)) $values.podAnnotations $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What every pod has beside its containers. Takes (list . component values). */}}
{{- define "epd.podSpec" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index . 2 -}}
serviceAccountName: {{ include "epd.serviceAccount" . }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: {type: RuntimeDefault}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  {{- if $values.affinity }}
  {{- toYaml $values.affinity | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "epd.selector" (list $root $component) | nindent 12 }}
  {{- end }}
{{- end -}}

{{/* Security context of every container. */}}
{{- define "epd.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Arguments that say which images and roles proxies get: the same for operator and webhook. */}}
{{- define "epd.planArgs" -}}
- --proxy-image={{ include "epd.image" (list . .Values.proxy.image .Values.image.registry) }}
- --proxy-cluster-role={{ .Values.proxy.clusterRole.name }}
{{- end -}}
