"""The model that a deployment serves."""

from typing import Annotated

from pydantic import Field

from epd_operator.api.base import APIModel, Name, Str
from epd_operator.api.volume import ModelVolume


class SecretKeyRef(APIModel):
    """One entry of a Secret of the same namespace."""

    name: Name
    """Name of the Secret."""
    key: Annotated[Str, Field(max_length=253, pattern=r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$")]
    """Key of the entry."""


class Model(APIModel):
    """The model, and where its weights come from."""

    id: Annotated[Str, Field(max_length=512, pattern=r"^[^\s\x00-\x1f-][^\s\x00-\x1f]*$")]
    """Hugging Face id; or, with a leading `/` or `./`, a path inside the model volume. A change makes a
    new revision."""
    revision: Annotated[Str, Field(max_length=255, pattern=r"^[^\s\x00-\x1f-][^\s\x00-\x1f]*$")] | None = None
    """Branch, tag or commit of the Hugging Face repository. Default: its main branch. A change makes a new revision."""
    architecture: Annotated[Str, Field(max_length=255, pattern=r"^[A-Za-z0-9_.]+$")] | None = None
    """Architecture as in the model's config.json, for example Qwen3VLForConditionalGeneration: lets the rules that
    depend on the model run without its weights. A change restarts nothing."""
    served_name: Annotated[Str, Field(max_length=512, pattern=r"^[^\s\x00-\x1f-][^\s\x00-\x1f]*$")] | None = None
    """Name in the API (--served-model-name). Default: id. A change makes a new revision."""
    token_secret_ref: SecretKeyRef | None = None
    """Entry with a Hugging Face token, given as HF_TOKEN to each container that downloads. A change restarts all."""
    volume: ModelVolume | None = None
    """Where the weights are (id is a path), or are cached (id is a Hugging Face id); mounted at /models. Default:
    nothing shared, each pod downloads. A change restarts all roles."""
