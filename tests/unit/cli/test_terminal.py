"""Whatever a file holds, nothing of it reaches a terminal raw, and no command ends with a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from epd_operator.cli.main import cli

TRICK = "\x1b]0;owned\x07\x9b31m\u202e\u2066"
OBJECT: dict[str, Any] = {
    "apiVersion": "epd.dev/v1alpha1",
    "kind": "EPDDeployment",
    "metadata": {"name": "a"},
    "spec": {"model": {"id": "a/b"}, "engine": {"version": "0.33.0"}, "encode": {}, "decode": {}},
}
PLACES: dict[str, dict[str, Any]] = {
    "name": {"metadata": {"name": TRICK}},
    "kind": {"kind": TRICK},
    "version": {"apiVersion": f"epd.dev/{TRICK}"},
    "field": {"spec": {**OBJECT["spec"], TRICK: 1}},
    "served name": {"spec": {**OBJECT["spec"], "model": {"id": "a/b", "servedName": "\x9b31m\u202e"}}},
    "image": {"spec": {**OBJECT["spec"], "engine": {"image": "\x9b31m\u202e:v0.33.0"}}},
    "argument": {"spec": {**OBJECT["spec"], "decode": {"args": [f"--chat-template={TRICK}"]}}},
    "variable": {"spec": {**OBJECT["spec"], "decode": {"env": [{"name": "A", "value": TRICK}]}}},
}


@pytest.mark.parametrize("command", ["validate", "explain", "render", "run"])
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_no_control_character_is_printed(tmp_path: Path, command: str, place: str) -> None:
    file = tmp_path / "epd.json"
    file.write_text(json.dumps({**OBJECT, **PLACES[place]}))
    words = ["--name", "none"] if command == "run" else []
    result = CliRunner().invoke(cli, [command, *words, str(file)], color=True)
    assert isinstance(result.exception, SystemExit) or result.exception is None
    shown = result.output
    for style in ("\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[33m"):  # our own
        shown = shown.replace(style, "")
    assert shown.replace("\n", "").isprintable()


def epd(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from epd_operator.cli.main import main; main()", *words]
    return subprocess.run(program, text=True, stderr=subprocess.PIPE, check=False, **options)


def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        done = epd("crd", stdout=full)
    assert (done.returncode, done.stderr) == (2, "error: output: no space left on device\n")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = epd("crd", "--output-dir", str(tmp_path / "file" / "folder"), stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, f"error: {tmp_path}/file/folder: not a directory\n")


def test_a_terminal_of_another_encoding_gets_escapes(tmp_path: Path) -> None:
    file = tmp_path / "epd.json"
    file.write_text(json.dumps({**OBJECT, "metadata": {"name": "\U0001f600"}}))
    done = epd("validate", str(file), stdout=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 1
    assert r"\U0001f600" in done.stdout
