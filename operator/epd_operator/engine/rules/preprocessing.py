"""Rules about where media become tensors, and how those reach the engine."""

from collections.abc import Iterator

from epd_operator.api.device import DeviceType
from epd_operator.api.finding import Severity
from epd_operator.api.role import Preprocessing, PreprocessingDevice, Role, TensorIPC
from epd_operator.engine.instance import Instance
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

_MOVE = "move it to spec.encode or remove it"


@rule(
    id="torch-shm-single-rank",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="torch_shm works only with tensor, pipeline and data parallelism 1.",
    why="vLLM refuses to start.",
    source="vLLM 0.28 config/model.py:1417, 0.33 config/model.py:1609",
    proved=True,
)
def torch_shm_single_rank(wiring: Wiring) -> Iterator[Broken]:
    """torch_shm asked of an encoder with more than one rank; of other roles it is never right."""
    instance = wiring.instances.get(Role.ENCODE) if wiring.takes_media else None
    if instance is None or instance.tensor_ipc is not TensorIPC.TORCH_SHM or instance.single_rank:
        return
    many = [name for name, degree in instance.degrees.items() if degree > 1]
    message = "torch_shm works only with tensor, pipeline and data parallelism 1 (vLLM refuses to start)"
    remedy = f"set {' and '.join(many)} to 1 or preprocessing.tensorIPC to direct_rpc"
    yield Broken(f"spec.encode.parallelism.{many[0]}", instance.degrees[many[0]], message, remedy)


@rule(
    id="torch-shm-spawn",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="torch_shm needs VLLM_WORKER_MULTIPROC_METHOD=spawn, which the operator sets.",
    why="vLLM refuses to start with any other start method.",
    source="vLLM 0.28 config/vllm.py:1268, 0.33 config/vllm.py:1750",
    proved=True,
)
def torch_shm_spawn(wiring: Wiring) -> Iterator[Broken]:
    """The user sets another start method of an encoder."""
    instance = wiring.instances.get(Role.ENCODE) if wiring.takes_media else None
    entry = instance.env.get("VLLM_WORKER_MULTIPROC_METHOD") if instance else None
    if instance is None or entry is None or instance.tensor_ipc is not TensorIPC.TORCH_SHM:
        return
    if entry.variable.value != "spawn":
        message = "torch_shm works only with the start method spawn (vLLM refuses to start)"
        remedy = "remove the variable, or set preprocessing.tensorIPC to direct_rpc"
        yield Broken(entry.path, entry.shown, message, remedy)


@rule(
    id="preprocessing-off-encoder",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="preprocessing goes only with encode.",
    why="Other roles receive metadata instead of media, or preprocess on the CPU: vLLM allows them nothing else.",
    source="vLLM 0.28 config/multimodal.py:440, 0.33 config/multimodal.py:650",
)
def preprocessing_off_encoder(wiring: Wiring) -> Iterator[Broken]:
    """A preprocessing block on another role; its accelerator form has a rule of its own."""
    for role, instance in wiring.instances.items():
        preprocessing = instance.spec.preprocessing
        if role is Role.ENCODE or preprocessing is None:
            continue
        if _refused_accelerator(wiring, instance, preprocessing):
            continue
        if preprocessing.tensor_ipc is TensorIPC.TORCH_SHM:
            message = f"torch_shm carries an encoder's tensors, and {role} instances run the language model"
            yield Broken(f"spec.{role}.preprocessing.tensorIPC", preprocessing.tensor_ipc, message, _MOVE)
            continue
        message = "only an encoder has a choice: where the language model runs, media are preprocessed on the CPU"
        value = preprocessing.model_dump(mode="json", by_alias=True, exclude_none=True)
        yield Broken(f"spec.{role}.preprocessing", value, message, _MOVE)


def _refused_accelerator(wiring: Wiring, instance: Instance, preprocessing: Preprocessing) -> bool:
    """Whether vLLM itself refuses: not for a model without media, nor where the processor's own option wins."""
    wanted = preprocessing.device is PreprocessingDevice.ACCELERATOR and wiring.takes_media
    return wanted and instance.preprocessing_device.startswith(instance.torch_device)


@rule(
    id="accelerator-preprocessing-off-encoder",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="Media are preprocessed on the accelerator only on an encoder.",
    why="vLLM refuses to start: the processor would share the device with the language model.",
    source="vLLM 0.28 config/multimodal.py:440, 0.33 config/multimodal.py:650",
    proved=True,
)
def accelerator_off_encoder(wiring: Wiring) -> Iterator[Broken]:
    """Accelerator, asked of a role that runs the language model."""
    for role, instance in wiring.instances.items():
        preprocessing = instance.spec.preprocessing
        if role is Role.ENCODE or preprocessing is None or not _refused_accelerator(wiring, instance, preprocessing):
            continue
        message = "this role also runs the language model, which would share the device (vLLM refuses to start)"
        yield Broken(f"spec.{role}.preprocessing.device", preprocessing.device, message, _MOVE)


@rule(
    id="accelerator-preprocessing-on-cpu",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="Media are preprocessed on the accelerator only where there is one.",
    why="On a CPU platform vLLM's --mm-processor-device takes only auto and cpu.",
    source="vLLM 0.33 config/multimodal.py:650",
    proved=True,
)
def accelerator_on_cpu(wiring: Wiring) -> Iterator[Broken]:
    """Accelerator asked of an encoder on CPU."""
    instance = wiring.instances.get(Role.ENCODE)
    if instance is None or instance.device_type is not DeviceType.CPU:
        return
    if instance.wanted_preprocessing is PreprocessingDevice.ACCELERATOR:
        message = "the encoder runs on CPU and has no accelerator (vLLM refuses to start)"
        remedy = "set it to Auto or CPU, or give the encoder a device"
        yield Broken("spec.encode.preprocessing.device", PreprocessingDevice.ACCELERATOR, message, remedy)


@rule(
    id="auto-preprocessing-on-cpu",
    severity=Severity.WARNING,
    kind=Kind.SILENT,
    what="preprocessing.device: Auto of an encoder with an accelerator means the accelerator.",
    why="vLLM takes it only with torch_shm, else the CPU, and says so in one line of its log.",
    source="vLLM 0.28 config/vllm.py:2302, 0.33 config/vllm.py:2903; asked",
    proved=True,
)
def auto_on_cpu(wiring: Wiring) -> Iterator[Broken]:
    """Auto as written, and the outcome is the CPU."""
    encode = wiring.instances.get(Role.ENCODE)
    written = encode.spec.preprocessing.device if encode and encode.spec.preprocessing else None
    if encode is None or written is not PreprocessingDevice.AUTO or encode.device_type is DeviceType.CPU:
        return
    if encode.preprocessing_device == "cpu" and encode.tensor_ipc is not TensorIPC.TORCH_SHM:
        message = "without torch_shm vLLM preprocesses on the CPU, and says so in its log only"
        remedy = "set it to CPU if that is meant, to Accelerator, or use torch_shm with parallelism 1"
        yield Broken("spec.encode.preprocessing.device", written, message, remedy)


RULES = (
    torch_shm_single_rank,
    torch_shm_spawn,
    preprocessing_off_encoder,
    accelerator_off_encoder,
    accelerator_on_cpu,
    auto_on_cpu,
)
