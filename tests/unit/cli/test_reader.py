"""What a file must be before it is judged: every mistake is a sentence that names the place."""

import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.cli.reader import MAX_BYTES, Unreadable, read

OBJECT = "apiVersion: epd.dev/v1alpha1\nkind: EPDDeployment\nmetadata: {name: a}\nspec: {}\n"


def written(folder: Path, content: str | bytes) -> str:
    file = folder / "object.yaml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "object.yaml: is empty; expected an EPDDeployment"),
        ("---\n---\n# only a comment\n", "object.yaml: is empty"),
        ("kind: Pod\napiVersion: v1\n", "holds kind Pod of apiVersion v1; expected kind EPDDeployment"),
        ("kind: Pod\n", "holds kind Pod of apiVersion (none)"),
        ("a: 1\n", "holds an object without kind"),
        ("- 1\n", "document 0 is a list"),
        ("hello\n", "document 0 is a text"),
        ("42\n", "document 0 is a single value"),
        ("apiVersion: epd.dev/v2\nkind: EPDDeployment\n", "apiVersion epd.dev/v2 is not known; use epd.dev/v1alpha1"),
        ("a: [1\nb: 2\n", "object.yaml:2:2: is not valid YAML"),
        ("a: 1\n\tb: 2\n", "object.yaml:2:1: is not valid YAML"),
        ("a: 1\na: 2\n", "object.yaml:2:1: is not valid YAML: key 'a' is given twice"),
        (OBJECT + "---\nx: {y: 1, y: 2}\n", "object.yaml:6:11: is not valid YAML: key 'y' is given twice"),
        ("a: *nowhere\n", "object.yaml:1:4: is not valid YAML"),
        ("a: !!python/object/apply:os.system [x]\n", "object.yaml:1:4: is not valid YAML"),
        ('a: "\x01"\n', "object.yaml:1:5: is not valid YAML"),
        ("a: !!binary aGVsbG8=\n", "holds a value of type bytes, which JSON cannot say"),
        ("a: .inf\n", "holds a number that is not finite"),
        ("a: &a [*a]\n", "levels once its YAML aliases are expanded"),
        ("[" * 5000, "is not valid YAML"),
        (b"\xff\xfe\x00k", "is not text: byte 0 is not UTF-8"),
        (b"kind: a\x00b", "is not text: it holds a NUL byte at 7"),
        (b"\x7fELF\x02\x01\x01\x00", "is not text"),
        (b"#" * (MAX_BYTES + 1), "is larger than 1.5 MiB"),
        ("apiVersion: epd.dev/v1alpha1\nkind: EPDDeploymnet\n", "holds kind EPDDeploymnet of apiVersion epd.dev/v1"),
        (OBJECT + "---\n" + OBJECT.replace("epd.dev", "edp.dev"), "holds kind EPDDeployment of apiVersion edp.dev/v1"),
        (OBJECT + "---\n" + OBJECT.replace("EPDD", "EpdD"), "holds kind EpdDeployment of apiVersion epd.dev/v1alpha1"),
        (OBJECT + "---\n" + OBJECT.replace("EPDDeployment", "Foo"), "holds kind Foo of apiVersion epd.dev/v1alpha1"),
        ('{"kind": "List", "apiVersion": "v1", "items": [1]}', "document 0 lists '1'; expected objects"),
        ('{"kind": "a", "kind": "b"}', "object.yaml:1:15: is not valid YAML: key 'kind' is given twice"),
        ('{"a": NaN}', "holds an object without kind"),
        ('{"a": "\\ud800"}', "holds half a character"),
        ('kind: "\\e[31m\\u202e"\n', "holds kind \\x1b[31m\\u202e of apiVersion (none)"),
    ],
)
def test_says_what_is_wrong(tmp_path: Path, content: str | bytes, said: str) -> None:
    with pytest.raises(Unreadable) as raised:
        read(written(tmp_path, content))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_expanding_aliases_end_early(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(Unreadable, match="100000 values"):
        read(written(tmp_path, "\n".join(lines)))


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no such file or directory"):
        read(str(tmp_path / "none.yaml"))
    with pytest.raises(Unreadable, match="is a directory"):
        read(str(tmp_path))
    with pytest.raises(Unreadable):
        read("a\0b")
    with pytest.raises(Unreadable, match="'': is no file name"):
        read("")


def test_several_documents_keep_their_place(tmp_path: Path) -> None:
    claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\n"
    documents = read(written(tmp_path, f"{claim}---\n{OBJECT}---\n---\n{OBJECT.replace('name: a', 'name: b')}"))
    assert [(document.index, document.name) for document in documents] == [(1, "a"), (3, "b")]


def test_lists_and_json_are_read(tmp_path: Path) -> None:
    item = '{"apiVersion": "epd.dev/v1alpha1", "kind": "EPDDeployment", "metadata": {"name": "a"}}'
    documents = read(written(tmp_path, f'{{"apiVersion": "v1", "kind": "List", "items": [{item}]}}'))
    assert [document.name for document in documents] == ["a"]


def test_json_is_read_as_json(tmp_path: Path) -> None:
    item = '{"apiVersion": "epd.dev\\/v1alpha1", "kind": "EPDDeployment",\n\t"metadata": {"name": "\\ud83d\\ude00"}}'
    documents = read(written(tmp_path, f"{item}\n{item}"))
    assert [(document.index, document.name) for document in documents] == [(0, "\U0001f600"), (1, "\U0001f600")]


def test_a_scale_beside_a_deployment_is_left_alone(tmp_path: Path) -> None:
    scale = "apiVersion: epd.dev/v1alpha1\nkind: EPDRoleScale\nmetadata: {name: s}\n"
    assert [document.index for document in read(written(tmp_path, f"{scale}---\n{OBJECT}"))] == [1]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(OBJECT.encode())))
    assert read("-")[0].name == "a"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(Unreadable, match="standard input: is empty"):
        read("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Unreadable, match="standard input: is closed"):
        read("-")


def test_values_are_those_of_kubectl(tmp_path: Path) -> None:
    text = OBJECT.replace("spec: {}", "spec: {yes_: yes, date: 2024-01-01, 1: one, merged: {<<: {a: 1}, b: 2}}")
    spec = read(written(tmp_path, text))[0].content["spec"]
    assert spec == {"yes_": True, "date": "2024-01-01", "1": "one", "merged": {"a": 1, "b": 2}}


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_no_input_raises_anything_else(content: bytes) -> None:
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(content))
    try:
        read("-")
    except Unreadable as error:
        assert str(error).startswith("standard input")  # noqa: PT017
    finally:
        sys.stdin = stdin
