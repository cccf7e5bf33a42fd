"""Ask one vLLM release, in one process, whether it accepts the configuration of an instance, and what it makes of it.

    python -m hack.vllm.ask cuda < questions.jsonl > answers.jsonl

A question is ``{"argv": [MODEL, FLAG, ...], "env": {...}}``; the answer is ``{"accepted": true, "derived": {...}}`` or
``{"accepted": false, "error": "..."}``, one line each. The verdict is that of vLLM's own ``serve`` command up to the
moment when an engine would start, plus what the connectors would only check in the engine's process. With
``"parse": true`` only the flags are read, and ``derived`` holds those of them that are not at their defaults. What
``{"connectors": {...}}`` asks is answered by `hack.vllm.connectors`.

Runs inside the engine environment; another release answers when its sources are first on PYTHONPATH. About 0.01 s an
answer after an import of 15 s. The first question about an architecture costs what importing the model costs.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from hack.vllm import connectors, fake_platform

Json = dict[str, Any]
SERVER_MODULES = ("vllm.entrypoints.launchers.api_server.entry", "vllm.entrypoints.openai.api_server")
# What the serve command calls when it is content with its flags; each would start processes.
STARTERS = ("run_dp_supervisor", "run_headless", "run_multi_api_server")
LIMIT = 420  # characters of an error that are kept


class Serve:
    """The ``vllm serve`` of the release that is loaded, stopped where it would start an engine."""

    def __init__(self) -> None:
        """Build the command's parser once; it takes a second."""
        from vllm.entrypoints.cli import serve
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        self.started: list[Any] = []
        self.defaults: Json = {}
        self.parser = FlexibleArgumentParser(description="vLLM CLI")
        subparsers = self.parser.add_subparsers(required=False, dest="subparser")
        [self.command] = serve.cmd_init()
        self.command.subparser_init(subparsers)
        for name in STARTERS:
            setattr(serve, name, self.started.append)
        serve.run_server = lambda args, **_: args
        serve.uvloop = type("Uvloop", (), {"run": staticmethod(self.started.append)})
        self.server = next(module for name in SERVER_MODULES if (module := _import(name)))

    def parsed(self, argv: list[str]) -> Json:
        """What the flags mean, of those that are not at their defaults and are plain values."""
        given = vars(self.parser.parse_args(["serve", *argv]))
        self.defaults = self.defaults or vars(self.parser.parse_args(["serve", argv[0]]))
        changed = {name: value for name, value in given.items() if value != self.defaults.get(name)}
        return {name: value for name, value in changed.items() if _plain(value)}

    def config(self, argv: list[str]) -> Any:
        """The configuration that the engine would be given; raises whatever vLLM raises."""
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.usage.usage_lib import UsageContext

        # The parser's defaults are objects that some checks write to; the next question must not see that.
        args = copy.deepcopy(self.parser.parse_args(["serve", *argv]))
        self.command.validate(args)
        self.started.clear()
        self.command.cmd(args)
        if not self.started:
            raise ValueError("the command ended without a server")
        for check in ("init_parser_plugin", "validate_api_server_args"):
            getattr(self.server, check, lambda _: None)(args)
        engine_args = AsyncEngineArgs.from_cli_args(args)
        return engine_args.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)


def _plain(value: Any) -> bool:
    return (
        value is None or isinstance(value, str | int | float) or (isinstance(value, list) and all(map(_plain, value)))
    )


def _import(name: str) -> Any:
    with contextlib.suppress(ModuleNotFoundError):
        module = importlib.import_module(name)
        return module if hasattr(module, "validate_api_server_args") else None
    return None


def check_connectors(config: Any) -> None:
    """What an engine core or worker would only find out after the process has started."""
    ec = config.ec_transfer_config
    if ec is not None and ec.is_ec_transfer_instance:
        from vllm.distributed.ec_transfer.ec_connector.factory import ECConnectorFactory

        checks: dict[str, Callable[[Any], None]] = {
            "ECMooncakeConnector": _check_mooncake,
            "ECCPUConnector": _check_cpu,
            "ECExampleConnector": _check_example,
        }
        connector = ECConnectorFactory.get_connector_class(ec)
        checks.get(connector.__name__, lambda _: None)(config)
    kv = config.kv_transfer_config
    if kv is not None and kv.is_kv_transfer_instance:
        from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

        KVConnectorFactory.get_connector_class(kv)


def _check_mooncake(config: Any) -> None:
    from vllm.distributed.ec_transfer.ec_connector.mooncake.config import MooncakeECConfig

    MooncakeECConfig.from_vllm_config(config)


def _check_cpu(config: Any) -> None:
    """Restates the check of the connector's constructor (cpu/connector.py, from 0.30); the rest is vLLM's own."""
    import vllm

    minor = tuple(int(part) for part in vllm.__version__.split(".")[:2])
    if minor >= (0, 30) and not config.use_v2_model_runner:
        raise ValueError("ECCPUConnector requires the V2 model runner. Set VLLM_USE_V2_MODEL_RUNNER=1.")
    from vllm.distributed.ec_transfer.ec_connector.cpu import common

    real, common.ECSharedRegion = common.ECSharedRegion, lambda **_: None
    try:
        common.create_ec_shared_region(config)
    finally:
        common.ECSharedRegion = real


def _check_example(config: Any) -> None:
    from vllm.distributed.ec_transfer.ec_connector.base import ECConnectorRole
    from vllm.distributed.ec_transfer.ec_connector.example_connector import ECExampleConnector

    ECExampleConnector(vllm_config=config, role=ECConnectorRole.SCHEDULER)


def derived(config: Any) -> Json:
    """The facts about an instance that the operator predicts."""
    mm = config.model_config.multimodal_config
    return {
        "multimodal": mm is not None,
        "encode_only": bool(mm and mm.mm_encoder_only),
        "allow_missing_mm_embeddings": bool(mm and mm.allow_missing_mm_embeddings),
        "enable_mm_embeds": bool(mm and mm.enable_mm_embeds),
        "mm_processor_device": (mm and mm.get_mm_processor_device_type()) or "cpu",
        "prefix_caching": bool(config.cache_config.enable_prefix_caching),
        "v2_model_runner": bool(config.use_v2_model_runner),
        "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
    }


def tidy(text: str) -> str:
    """One line without pydantic's echo of the input."""
    return " ".join(text.split("[type=", maxsplit=1)[0].split())[:LIMIT]


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables for one question and undo all that vLLM changes in the meantime."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def ask(serve: Serve, argv: list[str], env: dict[str, str], *, parse: bool = False) -> Json:
    """One answer."""
    printed = io.StringIO()
    try:
        with environment(env), contextlib.redirect_stderr(printed):
            if parse:
                return {"accepted": True, "derived": serve.parsed(argv)}
            config = serve.config(argv)
            check_connectors(config)
            return {"accepted": True, "derived": derived(config)}
    except SystemExit:
        return {"accepted": False, "error": "argparse: " + tidy(printed.getvalue().split("error:", 1)[-1])}
    except Exception as error:  # whatever vLLM raises is its verdict
        return {"accepted": False, "error": f"{type(error).__name__}: {tidy(str(error))}"}


def inspect_models_here() -> None:
    """Look at model classes in this process; vLLM starts another for each, which takes half a minute."""
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda look: look()


def spare_texts() -> None:
    """Let transformers not print every configuration that it reads into a log that nobody keeps: half of an answer."""
    from transformers import PretrainedConfig

    PretrainedConfig.__repr__ = object.__repr__


def main() -> None:
    fake_platform.quiet()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM prints on standard output; keep that for the verdicts
    fake_platform.pretend(sys.argv[1] if len(sys.argv) > 1 else "cuda")
    inspect_models_here()
    spare_texts()
    serve = Serve()
    for line in sys.stdin:
        question = json.loads(line)
        if "connectors" in question:
            answer = connectors.answer(question["connectors"])
        else:
            answer = ask(serve, question["argv"], question.get("env", {}), parse=question.get("parse", False))
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
