"""Recordings that were read elsewhere: the same answers, and nothing from a file that lies."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from stepscope import open_run
from stepscope.cli import main
from stepscope.errors import NothingReadable
from stepscope.export.packing import pack
from stepscope.store.packed import MAGIC, Header, PackedFile, PackedPart, problem_of_packed
from tests.cli.calling import EXAMPLE, document
from tests.cluster.profiles import content


def answers(capture: pytest.CaptureFixture[str], path: Path | str) -> Any:
    """All answers about a recording, without names of files and the directories of its traces."""
    found = document(capture, "analyze", path)
    for finding in found["findings"]:
        if finding["timeline"] is not None:
            finding["timeline"]["file"] = Path(finding["timeline"]["file"]).name
    return {key: value for key, value in found.items() if key not in ("run", "unread", "issues", "stepscope")}


def test_packed_recordings_give_the_same_answers(tmp_path: Path, capfd) -> None:
    packing = pack([Path(EXAMPLE)], tmp_path / "packed")

    assert len(packing.packed) == 4
    assert answers(capfd, tmp_path / "packed") == answers(capfd, EXAMPLE)
    run = open_run(tmp_path / "packed")
    assert [rank.facts["format"] for rank in run.ranks] == ["kineto"] * 4


@pytest.mark.parametrize("name", ["real_cluster_pipeline4", "synthetic_legacy_r13"])
def test_packed_classic_profiles_give_the_same_answers(name: str, tmp_path: Path, shared: Path, capfd) -> None:
    origin = shared / "data/mindspore" / name
    pack([origin], tmp_path / "packed")

    assert answers(capfd, tmp_path / "packed") == answers(capfd, origin)


def test_hosts_with_stepscope_send_summaries(tmp_path: Path, capfd) -> None:
    hosts = [{"name": "a", "path": EXAMPLE}]
    (tmp_path / "hosts.json").write_text(json.dumps({"hosts": hosts}))
    words = ["--hosts", tmp_path / "hosts.json", "--source", "*", "--summaries", "-o", tmp_path / "run", "--keep-gb", 0]

    assert main(["collect", *map(str, words)]) == 0

    files = [name for name in content(tmp_path / "run") if name.endswith(".stepscope")]
    assert len(files) == 4
    assert all(name.startswith("1/rank-") for name in files)
    capfd.readouterr()
    expected = answers(capfd, EXAMPLE)
    for rank in expected["ranks"]:
        rank["host"] = "1"  # a collected host has its id
    assert answers(capfd, tmp_path / "run") == expected


def test_a_host_without_stepscope_is_told(tmp_path: Path, capfd) -> None:
    hosts = [{"name": "a", "path": EXAMPLE, "stepscope": "/nowhere/stepscope"}]
    (tmp_path / "hosts.json").write_text(json.dumps({"hosts": hosts}))
    words = ["--hosts", tmp_path / "hosts.json", "--source", "*", "--summaries", "-o", tmp_path / "run", "--json"]

    assert main(["collect", *map(str, words)]) == 2

    reason = json.loads(capfd.readouterr().out)["hosts"][0]["reason"]
    assert "there is no command `/nowhere/stepscope` on it" in reason
    assert "without --summaries" in reason


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    one = next(Path(EXAMPLE).glob("rank-0*"))
    pack([one], tmp_path / "packed")
    return next((tmp_path / "packed").rglob("*.stepscope"))


def rewritten(file: Path, change: Any, body: bytes | None = None) -> None:
    """Change the header of a packed recording."""
    with PackedFile(file) as opened:
        header, begin = opened.header, opened._begin
    rows = file.read_bytes()[begin:] if body is None else body
    text = msgspec.json.encode(change(header))
    file.write_bytes(MAGIC + len(text).to_bytes(8, "little") + text + rows)


def with_steps(header: Header, frame: pl.DataFrame, name: str = "steps") -> tuple[Any, bytes]:
    out = io.BytesIO()
    frame.write_parquet(out)
    text = out.getvalue()
    part = PackedPart(0, len(text), frame.height, hashlib.sha256(text).hexdigest())
    return lambda old: msgspec.structs.replace(old, tables={name: [part]}), text


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda h: msgspec.structs.replace(h, schema="other"), "whose tables differ from those of this version"),
        (lambda h: msgspec.structs.replace(h, tables={"../x": []}), "that does not exist"),
        (lambda h: msgspec.structs.replace(h, tables={"ranks": []}), "that does not exist"),
        (lambda h: msgspec.structs.replace(h, tables={"steps": [PackedPart(-5, 9, 1, "")]}), "impossible places"),
        (lambda h: msgspec.structs.replace(h, tables={"steps": [PackedPart(0, 1 << 50, 1, "")]}), "impossible places"),
        (
            lambda h: msgspec.structs.replace(h, tables={"steps": [PackedPart(0, 9, 1 << 50, "")]}),
            "impossible number of rows",
        ),
        (lambda h: msgspec.structs.replace(h, tables={"steps": [PackedPart(0, 9, 1, "00")]}), "the checksum"),
        (lambda h: msgspec.structs.replace(h, tables={"steps": [PackedPart(0, 9, 1, "")] * 2}), "impossible places"),
    ],
)
def test_a_header_that_lies_is_refused(packed: Path, change: Any, problem: str) -> None:
    rewritten(packed, change)

    with pytest.raises(NothingReadable, match=problem):
        open_run(packed)


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (pl.DataFrame({"evil": [1]}), "columns in steps that are not of this table: evil"),
        (pl.DataFrame({"step": ["1"]}), "columns in steps that are not of this table: step"),
    ],
)
def test_tables_with_other_columns_are_refused(packed: Path, frame: pl.DataFrame, problem: str) -> None:
    with PackedFile(packed) as opened:
        change, body = with_steps(opened.header, frame)
    rewritten(packed, change, body)

    with pytest.raises(NothingReadable, match=problem):
        open_run(packed)


def test_any_cut_or_changed_byte_is_an_error_and_no_crash(packed: Path) -> None:
    whole = packed.read_bytes()
    for at in [*range(0, 80), *range(80, len(whole), max(len(whole) // 60, 1))]:
        packed.write_bytes(whole[:at])
        assert outcome(packed) != "read"
        packed.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        outcome(packed)


def outcome(file: Path) -> str:
    try:
        open_run(file, use_store=False)
    except NothingReadable:
        return "refused"
    return "read"


def test_what_another_version_packed_is_told(packed: Path) -> None:
    packed.write_bytes(packed.read_bytes().replace(b"recording 1\n", b"recording 2\n", 1))

    problem = problem_of_packed(packed)

    assert problem is not None
    assert "a later version of stepscope" in problem
