"""The project's images: `python -m hack.images COMMAND`. See images/README.md."""

import sys
from pathlib import Path

import click

from hack.cluster.__main__ import DIRECTORY
from hack.cluster.errors import ClusterError
from hack.cluster.provider import chosen
from hack.images.base import base_image
from hack.images.buildah import Buildah
from hack.images.builder import builder
from hack.images.catalog import IMAGES
from hack.images.sizes import report

names = click.argument("names", nargs=-1, type=click.Choice(sorted(IMAGES)))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def images() -> None:
    """Container images, by Docker or by buildah."""


@images.command()
@names
def build(names: tuple[str, ...]) -> None:
    """Build images (all of them if none is named) unless they are there, and print their references."""
    building = builder()
    for name in names or IMAGES:
        print(building.ensure(IMAGES[name]))


@images.command()
@names
@click.option("--directory", type=click.Path(path_type=Path), envvar="EPD_CLUSTER", default=DIRECTORY)
def load(names: tuple[str, ...], directory: Path) -> None:
    """Build images and load them into the nodes of the cluster that is up, unless they are there."""
    provider = chosen(directory).provider(directory.resolve())
    building = builder()
    for name in names or IMAGES:
        reference = building.ensure(IMAGES[name])
        building.load(reference, provider)
        print(reference)


@images.command()
@click.option("--renew", is_flag=True, help="Take the packages anew.")
def base(*, renew: bool) -> None:
    """Make the base image for builds by buildah, from this machine's Debian packages, and print its name."""
    print(base_image(Buildah.of_cache(), renew=renew))


@images.command()
@names
@click.option("--packages", default=8, show_default=True, help="Python packages to name, the largest first.")
def sizes(names: tuple[str, ...], packages: int) -> None:
    """Print how large images are above their base, and what takes it."""
    building = builder()
    for name in names or IMAGES:
        reference = building.ensure(IMAGES[name])
        with building.files(reference) as root:
            for line in report(root, packages):
                print(f"{name:12} {line}")


@images.command()
@click.argument("name", type=click.Choice(sorted(IMAGES)))
@click.argument("archive", type=click.Path(dir_okay=False, path_type=Path))
def save(name: str, archive: Path) -> None:
    """Write an image as a docker-archive."""
    building = builder()
    building.save(building.ensure(IMAGES[name]), archive)


def main() -> None:
    try:
        images()
    except ClusterError as error:
        print(f"images: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
