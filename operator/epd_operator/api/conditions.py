"""The types and reasons of all conditions: one place, so that documentation, alerts and code agree."""

from enum import StrEnum


class ConditionType(StrEnum):
    """Conditions of an EPDDeployment. Reconciling and Stalled are kstatus' and present only while true."""

    ACCEPTED = "Accepted"
    DEVICES_AVAILABLE = "DevicesAvailable"
    AVAILABLE = "Available"
    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


class Reason(StrEnum):
    """Reasons of conditions and events."""

    # Accepted
    VALID = "Valid"
    INVALID = "Invalid"
    # DevicesAvailable
    NODES_OFFER_DEVICES = "NodesOfferDevices"
    NO_NODE_OFFERS_DEVICE = "NoNodeOffersDevice"
    NODES_NOT_READABLE = "NodesNotReadable"
    NO_DEVICE_NEEDED = "NoDeviceNeeded"
    VOLUME_NOT_FOUND = "VolumeNotFound"
    VOLUME_NOT_SHAREABLE = "VolumeNotShareable"
    CLASS_NOT_FOUND = "ClassNotFound"
    # Available, Ready, Reconciling
    SERVING = "Serving"
    ROLE_NOT_READY = "RoleNotReady"
    PROXY_NOT_READY = "ProxyNotReady"
    CONVERGED = "Converged"
    PROGRESSING = "Progressing"
    ROLLING_OUT = "RollingOut"
    SUSPENDED = "Suspended"
    PAUSED = "Paused"
    WAITING_FOR_DELETION = "WaitingForDeletion"
    # Why pods are not ready, most telling first
    UNSCHEDULABLE = "Unschedulable"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CONTAINER_CONFIG_ERROR = "ContainerConfigError"
    OUT_OF_MEMORY = "OutOfMemory"
    CRASH_LOOPING = "CrashLooping"
    EVICTED = "Evicted"
    STARTING = "Starting"
    # Stalled
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    PREFLIGHT_FAILED = "PreflightFailed"
    NAME_TAKEN = "NameTaken"
    API_REFUSED = "APIRefused"
