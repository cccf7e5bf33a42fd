"""CPU time of `epd validate FILE`, as a user starts it: a new process each time.

    python benchmarks/validate_cpu.py [--runs N] [--file FILE]

Prints the median and the extremes in seconds of user and system time together, what a Python that does nothing takes,
and which heavy modules were imported (none should be). Asserts nothing.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "kopf", "kubernetes", "aiohttp", "vllm", "jinja2", "cryptography", "structlog", "prometheus_client")
NOTHING = "pass"
VALIDATE = "import sys; from epd_operator.cli.main import main; sys.argv = ['epd', 'validate', sys.argv[1]]; main()"
MODULES = f"""
import contextlib, io, sys
from epd_operator.cli.main import main
sys.argv = ['epd', 'validate', sys.argv[1]]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
print(len(sys.modules), *(name for name in {HEAVY!r} if name in sys.modules))
"""


def cpu_seconds(code: str, file: Path) -> float:
    """User and system time of one Python process."""
    process = subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"a run ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def row(name: str, seconds: list[float]) -> str:
    low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
    return f"{name:<28} {middle:8.3f} s   {low:.3f} to {high:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--file", type=Path, default=ROOT / "examples/quickstart.yaml")
    options = parser.parse_args()
    cpu_seconds(VALIDATE, options.file)  # bytecode is compiled once, at installation
    print(f"CPU time, median of {options.runs} runs, Python {sys.version.partition(' ')[0]}")
    print(row("python that does nothing", [cpu_seconds(NOTHING, options.file) for _ in range(options.runs)]))
    print(row(f"epd validate {options.file.name}", [cpu_seconds(VALIDATE, options.file) for _ in range(options.runs)]))
    seen = subprocess.run(
        [sys.executable, "-c", MODULES, str(options.file)], capture_output=True, text=True, check=True
    ).stdout.split()
    print(f"modules imported: {seen[0]}; heavy ones: {', '.join(seen[1:]) or 'none'}")


if __name__ == "__main__":
    main()
