"""The command line, and the file it may name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from epd_proxy.auth import SecretError, read_secret
from epd_proxy.config import MediaForwarding, ProxyConfig, Role
from epd_proxy.members import BadUrlError, Member, parse_url

KEEP_ALIVE: Final = "VLLM_HTTP_TIMEOUT_KEEP_ALIVE"


class OptionsError(Exception):
    """The proxy can't start so; the message says why."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to run."""

    config: ProxyConfig
    config_file: Path | None = None
    members: tuple[Member, ...] = ()
    """Engines named on the command line; they never change."""
    api_keys_file: str | None = None
    uuid_key: bytes = b""
    """The key of content uuids, empty for a random one."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """What the command line says about the configuration, above the file."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    out = argparse.ArgumentParser(prog="epd-proxy", description="Walks requests through encode, prefill and decode.")
    out.add_argument("--config", type=Path, metavar="FILE", help="configuration, read again when it changes")
    out.add_argument("--host", help="address to listen on (default: 127.0.0.1 without --config)")
    out.add_argument("--port", type=int, help="port to listen on; 0 picks a free one")
    out.add_argument("--workers", type=int, help="processes that share the port")
    for role in Role:
        out.add_argument(f"--{role.value}", default="", metavar="URL,...", help=f"{role.value} engines")
    out.add_argument("--embeddings-connector", default="", help="how embeddings travel, vLLM's own name")
    out.add_argument("--kv-connector", default="", help="how KV blocks travel, vLLM's own name")
    out.add_argument("--data-parallel-size", type=int, default=1, help="data-parallel ranks of each consumer")
    out.add_argument("--tensor-parallel-size", type=int, default=1, help="tensor-parallel ranks of each consumer")
    out.add_argument("--served-name", action="append", help="name of the model; engines without it are not used")
    out.add_argument("--media-forwarding", choices=[m.value for m in MediaForwarding], help="what consumers are sent")
    out.add_argument("--allowed-media-domain", action="append", help="host whose URLs are taken; default: data: only")
    out.add_argument("--api-keys-file", help="clients' API keys, one a line; default: no key is asked")
    out.add_argument("--engine-key-file", help="the key that the engines ask for")
    out.add_argument("--uuid-key-file", help="the key of content uuids; default: a random one")
    out.add_argument("--access-log", action="store_true", default=None, help="one JSON line a request")
    return out


def read_options(arguments: argparse.Namespace) -> Options:
    """Return what the command line says; raises OptionsError."""
    overrides = _overrides(arguments)
    members = _members(arguments)
    document: dict[str, Any] = {}
    if arguments.config:
        document = read_document(arguments.config)
    else:
        overrides.setdefault("listen", {}).setdefault("host", "127.0.0.1")
        overrides["roles"] = [role.value for role in Role if any(m.role is role for m in members)]
    config = validated(document, overrides, str(arguments.config or "command line"))
    if not members and config.discovery is None:
        raise OptionsError("no engines: name them with --decode URL,... or let --config say where to discover them")
    if members and not any(m.role is Role.DECODE for m in members):
        raise OptionsError("no decode engine: name one with --decode URL,...")
    try:
        uuid_key = read_secret(config.secrets.uuid_key_file) if config.secrets.uuid_key_file else b""
    except SecretError as error:
        raise OptionsError(str(error)) from None
    return Options(config, arguments.config, members, arguments.api_keys_file, uuid_key, overrides)


def read_document(path: Path) -> dict[str, Any]:
    """Return a YAML document; raises OptionsError."""
    import yaml

    try:
        document = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise OptionsError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise OptionsError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise OptionsError(f"{path}: is not a ProxyConfig document")
    return document


def validated(document: dict[str, Any], overrides: dict[str, Any], source: str) -> ProxyConfig:
    """Return the configuration; raises OptionsError that names every wrong field."""
    merged = dict(document)
    for name, value in overrides.items():
        merged[name] = {**merged.get(name, {}), **value} if isinstance(value, dict) else value
    try:
        return ProxyConfig.model_validate(merged)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, e['loc']))}: {e['msg']} (found {e['input']!r:.80})" for e in error.errors()
        )
        raise OptionsError(f"{source}: {wrong}") from None


def _overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    sections: dict[str, dict[str, Any]] = {
        "listen": {"host": arguments.host, "port": arguments.port, "workers": arguments.workers},
        "media": {"allowedDomains": arguments.allowed_media_domain},
        "secrets": {"engineKeyFile": arguments.engine_key_file, "uuidKeyFile": arguments.uuid_key_file},
    }
    out: dict[str, Any] = {}
    for section, values in sections.items():
        given = {name: value for name, value in values.items() if value is not None}
        if given:
            out[section] = given
    if arguments.served_name:
        out["servedNames"] = arguments.served_name
    if arguments.media_forwarding:
        out["mediaForwarding"] = arguments.media_forwarding
    if arguments.access_log:
        out["accessLog"] = True
    return out


def _members(arguments: argparse.Namespace) -> tuple[Member, ...]:
    out: list[Member] = []
    for role in Role:
        urls: Sequence[str] = [url for url in getattr(arguments, role.value).split(",") if url.strip()]
        try:
            found = [parse_url(role, url) for url in urls]
        except BadUrlError as error:
            raise OptionsError(f"--{role.value}: {error}") from None
        out += (_with_connectors(member, arguments) for member in found)
    return tuple(dict.fromkeys(out))


def _with_connectors(member: Member, arguments: argparse.Namespace) -> Member:
    consumer = Role.PREFILL if arguments.prefill else Role.DECODE
    ranks = member.role is consumer
    return Member(
        role=member.role,
        host=member.host,
        port=member.port,
        embeddings_connector=arguments.embeddings_connector,
        kv_connector=arguments.kv_connector,
        data_parallel=arguments.data_parallel_size if ranks else 1,
        tensor_parallel=arguments.tensor_parallel_size if ranks else 1,
    )
