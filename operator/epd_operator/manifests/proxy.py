"""What the proxy is told: its configuration document, and the files that its pod mounts."""

from dataclasses import dataclass
from typing import Any

import yaml

from epd_operator.plan.plan import Plan
from epd_proxy.config import Discovery, ProxyConfig

PORT = 8000
"""That the proxy listens on; its Service may have another."""
PRE_STOP_SECONDS = 10
"""Clients' load balancers have noticed the end of the pod by then."""
MARGIN_SECONDS = 15
"""For the process to end after its last request."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the proxy's pod has its files. Directories are mounted whole: kubelet renews them when they change."""

    configuration_directory: str = "/etc/epd/config"
    configuration_name: str = "proxy.yaml"
    keys_directory: str = "/etc/epd/keys"
    uuid_key: str = "uuid-key"
    engine_key: str = "engine-key"
    api_keys_directory: str = "/etc/epd/api-keys"

    @property
    def configuration(self) -> str:
        """Path of the configuration."""
        return f"{self.configuration_directory}/{self.configuration_name}"


FILES = Files()


def configuration(plan: Plan) -> ProxyConfig:
    """The proxy's configuration. Raises pydantic.ValidationError if settings that were accepted make none."""
    proxy = plan.proxy
    settings: dict[str, Any] = dict(proxy.settings)
    settings["timeouts"] = {**settings.get("timeouts", {}), "engineKeepAliveSeconds": proxy.keep_alive_seconds}
    settings |= {
        "servedNames": (proxy.served_name,),
        "roles": [str(role) for role in proxy.roles],
        "secrets": {
            "uuidKeyFile": f"{FILES.keys_directory}/{FILES.uuid_key}",
            "engineKeyFile": f"{FILES.keys_directory}/{FILES.engine_key}",
            "apiKeysDirectory": FILES.api_keys_directory if proxy.api_keys_secret else None,
        },
        "discovery": Discovery(namespace=plan.namespace, instance=plan.name),
        "listen": {"port": PORT},
        "drain": {"timeoutSeconds": proxy.drain_seconds},
    }
    return ProxyConfig.model_validate(settings)


def configuration_text(plan: Plan) -> str:
    """The configuration as the YAML that goes into the ConfigMap."""
    document = configuration(plan).to_document()
    text: str = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, width=1 << 20)
    return text
