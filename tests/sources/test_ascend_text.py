"""Reading the text export of an Ascend rank directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ascend_files import (
    CALL,
    EPOCH_NS,
    GROUP,
    KERNEL_HEADER,
    kernel_row,
    rank_directory,
    read,
    read_text,
    write_communication,
    write_kernels,
    write_texts,
)

from stepscope.errors import UnreadableInput
from stepscope.sources.ascend import AscendText

US = 1000


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Tables and facts of a complete rank directory."""
    return read(AscendText(), write_texts(rank_directory(tmp_path_factory.mktemp("rank"))).parent)


@pytest.fixture
def tables(whole: tuple[dict[str, pl.DataFrame], dict[str, Any]]) -> dict[str, pl.DataFrame]:
    """Tables of a complete rank directory."""
    return whole[0]


def test_kernels_have_exact_times_counters_and_the_call_that_launched_them(tables: dict[str, pl.DataFrame]) -> None:
    kernels = tables["kernels"]
    assert kernels["kind"].to_list() == ["memory", "compute", "compute", "communication"] * 2
    assert kernels["direction"].to_list() == ["device to host", None, None, None] * 2
    first = kernels.row(1, named=True)
    assert first["start_ns"] == EPOCH_NS + 1000 * US + 125
    assert first["duration_ns"] == 100_500
    assert (first["correlation"], first["stream"], first["device"], first["step"]) == (1, 2, 3, 5)
    assert first["launch_start_ns"] == EPOCH_NS + 530 * US
    assert first["launch_end_ns"] == EPOCH_NS + 534 * US
    assert first["input_shapes"] == "8,16;16,4"
    assert kernels["size_bytes"].to_list()[0] == 4096
    counters = tables["kernel_counters"].row(0, named=True)
    assert counters["kernel"] == 1
    assert counters["aic_time_ns"] == 97_123
    assert counters["cube_utilization_ratio"] == 0.755


def test_a_step_lasts_from_its_first_kernel_to_the_first_of_the_next(tables: dict[str, pl.DataFrame]) -> None:
    steps = tables["steps"].select("step", "window_start_ns", "window_end_ns", "window").rows()
    first, second = EPOCH_NS + 1000 * US + 125, EPOCH_NS + 11_000 * US + 125
    assert steps == [(5, first, second, "device"), (6, second, EPOCH_NS + 11_900 * US, "device")]


def test_collectives_join_the_device_call_with_its_analysis(tables: dict[str, pl.DataFrame]) -> None:
    call = tables["collectives"].row(1, named=True)
    assert call["operation"] == "all_reduce"
    assert (call["group"], call["sequence"], call["group_size"], call["step"]) == (GROUP, 1, 2, 6)
    assert (call["size_bytes"], call["element_type"]) == (2000, "BFP16")
    assert (call["wait_ns"], call["transmit_ns"], call["synchronization_ns"]) == (290_000, 200_000, 250_000)
    moved = tables["transports"].row(0, named=True)
    assert (moved["transport"], moved["size_bytes"], moved["duration_ns"]) == ("SDMA", 4_000_000, 200_000)
    assert (moved["packet_bytes"], moved["packets"]) == (1_000_000, 4)


def test_links_are_between_global_ranks_and_each_call_counts_once(tables: dict[str, pl.DataFrame]) -> None:
    links = tables["links"].filter(step=5).select("name", "source", "destination", "transport").rows()
    assert links == [(None, 4, 7, "HCCS"), (CALL.format(0), 4, 7, "HCCS")]


def test_host_ranges_become_operators_with_stacks_and_queue_arrows(tables: dict[str, pl.DataFrame]) -> None:
    operators = tables["operators"]
    assert operators["name"].to_list() == ["aten::mm"] * 4
    assert operators["self_ns"].to_list() == [45_000] * 4
    assert operators["sequence"].to_list() == [3] * 4
    assert tables["stacks"]["text"].to_list() == ["a.py(1): f\nb.py(2): g"]
    assert operators["stack"].to_list() == [0] * 4
    assert tables["flows"]["kind"].unique().to_list() == ["enqueue_dequeue"]
    categories = set(tables["slices"]["category"].to_list())
    assert categories == {
        "annotation", "operator", "queue", "runtime", "kernel", "memory", "communication", "communication_task"
    }  # fmt: skip


def test_the_rank_row_says_who_recorded(whole: tuple[dict[str, pl.DataFrame], dict[str, Any]]) -> None:
    _, facts = whole

    assert (facts["rank"], facts["rank_origin"], facts["world_size"]) == (0, "content", 8)
    assert (facts["host"], facts["process"], facts["device"]) == ("host_a", 4242, 3)
    assert (facts["framework"], facts["framework_version"], facts["device_kind"]) == ("pytorch", "2.7.1", "npu")
    assert '"ai_core_num": 24' in facts["options"]
    assert '"data_parallel_size": 2' in facts["parallelism"]


@pytest.mark.parametrize(
    "header",
    [
        KERNEL_HEADER.replace("Block Dim", "Block Num"),
        KERNEL_HEADER.replace("(us)", "").replace("(%)", ""),
        KERNEL_HEADER.replace("Accelerator Core", "Task Type").replace("Start Time", "Task Start Time"),
    ],
)
def test_other_spellings_of_headers_give_the_same_kernels(tmp_path: Path, header: str) -> None:
    expected = read_text(write_kernels(rank_directory(tmp_path / "a")))
    tables = read_text(write_kernels(rank_directory(tmp_path / "b"), header=header))

    assert tables["kernels"].equals(expected["kernels"])
    assert tables["kernel_counters"].equals(expected["kernel_counters"])
    assert "issues" not in tables


def test_a_time_without_a_tab_is_the_same_time(tmp_path: Path) -> None:
    output = write_kernels(rank_directory(tmp_path), rows=[kernel_row(5, 1000.125), kernel_row(5, 1200.125, tab="")])

    tables = read_text(output)

    starts = tables["kernels"]["start_ns"].to_list()
    assert starts[1] - starts[0] == 200 * US


def test_a_missing_state_column_is_unknown_and_unknown_columns_are_told(tmp_path: Path) -> None:
    output = rank_directory(tmp_path)
    header = KERNEL_HEADER.replace("OP State", "Colour").replace("aic_mac_ratio", "aic_new_ratio")
    write_kernels(output, header=header)

    tables = read_text(output)

    assert tables["kernels"]["state"].null_count() == tables["kernels"].height
    assert tables["issues"]["problem"].to_list() == ["unknown columns are left out: colour, aic_new_ratio"]


def test_without_the_trace_steps_come_from_the_kernels(tmp_path: Path) -> None:
    tables = read_text(write_kernels(rank_directory(tmp_path)))

    assert tables["steps"]["step"].to_list() == [5, 6]
    assert tables["steps"]["window"].to_list() == ["device", "device"]


def test_one_broken_file_leaves_the_others(tmp_path: Path) -> None:
    output = write_texts(rank_directory(tmp_path))
    for name in ("trace_view.json", "communication.json"):
        (output / name).write_text("\x00 nothing of the kind")

    tables = read_text(output.parent)

    assert tables["kernels"].height == 6
    assert tables["links"].height == 4
    broken = {Path(file).name for file in tables["issues"].filter(severity="error")["file"]}
    assert broken == {"trace_view.json", "communication.json"}


def test_nothing_readable_names_the_directory(tmp_path: Path) -> None:
    output = rank_directory(tmp_path)
    (output / "kernel_details.csv").write_text("")

    with pytest.raises(UnreadableInput, match="none of its files"):
        read_text(output.parent)


def test_a_stated_bandwidth_that_contradicts_its_parts_is_noted(tmp_path: Path) -> None:
    tables = read_text(write_communication(rank_directory(tmp_path), bandwidth=25.0))

    assert tables["transports"]["size_bytes"].to_list() == [4_000_000] * 2
    notes = tables["issues"].filter(severity="note")["problem"].to_list()
    assert notes == ["recorded bandwidths differ from size divided by time by more than 1% in 2 places"]


def test_links_of_unknown_groups_are_left_out_with_a_reason(tmp_path: Path) -> None:
    output = write_communication(rank_directory(tmp_path))
    (output.parent / "profiler_metadata.json").unlink()

    tables = read_text(output)

    assert "links" not in tables
    assert tables["issues"].select("severity", "lost").rows() == [("warning", 6)]
    assert tables["groups"].rows() == [(GROUP, None, None)]


def test_it_is_unknown_what_the_size_of_a_gather_is_of(tmp_path: Path) -> None:
    output = rank_directory(tmp_path)
    whole = write_texts(output).parent
    assert read_text(whole)["collectives"]["size_of"].to_list() == ["whole"] * 2

    for file in output.iterdir():
        file.write_text(file.read_text(encoding="utf-8").replace("allReduce", "allGather"), encoding="utf-8")
    rows = read_text(whole)["collectives"]
    assert rows.select("operation", "size_of").unique().rows() == [("all_gather", None)]
