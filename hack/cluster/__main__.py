"""The local Kubernetes cluster: `python -m hack.cluster COMMAND`. See docs/development/cluster.md."""

import signal
import sys
from pathlib import Path

import click

from hack.cluster.errors import ClusterError
from hack.cluster.local import LocalCluster, kept_cluster
from hack.cluster.ports import Ports
from hack.cluster.programs import build
from hack.cluster.provider import choose, chosen, forget
from hack.cluster.settings import Settings
from hack.cluster.tools import NAMES, tool

DIRECTORY = Path(__file__).parents[2] / ".cluster"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    envvar="EPD_CLUSTER",
    default=DIRECTORY,
    help="Where the cluster's files are; default $EPD_CLUSTER, else .cluster in the project.",
)
@click.pass_context
def cluster(context: click.Context, directory: Path) -> None:
    """A Kubernetes cluster on this machine, built from Go modules."""
    context.obj = directory


@cluster.command("build")
@click.option("--control-plane", is_flag=True, help="Not what a node needs beside it.")
def build_programs(*, control_plane: bool) -> None:
    """Build the programs, where they are not in the cache."""
    print(build(node=not control_plane).directory)


@cluster.command()
@click.option("--control-plane", is_flag=True, help="No node: nothing runs pods. Needs no root.")
@click.option("--audit/--no-audit", default=None, help="Log every request.")
@click.option("--port-base", type=int, help="The first of a block of ports, for a cluster beside others.")
@click.option("--pod-cidr", help=f"Default {Settings.pod_cidr}.")
@click.option("--service-cidr", help=f"Default {Settings.service_cidr}.")
@click.option("--bridge", help=f"The pods' network device; default {Settings.bridge}.")
@click.option("--node-name", help=f"Default {Settings.node_name}.")
@click.pass_obj
def up(directory: Path, /, *, control_plane: bool, port_base: int | None, **changes: object) -> None:
    """Start what does not run yet. Settings are remembered."""
    ports = None if port_base is None else Ports.block(port_base)
    node = None if control_plane else True
    with kept_cluster(directory, node=node, ports=ports, **changes) as local:
        build(node=local.settings.node)
        local.start()
        print(f"export KUBECONFIG={local.layout.kubeconfig()}")


@cluster.command()
@click.option("--context", default="", help="Use this context of $KUBECONFIG instead of making a cluster.")
@click.pass_obj
def provide(directory: Path, /, *, context: str) -> None:
    """A cluster by what there is: a named context, kind with Docker, else the local cluster."""
    choice = choose(context)
    print(f"cluster: {choice.name}")
    provider = choice.provider(directory.resolve())
    provider.start()
    choice.save(directory)
    print(f"export KUBECONFIG={provider.reach().kubeconfig}{f' and use --context={context}' if context else ''}")


@cluster.command()
@click.option("--wipe", is_flag=True, help="Also remove the local cluster's data, certificates, settings and images.")
@click.pass_obj
def down(directory: Path, /, *, wipe: bool) -> None:
    """Stop everything that was started and leave the machine as it was."""
    chosen(directory).provider(directory.resolve()).stop()
    forget(directory)
    if wipe:
        with kept_cluster(directory) as local:
            local.wipe()


@cluster.command()
@click.pass_obj
def status(directory: Path) -> None:
    """What runs, the nodes, the pods. Exits with 1 if something that was started has ended."""
    with kept_cluster(directory) as local:
        ended = [name for name in local.daemons.names() if _describe(local, name) is None]
        if local.daemons.running("kube-apiserver"):
            for args in (("get", "nodes"), ("get", "pods", "--all-namespaces")):
                print(local.kubectl(*args, check=False).stdout.rstrip())
    sys.exit(bool(ended))


def _describe(local: LocalCluster, name: str) -> int | None:
    record = local.daemons.running(name)
    print(f"{name:24} {f'process {record.pid}' if record else f'has ended; see {local.daemons.log(name)}'}")
    return record.pid if record else None


@cluster.command()
@click.pass_obj
def kubeconfig(directory: Path) -> None:
    """Print the kubeconfig of the cluster that is up."""
    print(chosen(directory).provider(directory.resolve()).reach().kubeconfig)


@cluster.command()
@click.argument("archives", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_obj
def load(directory: Path, /, *, archives: tuple[Path, ...]) -> None:
    """Load images from docker-archives into the nodes."""
    provider = chosen(directory).provider(directory.resolve())
    for archive in archives:
        print(provider.load(archive))


@cluster.command()
@click.argument("count", type=click.IntRange(min=0))
@click.pass_obj
def gpus(directory: Path, /, *, count: int) -> None:
    """Let each node offer COUNT GPUs that it does not have."""
    chosen(directory).provider(directory.resolve()).set_gpus(count)


@cluster.command("tool")
@click.argument("name", type=click.Choice(NAMES))
def tool_path(name: str) -> None:
    """Print the path of kubectl or helm."""
    print(tool(name))


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in `status | head`
    try:
        cluster()
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
