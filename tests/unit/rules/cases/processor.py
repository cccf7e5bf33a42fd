"""Cases of the rules about a device among the processor's options."""

from tests.unit.rules.case import Breaks, Case, Spares


def _args(role: str, device: str, more: str = "") -> str:
    return f"""{role}: {{args: ['--mm-processor-kwargs={{"device":{device}}}']{more}}}"""


def _value(device: str) -> str:
    return f'--mm-processor-kwargs={{"device":{device}}}'


CASES = (
    Case(
        "processor-device-invalid",
        (
            Breaks(_args("decode", '"CUDA"'), "spec.decode.args[0]", _value('"CUDA"')),
            Breaks(_args("encode", '"gpu"'), "spec.encode.args[0]", _value('"gpu"')),
            Breaks(_args("engine", '"cuda:x"', ", version: 0.33.0"), "spec.engine.args[0]", _value('"cuda:x"')),
            Breaks(_args("decode", "[1]"), "spec.decode.args[0]", _value("[1]")),
            Breaks(
                "decode: {args: [--mm-processor-kwargs.device, auto]}",
                "spec.decode.args[0]",
                "--mm-processor-kwargs.device auto",
            ),
        ),
        (Spares(_args("decode", '"cpu"')), Spares(_args("encode", '"cuda:0"')), Spares(_args("decode", "null"))),
    ),
    Case(
        "processor-device-off-encoder",
        (
            Breaks(_args("decode", '"cuda"'), "spec.decode.args[0]", _value('"cuda"')),
            Breaks(_args("decode", '"cuda:1"'), "spec.decode.args[0]", _value('"cuda:1"')),
            Breaks(_args("decode", "0"), "spec.decode.args[0]", _value("0")),
            Breaks(_args("engine", '"cuda"', ", version: 0.33.0"), "spec.engine.args[0]", _value('"cuda"')),
        ),
        (
            Spares(_args("encode", '"cuda"')),
            Spares(_args("decode", '"cpu"')),
            Spares("model: {architecture: Qwen2ForCausalLM}\nencode: <absent>\n" + _args("decode", '"cuda"')),
        ),
    ),
    Case(
        "processor-device-clash",
        (
            Breaks(
                _args("encode", '"cuda"', ", preprocessing: {device: CPU}"), "spec.encode.args[0]", _value('"cuda"')
            ),
            Breaks(
                _args("encode", '"cpu"', ", preprocessing: {device: Accelerator}"),
                "spec.encode.args[0]",
                _value('"cpu"'),
            ),
            Breaks(_args("encode", '"cuda:1"'), "spec.encode.args[0]", _value('"cuda:1"')),
            Breaks(_args("encode", '"xpu"'), "spec.encode.args[0]", _value('"xpu"')),
            Breaks(_args("decode", '"xpu"'), "spec.decode.args[0]", _value('"xpu"')),
            Breaks(
                "device: {type: CPU}\nencode: <absent>\n" + _args("decode", "0"), "spec.decode.args[0]", _value("0")
            ),
        ),
        (
            Spares(_args("encode", '"cpu"', ", preprocessing: {device: CPU}")),
            Spares(_args("encode", '"cuda:1"', ", parallelism: {tensor: 2}")),
        ),
    ),
)
