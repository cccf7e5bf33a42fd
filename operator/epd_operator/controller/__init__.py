"""The operator: Kopf handlers, queue, reconcile, status and admission."""
