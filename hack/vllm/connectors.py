"""What the connectors of one vLLM release report and read, asked in one process without moving any data.

vLLM's own methods run on objects that have what these methods look at and nothing else: no worker, no device, no peer.
A question names one of ASKED and its arguments; `hack.vllm.ask` puts it, so that it runs inside the engine environment
with any release.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

EC = "vllm.distributed.ec_transfer.ec_connector"
REPORTERS = {
    "ECExampleConnector": f"{EC}.example_connector",
    "ECCPUConnector": f"{EC}.cpu.scheduler",
    "ECMooncakeConnector": f"{EC}.mooncake.scheduler",
}
MOONCAKE_KV = "vllm.distributed.kv_transfer.kv_connector.v1.mooncake.mooncake_connector"
METADATA_MODULES = (
    "vllm.renderers.chat_utils.item_tracker",  # 0.33
    "vllm.renderers.chat_utils",  # 0.32
    "vllm.entrypoints.chat_utils",
)
MEDIA_IO = {"image": "ImageEmbeddingMediaIO", "video": "VideoEmbeddingMediaIO", "audio": "AudioEmbeddingMediaIO"}
Json = dict[str, Any]


def feature(described: Json) -> Any:
    """A multimodal feature as a scheduler sees it: `identifier`, `modality`, `metadata` of nested lists or numbers."""
    import torch

    data = {name: torch.tensor(value) for name, value in described["metadata"].items()}
    return SimpleNamespace(
        identifier=described["identifier"],
        modality=described["modality"],
        data=SimpleNamespace(get_data=lambda: data),
        mm_position=SimpleNamespace(offset=0, length=16, get_num_embeds=lambda: 16),
    )


def request(features: list[Json], params: Json | None = None) -> Any:
    """A request as a scheduler sees it."""
    return SimpleNamespace(request_id="r", mm_features=[feature(one) for one in features], ec_transfer_params=params)


def scheduler(connector: str, fields: set[str]) -> Any:
    """The part of a connector that reports, as a producer, with what its reports look at."""
    module = importlib.import_module(REPORTERS[connector])
    own = [k for k in vars(module).values() if isinstance(k, type) and k.__module__ == module.__name__]
    kind = next((k for k in own if hasattr(k, "request_finished")), None)
    if kind is None:
        return SimpleNamespace(request_finished=lambda _: (False, None))  # the base class's, which reports nothing
    made: Any = object.__new__(type(kind.__name__, (kind,), {"is_producer": True, "is_consumer": False}))
    entry = SimpleNamespace(shape=(16, 256), block_ids=[0])
    attributes = {
        "_is_producer": True,
        "_is_consumer": False,
        "_nixl_enabled": True,
        "_metadata_resolver": SimpleNamespace(fields_for=lambda _: fields),
        "_placeholder_metadata_fields": lambda _: fields,  # up to 0.29
        "_cache": SimpleNamespace(get=lambda _: entry),
        "_region": SimpleNamespace(block_size_bytes=4096),
        "_hidden_dim": 256,
        "_element_size": 1,
        "_peer_host": "127.0.0.1",
        "_peer_port": 5601,
        "_deferred_since": {},
        "_prepared_push_transfer_ids": set(),
    }
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def report(connector: str, features: list[Json], params: Json | None = None) -> Any:
    """What an encoder's answer carries as `ec_transfer_params`."""
    fields = {name for one in features for name in one["metadata"]}
    finished = scheduler(connector, fields).request_finished(request(features, params))
    return finished[1]


def transfers(features: list[Json], params: Json) -> list[str | None]:
    """Which transfer id ECMooncakeConnector takes for each feature, on either side."""
    asked = request(features, params)
    ids = scheduler("ECMooncakeConnector", set())
    return [ids._request_transfer_id(asked, index) for index in range(len(features))]


def embeds(modality: str, payload: Json) -> Json:
    """The vectors that a consumer's front end makes of a content part's metadata."""
    module = next(m for name in METADATA_MODULES if (m := _import(name)) is not None)
    out = {}
    for name, value in payload.items():
        if isinstance(value, str):
            media = importlib.import_module(f"vllm.multimodal.media.{modality}")
            tensor = getattr(media, MEDIA_IO[modality])().load_base64("", value)
        else:
            tensor = module._parse_metadata_array(name, value, set(payload))
        out[name] = tensor.tolist()
    return out


def pull(params: Json) -> Json | None:
    """What MooncakeConnector on a decoder is going to fetch, by its own reading of `kv_transfer_params`."""
    module = importlib.import_module(MOONCAKE_KV)
    made = object.__new__(module.MooncakeConnectorScheduler)
    made.is_kv_producer, made.is_kv_consumer = False, True
    made._reqs_need_recv, made._reqs_need_send = {}, {}
    made.get_sw_clipped_blocks = lambda blocks: blocks
    made._get_remote_prefill_token_count = lambda count: count
    asked = SimpleNamespace(request_id="r", kv_transfer_params=dict(params), prompt_token_ids=[1, 2, 3])
    blocks = SimpleNamespace(
        get_unhashed_block_ids_all_groups=lambda: ([1],),
        get_unhashed_block_ids=lambda: [1],
        get_block_ids=lambda: [[1]],
    )
    count, waits = made.get_num_new_matched_tokens(asked, 0)
    made.update_state_after_alloc(asked, blocks, count)
    metadata = made.build_connector_meta(None)
    found = [one for by_request in metadata.reqs_to_recv.values() for one in by_request.values()]
    if not waits or not found:
        return None
    names = ("transfer_id", "remote_engine_id", "remote_bootstrap_addr")
    return {name: getattr(found[0], name) for name in names}


ASKED: dict[str, Callable[..., Any]] = {"report": report, "transfers": transfers, "embeds": embeds, "pull": pull}


def _import(name: str) -> Any:
    with contextlib.suppress(ModuleNotFoundError):
        module = importlib.import_module(name)
        return module if hasattr(module, "_get_embeds_data") else None
    return None


def answer(question: Json) -> Json:
    """The answer of vLLM's code, in the form of a verdict; whatever it raises is its answer."""
    arguments = dict(question)
    try:
        return {"accepted": True, "derived": {"answer": ASKED[arguments.pop("ask")](**arguments)}}
    except Exception as error:
        return {"accepted": False, "error": f"{type(error).__name__}: {error}"}
