"""vLLM has two model runners, and not every flag works with both."""

from collections.abc import Callable, Iterator, Mapping

from epd_operator.api.finding import Severity
from epd_operator.engine.instance import Instance
from epd_operator.engine.prediction import needing_v1, runs_v2
from epd_operator.engine.release import Release
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

VARIABLE = "VLLM_USE_V2_MODEL_RUNNER"
ASYNC_PIPELINES_NEED_V2_SINCE = Release(0, 31)
NEEDS_V2: Mapping[str, Callable[[Wiring, Instance], bool]] = {
    "--enable-trace-replay": lambda *_: True,
    "--return-sampling-mask": lambda *_: True,
    "--async-scheduling": lambda wiring, instance: (
        instance.pipeline > 1 and wiring.release is not None and wiring.release.is_within(ASYNC_PIPELINES_NEED_V2_SINCE)
    ),
}
"""Flags that vLLM takes with its V2 model runner only, and when that is so."""


@rule(
    id="v2-runner-needed",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="Flags that only the V2 model runner supports are on instances that have it.",
    why="vLLM refuses to start: requires Model Runner V2.",
    source="vLLM 0.28 to 0.33 config/vllm.py, _verify_sampling_replay_config, _verify_trace_replay_config; 0.31 "
    "to 0.33 config/vllm.py, _get_v1_model_runner_unsupported_features; asked",
    proved=True,
    needs_release=True,
)
def v2_needed(wiring: Wiring) -> Iterator[Broken]:
    """Replay of traces or samples on CPU, or where the user switches the runner off."""
    for instance in wiring.instances.values():
        for flag, applies in NEEDS_V2.items():
            given = instance.args.last(flag)
            if given is None or not instance.user_value(flag) or not applies(wiring, instance):
                continue
            if not runs_v2(wiring, instance):
                message = f"{instance.role} runs without the V2 model runner, which it needs (vLLM refuses to start)"
                remedy = "remove it, or take back what switches the runner off"
                yield Broken.at(instance, given, message, remedy)


@rule(
    id="v1-runner-needed",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="Flags that the V2 model runner does not support are on instances that may have the other one.",
    why="vLLM refuses to start: Model Runner V2 does not yet support it.",
    source="vLLM 0.28 to 0.31 config/vllm.py, _get_v2_model_runner_unsupported_features; asked",
    until=Release(0, 32),
    proved=True,
    needs_release=True,
)
def v1_needed(wiring: Wiring) -> Iterator[Broken]:
    """Where the user asks for the V2 runner, or the embeddings connector does."""
    for instance in wiring.instances.values():
        if not runs_v2(wiring, instance):
            continue
        for needs in needing_v1(wiring, instance):
            given = instance.args.last(needs.flag)
            if given is None or not needs.refused_on_v2:
                continue
            why = f"{VARIABLE} asks" if VARIABLE in instance.env else "ECCPUConnector asks"
            message = f"{why} for the V2 model runner, which does not support it (vLLM refuses to start)"
            remedy = f"remove it or {VARIABLE}" if VARIABLE in instance.env else "remove it, or use another connector"
            yield Broken.at(instance, given, message, remedy)


RULES = (v2_needed, v1_needed)
