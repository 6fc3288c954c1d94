"""Telling Ascend recordings from others, by content."""

from __future__ import annotations

from pathlib import Path

import pytest
from ascend_files import (
    found,
    rank_directory,
    read,
    write_database,
    write_kernels,
    write_texts,
)

from stepscope.sources.ascend import AscendDb, AscendText
from stepscope.sources.ascend.rank_files import find_rank_files
from stepscope.sources.discover import discover


def test_a_rank_directory_of_any_name_is_found(tmp_path: Path) -> None:
    output = write_kernels(rank_directory(tmp_path, name="renamed by hand"))

    item = found(AscendText(), output.parent)

    assert item is not None
    assert {path.name for path in item.files} == {
        "kernel_details.csv", "profiler_info_0.json", "profiler_metadata.json", "info.json.3"
    }  # fmt: skip


def test_the_output_folder_alone_takes_the_files_above_it(tmp_path: Path) -> None:
    output = write_kernels(rank_directory(tmp_path))

    item = found(AscendText(), output)

    assert item is not None
    assert "profiler_info_0.json" in {path.name for path in item.files}


def test_a_directory_with_both_exports_is_one_input(tmp_path: Path) -> None:
    write_database(write_kernels(rank_directory(tmp_path)))

    inputs = discover([tmp_path]).inputs

    assert [item.source for item in inputs] == ["ascend_db"]


def test_what_an_earlier_analysis_of_the_cluster_left_is_no_recording(tmp_path: Path) -> None:
    """The steps of another run would be told as those of this one."""
    write_kernels(rank_directory(tmp_path))
    stale = tmp_path / "cluster_analysis_output" / "cluster_step_trace_time.csv"
    stale.parent.mkdir()
    stale.write_text("Step,Type,Index,Computing,Free\n1,rank,0,999999,1\n")

    inputs = discover([tmp_path]).inputs

    assert [path for one in inputs for path in one.files if stale.parent in path.parents] == []
    assert len(inputs) == 1


def test_an_empty_rank_directory_is_none(tmp_path: Path) -> None:
    output = rank_directory(tmp_path)

    assert found(AscendText(), output.parent) is None
    assert found(AscendDb(), output.parent) is None


TEXTS = ("kernel_details.csv", "trace_view.json", "communication.json", "communication_matrix.json")


@pytest.mark.parametrize(
    ("name", "source"), [("ascend_pytorch_profiler_0.db", "ascend_db"), *((name, "ascend_text") for name in TEXTS)]
)
def test_a_lone_file_is_known_by_its_content(tmp_path: Path, name: str, source: str) -> None:
    output = write_database(write_texts(rank_directory(tmp_path))).parent
    lone = (output / name).rename(tmp_path / f"renamed{Path(name).suffix.replace('db', 'sqlite')}")

    inputs = discover([lone]).inputs

    assert [item.source for item in inputs] == [source]


@pytest.mark.parametrize(
    "content",
    [
        '[{"ph": "X", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2}]',
        '{"traceEvents": [{"ph": "X", "name": "CANN", "ts": "1.500"}]}',
        "name,start,duration\na,1,2\n",
        "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n1,rank,0,1,1,1,1,1\n",
        "",
    ],
)
def test_files_of_others_are_left_alone(content: str) -> None:
    head = content.encode()

    assert AscendText().sniff(Path("trace_view.json"), head) is None
    assert AscendDb().sniff(Path("trace_view.json"), head) is None


def test_a_stray_database_beside_other_traces_hides_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "ascend_pytorch_profiler_3.db").write_bytes(b"SQLite format 3\0")
    names = ["ascend_pytorch_profiler_3.db", "rank-0.pt.trace.json.gz"]
    (tmp_path / names[1]).write_bytes(b"")

    assert find_rank_files(tmp_path, names) is None
    assert find_rank_files(tmp_path, names[:1]) is not None


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("rank-3_20240501100000_ascend_ms", {"rank": 3, "host": None, "process": None}),
        ("vm--18553_20240501100000123_ascend_ms", {"rank": None, "host": "vm", "process": 18553}),
        ("my_host_18553_20240501100000123_ascend_ms", {"rank": None, "host": "my_host", "process": 18553}),
    ],
)
def test_a_rank_directory_has_its_rank_or_its_host_and_process_in_its_name(
    tmp_path: Path, name: str, known: dict[str, object]
) -> None:
    output = tmp_path / name / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    write_kernels(output)

    _, facts = read(AscendText(), output.parent)

    assert {key: facts[key] for key in known} == known
    assert facts["framework"] == "mindspore"
