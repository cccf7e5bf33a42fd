{{/* What the operator does in each namespace that it serves. A test compares these verbs with those it uses. */}}
{{- define "epd.servedRules" -}}
- apiGroups: [epd.dev]
  resources: [epddeployments]
  verbs: [get, list, watch]
- apiGroups: [epd.dev]
  resources: [epddeployments/status, epdrolescales/status]
  verbs: [patch]
# Only asked by clusters that check who may block an owner's deletion.
- apiGroups: [epd.dev]
  resources: [epddeployments/finalizers]
  verbs: [update]
- apiGroups: [epd.dev]
  resources: [epdrolescales]
  verbs: [list, watch, create, delete]
# Of these each deployment has its own as long as it exists.
- apiGroups: [""]
  resources: [configmaps, serviceaccounts]
  verbs: [list, watch, create, patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [list, watch, create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [list, watch, create, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch, create, patch, delete]
# What was accepted is kept, and never changed.
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [list, watch, create, delete]
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch, create, patch, delete]
# The one role that it may bind others to.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: [{{ .Values.proxy.clusterRole.name }}]
  verbs: [bind]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
# It makes the keys of each deployment, and reads none.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}

{{/* What it looks at beyond namespaces. */}}
{{- define "epd.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
- apiGroups: [node.k8s.io]
  resources: [runtimeclasses]
  verbs: [get]
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get]
# To notice that its own kinds were removed and came back.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
{{- end -}}

{{/* The certificate authority in the webhook's configuration. */}}
{{- define "epd.webhookRules" -}}
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "epd.webhookConfiguration" . }}]
  verbs: [get, patch]
{{- end -}}

{{/* In the operator's own namespace: leadership, and the webhook's certificate. */}}
{{- define "epd.ownRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "epd.fullname" . }}{{ with .Values.operatorClass }}-{{ . }}{{ end }}]
  verbs: [get, patch]
{{- if and .Values.webhook.enabled (eq .Values.webhook.certificates.source "Operator") }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ include "epd.fullname" . }}-webhook]
  verbs: [get, patch]
{{- end }}
{{- end -}}
