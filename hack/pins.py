"""Resolve requirements/*.txt from pyproject.toml: exact versions with hashes, no download addresses.

`python hack/pins.py` keeps versions that still fit, `python hack/pins.py --upgrade` takes the newest that fit.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
PYTHON = "3.11"
EXTRAS = {"dev": ["dev"], "operator": ["operator"], "proxy": ["proxy"]}
HEADER = "# Made by `make pins` from pyproject.toml; do not edit.\n"


def compile_pins(source: list[str], target: Path, options: list[str]) -> None:
    command = ["uv", "pip", "compile", *source, "--quiet", "--generate-hashes", "--no-header", "--no-annotate"]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--universal", "--python-version", PYTHON]
    command += ["--output-file", str(target), *options]
    subprocess.run(command, check=True, cwd=ROOT)
    text = target.read_text()
    if "://" in text:
        raise SystemExit(f"{target} holds a download address")
    target.write_text(HEADER + text)


def main() -> None:
    REQUIREMENTS.mkdir(exist_ok=True)
    for name, extras in EXTRAS.items():
        target = REQUIREMENTS / f"{name}.txt"
        options = [word for extra in extras for word in ("--extra", extra)] + sys.argv[1:]
        compile_pins(["pyproject.toml"], target, options)
    bootstrap = REQUIREMENTS / "bootstrap.in"
    compile_pins([str(bootstrap)], REQUIREMENTS / "bootstrap.txt", sys.argv[1:])


if __name__ == "__main__":
    main()
