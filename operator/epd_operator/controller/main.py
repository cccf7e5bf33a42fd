"""Entry point of `epd-operator`."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click
import structlog

from epd_operator import __version__
from epd_operator.cluster.errors import ClusterError
from epd_operator.controller.logs import configure_logs
from epd_operator.controller.operator import run_operator
from epd_operator.controller.settings import Settings
from epd_operator.controller.webhook import WebhookSettings, run_webhook
from epd_operator.plan.settings import Settings as PlanSettings

_DEFAULTS = PlanSettings()
_FILE = click.Path(path_type=Path, dir_okay=False)


def _common(command: Any) -> Any:
    for option in reversed(
        (
            click.option("--kubeconfig", type=_FILE, help="Default: the pod's service account, else $KUBECONFIG."),
            click.option("--context", help="Context of the kubeconfig."),
            click.option(
                "--proxy-image", default=_DEFAULTS.proxy_image, show_default=True, help="Where an object names none."
            ),
            click.option(
                "--proxy-cluster-role",
                default=_DEFAULTS.proxy_cluster_role,
                show_default=True,
                help="ClusterRole that proxies are bound to.",
            ),
            click.option(
                "--log-level",
                type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]),
                default="INFO",
                show_default=True,
            ),
            click.option("--log-format", type=click.Choice(["json", "text"]), default="json", show_default=True),
        )
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "EPD_OPERATOR"})
@click.version_option(__version__, prog_name="epd-operator")
def cli() -> None:
    """The operator of EPDDeployments.

    Each option is also an environment variable, for example EPD_OPERATOR_RUN_WORKERS.
    """


@cli.command()
@_common
@click.option("--namespace", "namespaces", multiple=True, help="Serve this namespace; repeatable. Default: all.")
@click.option("--operator-class", help="Serve objects with this spec.operatorClass. Default: those without one.")
@click.option("--workers", type=click.IntRange(1, 64), default=8, show_default=True, help="Objects at once.")
@click.option("--resync-seconds", type=click.FloatRange(10), default=600, show_default=True)
@click.option("--leader-election/--no-leader-election", default=True, show_default=True)
@click.option("--lease-name", default="epd-operator", show_default=True)
@click.option("--lease-namespace", help="Default: the operator's own namespace.")
@click.option("--address", default="127.0.0.1", show_default=True, help="For probes and metrics.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="For /healthz, /readyz and /metrics; 0 for none.",
)
@click.option("--webhook-configuration", help="ValidatingWebhookConfiguration whose certificate the leader keeps.")
@click.option("--webhook-secret", default="epd-operator-webhook", show_default=True, help="Secret of that certificate.")
@click.option("--webhook-name", "webhook_names", multiple=True, help="DNS name or address in it; repeatable.")
def run(  # noqa: PLR0917  click passes them by name
    kubeconfig: Path | None,
    context: str | None,
    proxy_image: str,
    proxy_cluster_role: str,
    log_level: str,
    log_format: str,
    **options: Any,
) -> None:
    """Reconcile EPDDeployments."""
    plan = PlanSettings(proxy_image=proxy_image, proxy_cluster_role=proxy_cluster_role)
    configure_logs(log_level, log_format)
    _run(run_operator(Settings(kubeconfig=kubeconfig, context=context, plan=plan, **options)))


@cli.command()
@_common
@click.option("--address", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(1, 65535), default=9443, show_default=True)
@click.option("--certificate", type=_FILE, help="PEM file, read again when it changes. Default: the Secret.")
@click.option("--key", type=_FILE, help="PEM file of the certificate's key.")
@click.option("--secret", default="epd-operator-webhook", show_default=True, help="Kept by the operator's leader.")
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="For /healthz, /readyz and /metrics; 0 for none.",
)
@click.option("--namespaced", is_flag=True, help="Without rights to watch which kinds the cluster has.")
def webhook(  # noqa: PLR0917  click passes them by name
    kubeconfig: Path | None,
    context: str | None,
    proxy_image: str,
    proxy_cluster_role: str,
    log_level: str,
    log_format: str,
    **options: Any,
) -> None:
    """Answer the API server's questions about EPDDeployments."""
    plan = PlanSettings(proxy_image=proxy_image, proxy_cluster_role=proxy_cluster_role)
    configure_logs(log_level, log_format)
    _run(run_webhook(WebhookSettings(kubeconfig=kubeconfig, context=context, plan=plan, **options)))


def _run(coroutine: Any) -> None:
    try:
        asyncio.run(coroutine)
    except ClusterError as error:
        structlog.get_logger().error("ended", error=str(error))
        sys.exit(1)


def main() -> None:
    """Run the command line; exit status 1 where the API server or the leadership is lost."""
    cli(prog_name="epd-operator")
