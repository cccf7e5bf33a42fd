"""The config.json of a model that lies on this machine."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from epd_operator.api.deployment import EPDDeployment

models_option = click.option(
    "--models",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory that stands for the model volume: a config.json in it lets more rules be checked.",
)


def model_config_of(deployment: EPDDeployment, models: Path | None) -> Mapping[str, Any] | None:
    """What the model's config.json says; None without `models`, for a Hugging Face id, or where it cannot be read.

    Rules about the model are then silent: an unknown model is never refused.
    """
    model_id = deployment.spec.model.id
    if models is None or not model_id.startswith(("/", "./")):
        return None
    try:
        config = json.loads((models / model_id.lstrip("./") / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return config if isinstance(config, dict) else None
