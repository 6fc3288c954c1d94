"""Two ranks on gloo: collectives, process groups, clocks."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from torch_job import two

from ports import free_port
from stepscope.run import open_run


def test_collectives(tmp_path: Path) -> None:
    first, second = two("collectives", tmp_path)
    assert [name for name, _ in first["marks"]][:6] == [
        *("all_reduce", "all_reduce", "all_gather", "broadcast", "send", "send_recv"),
    ]
    assert second["marks"][4][0] == "recv"
    assert [name for name, _ in first["marks"]][-1] == "barrier"
    details = [detail for _, detail in first["marks"]]
    world = {"group": details[0]["group"], "group_size": 2, "size_bytes": 32, "element_type": "float64"}
    assert details[0] == {**world, "async": False}
    assert details[1] == {**world, "group": first["pair"], "async": True}
    assert details[4] == {**world, "peer": 1, "async": False}
    assert second["marks"][4][1] == {**world, "peer": 0, "async": False}
    assert details[5] == {**world, "group": first["pair"], "async": True}
    assert details[-1]["size_bytes"] == 0


def test_who_and_which_groups(tmp_path: Path) -> None:
    first, second = two("collectives", tmp_path)
    assert (second["who"]["rank"], second["who"]["world_size"]) == (1, 2)
    assert first["around"]["backend"] == "gloo"
    assert first["around"]["parallel"] == {"parallel_mode": "data_parallel"}
    groups = {group["group"]: group for group in first["around"]["groups"]}
    assert len(groups) == 2
    assert groups[first["pair"]] == {"group": first["pair"], "name": "pair", "members": [0, 1]}
    assert first["changes"] >= 3  # made, one more made, left


def test_a_group_from_before_the_hooks_and_traces_of_both_ranks(tmp_path: Path) -> None:
    for rank in two("windows", tmp_path):
        assert rank == {"ended": [1, 2, 3], "forward": ["DistributedDataParallel"] * 3}
    run = open_run([tmp_path / "rank-0", tmp_path / "rank-1"], use_store=False)
    assert [rank.rank for rank in run.ranks] == [0, 1]
    assert run.table("groups").collect()["members"].to_list()[0] == [0, 1]
    assert run.table("collectives").collect().height >= 6


@pytest.mark.parametrize("by_server", [True, False])
def test_a_shifted_clock_is_found_out(tmp_path: Path, by_server: bool) -> None:
    first, second = two("clock", tmp_path, free_port() if by_server else None)
    assert first["clock"] == {"offset_ns": 0, "error_ns": 0, "method": "rank 0"}
    assert second["clock"]["method"] == "store round trip"
    assert abs(second["clock"]["offset_ns"] + 40_000_000_000) <= second["clock"]["error_ns"]
    assert second["news"]


def test_on_one_host_nothing_is_measured(tmp_path: Path) -> None:
    _, second = two("same_host", tmp_path, free_port())
    assert second["clock"] == {"offset_ns": 0, "error_ns": 0, "method": "same host"}
