import sys
from pathlib import Path

import pytest

from epd_operator.engine.release import Release
from epd_operator.local.errors import LocalError
from epd_operator.local.vllm import find_vllm

WANTED = Release(0, 32)


def program(path: Path, version: str = "0.32.0+cpu", first: str = "#!/bin/sh") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\necho 'INFO starting'\necho {version}\n")
    path.chmod(0o755)
    return path


def test_the_given_program_wins(tmp_path: Path) -> None:
    given, variable, on_path = (program(tmp_path / name / "vllm") for name in ("a", "b", "c"))
    environ = {"EPD_VLLM": str(variable), "PATH": f"{on_path.parent}:/bin:/usr/bin"}
    assert find_vllm(str(given), environ, WANTED).program == given
    assert find_vllm(None, environ, WANTED).program == variable
    del environ["EPD_VLLM"]
    assert find_vllm(None, environ, WANTED).program == on_path
    assert find_vllm(None, environ, WANTED).version == "0.32.0+cpu"


@pytest.mark.parametrize(
    ("given", "environ", "says"),
    [
        ("/nowhere/vllm", {}, r"--vllm: no program /nowhere/vllm"),
        (None, {"EPD_VLLM": "/nowhere/vllm"}, r"\$EPD_VLLM: no program /nowhere/vllm"),
        (None, {"PATH": "/nowhere"}, r"PATH: no program vllm that can be run; install vLLM and name .* by --vllm"),
    ],
)
def test_no_program(given: str | None, environ: dict[str, str], says: str) -> None:
    with pytest.raises(LocalError, match=says):
        find_vllm(given, environ, WANTED)


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("0.33.0", r"spec.engine.version is 0.32.0, but .*vllm \(from --vllm\) is 0.33.0; install vLLM 0.32.0"),
        ("0.32.1", "is 0.32.1"),
        ("; exit 1", "says that it is version ''"),
        ("later", "says that it is version 'later', which is none"),
    ],
)
def test_another_version(tmp_path: Path, version: str, says: str) -> None:
    with pytest.raises(LocalError, match=says):
        find_vllm(str(program(tmp_path / "vllm", version)), {}, WANTED)


def test_the_version_comes_from_the_interpreters_packages_where_there_are_any(tmp_path: Path) -> None:
    """An environment that can be moved: its scripts are shell scripts that run the `python` beside themselves."""
    real = program(tmp_path / "env" / "vllm", "0.1.0", first="#!/bin/sh\n'''exec' $(realpath $0)/python '''")
    python = real.with_name("python")
    python.write_text("#!/bin/sh\necho 0.32.0\n")
    python.chmod(0o755)
    link = tmp_path / "vllm"
    link.symlink_to(real)
    assert find_vllm(str(link), {}, WANTED).version == "0.32.0"


def test_a_script_whose_interpreter_lacks_the_package_is_asked_itself(tmp_path: Path) -> None:
    script = program(tmp_path / "vllm", first=f"#!{sys.executable}")
    script.write_text(f"#!{sys.executable}\nprint('0.32.0')\n")
    assert find_vllm(str(script), {}, WANTED).version == "0.32.0"
