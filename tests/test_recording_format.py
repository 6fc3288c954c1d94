"""The format of recordings: what is written is read back, and is what docs/recording.md says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.errors import UnreadableInput
from stepscope.recording_format import marks
from stepscope.recording_format.about import About
from stepscope.recording_format.export_list import ExportList, list_name
from stepscope.recording_format.layout import ABOUT, rank_in_name, recording_name, stamp_in_name
from stepscope.recording_format.marks import CollectiveDetail, collective_text
from stepscope.recording_format.reading import is_recording, read_about, read_export_list
from stepscope.recording_format.rows import CSV_FILES

PAGE = (Path(__file__).parents[1] / "docs" / "recording.md").read_text()


def section(title: str) -> str:
    """The text below a heading of the page."""
    return PAGE.split(f"\n## {title}", 1)[1].split("\n## ", 1)[0]


def test_the_page_lists_the_keys_of_the_description() -> None:
    table = section("recording.json")
    listed = {key for line in table.splitlines() if line.startswith("| `") for key in re.findall("`(.*?)`", line[:80])}

    written = set(About(Path()).as_json())

    assert written <= listed


@pytest.mark.parametrize("file", CSV_FILES, ids=lambda file: str(file.name))
def test_the_page_has_the_header_of_each_file(file: object) -> None:
    assert f"`{file.header}`" in section(file.name)  # type: ignore[attr-defined]


def test_the_page_lists_the_kinds_of_marks() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", section("marks.csv"), re.MULTILINE)

    kinds = {value for name, value in vars(marks).items() if name.isupper() and isinstance(value, str)}
    assert sorted(listed) == sorted(kinds - {marks.EVALUATES, marks.NO_GRADIENT, marks.RUN_DELAY})


def test_a_description_is_read_as_it_was_written(tmp_path: Path) -> None:
    about = About(
        tmp_path,
        "stopped",
        rank=3,
        world_size=8,
        local_rank=1,
        device_id=1,
        host="node",
        pid=77,
        boot_id="b",
        epoch_shift_ns=5,
        framework="torch",
        framework_version="2.13.0",
        stepscope_version="1",
        python_version="3.11",
        device_kind="cuda",
        device_name="H100",
        mode="eager",
        backend="nccl",
        parallel={"stage_num": 2},
        groups=[{"group": "0", "name": None, "members": [0, 1]}],
        clock={"offset_ns": -7, "error_ns": 1, "method": "store round trip"},
        options={"op_time": True},
        environment={"RANK": "3"},
        arguments=["train.py"],
        spans=[(1, 2), (3, None)],
        started_ns=1,
        updated_ns=9,
        problems=["no NVML"],
        own_threads=[78],
    )
    (tmp_path / ABOUT).write_text(json.dumps(about.as_json()))

    read = read_about(tmp_path)

    assert read == about
    assert (read.shift_ns, read.process, read.was_stopped) == (-7, "77", True)
    assert read.closed_spans == [(1, 2), (3, 9)]
    assert read.named_rank == (3, "content")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is cut off or damaged"),
        ('{"format": "other"}', "does not describe a recording"),
        ('{"format": "stepscope-recording", "version": 2}', "has format version 2"),
        ('{"format": "stepscope-recording"}', "has format version None"),
    ],
)
def test_another_description_is_refused_with_the_reason(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / ABOUT).write_text(content)

    with pytest.raises(UnreadableInput, match=problem):
        read_about(tmp_path)


def test_a_damaged_description_beside_marks_is_one_of_a_recording(tmp_path: Path) -> None:
    (tmp_path / ABOUT).write_text("{")
    assert not is_recording(tmp_path)

    (tmp_path / "marks.csv").touch()

    assert is_recording(tmp_path)


def test_values_of_another_kind_are_unknown(tmp_path: Path) -> None:
    read = About.of(tmp_path / "rank-5_host-1_2026", {key: ["?"] for key in About(tmp_path).as_json()})

    assert (read.rank, read.host, read.pid, read.clock, read.groups, read.spans) == (None, None, None, {}, [], [])
    assert read.named_rank == (5, "file name")


def test_names_of_directories_tell_rank_and_time() -> None:
    name = recording_name(12, "node_7.local", 99, 1_790_000_000_123_000_000)

    assert name == "rank-12_node-7-local-99_20260921141320123"
    assert (rank_in_name(name), stamp_in_name(name)) == (12, "20260921141320123")
    assert rank_in_name("other") is None


@pytest.mark.parametrize(
    "detail",
    [
        CollectiveDetail("dp", 4096, "float32", 8, None, is_async=True),
        CollectiveDetail("0", 0, None, 2, 1, is_async=False),
        CollectiveDetail(None, None, None, None, None, is_async=False),
    ],
)
def test_the_detail_of_a_collective_is_read_as_it_was_written(detail: CollectiveDetail) -> None:
    group = None if detail.group is None else json.dumps(detail.group)
    text = collective_text(
        group, detail.group_size, detail.size_bytes, detail.element_type, detail.peer, is_async=detail.is_async
    )

    assert CollectiveDetail.of(json.loads(text)) == detail


def test_a_list_of_exported_files_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / list_name(3)
    listed = ExportList(path, "recording/rank-3", ("a.csv", "tree/b.json"), complete=False, steps=(4, 5))
    path.write_text(json.dumps(listed.as_json()))

    assert read_export_list(path) == listed
    assert listed.entries == {"a.csv", "tree"}


def test_a_training_process_loads_nothing_for_the_format() -> None:
    code = "import sys, stepscope.record.profiler as _; print(sorted({'msgspec', 'polars'} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert loaded.stdout == "[]\n"
