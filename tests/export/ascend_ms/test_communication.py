"""communication.json and communication_matrix.json say what is known and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from exports import export, host_run, output

from stepscope import Run
from stepscope.sources.ascend.groups import group_key

KEY = group_key("pair")


def written(directory: Path, name: str, rank: int = 0) -> Any:
    return json.loads((output(directory, rank) / f"{name}.json").read_bytes())


def changed(**columns: pl.Expr) -> Run:
    """The job with other calls on rank 0, alone."""
    rank = host_run().rank(0)
    frames = {name: rank.table(name).collect() for name in rank.rows}
    frames["collectives"] = frames["collectives"].with_columns(**columns)
    return Run.from_frames({0: frames})


def test_calls_stand_by_step_and_kind_with_what_is_known(tmp_path: Path) -> None:
    export(host_run(), tmp_path)

    step = written(tmp_path, "communication")["step1"]
    tag = int(KEY[-3:])
    assert list(step["collective"]) == [f"hcom_allReduce__{tag}_0_1@{KEY}", "Total Op Info"]
    assert list(step["p2p"]) == [f"hcom_send__{tag}_1_1@{KEY}", "Total Op Info"]
    call = step["collective"][f"hcom_allReduce__{tag}_0_1@{KEY}"]
    assert set(call["Communication Time Info"]) == {"Start Timestamp(us)", "Elapse Time(ms)"}
    assert call["Communication Time Info"]["Elapse Time(ms)"] == 2.0
    band = call["Communication Bandwidth Info"]["GLOO"]
    assert (band["Transit Size(MB)"], band["Transit Time(ms)"], band["Bandwidth(GB/s)"]) == (4.0, 2.0, 2.0)


def test_waiting_is_stated_where_it_was_recorded(tmp_path: Path) -> None:
    half = pl.col("duration_ns") // 4
    export(changed(wait_ns=half, transmit_ns=3 * half, synchronization_ns=half), tmp_path)

    times = next(iter(written(tmp_path, "communication")["step1"]["collective"].values()))["Communication Time Info"]
    assert (times["Wait Time(ms)"], times["Transit Time(ms)"]) == (0.5, 1.5)
    assert (times["Wait Time Ratio"], times["Synchronization Time Ratio"]) == (0.25, 0.25)
    assert times["Idle Time(ms)"] == 0.0


def test_idle_is_what_is_neither_waiting_nor_transmitting(tmp_path: Path) -> None:
    export(changed(wait_ns=pl.lit(500_000), transmit_ns=pl.lit(1_400_000)), tmp_path)

    calls = written(tmp_path, "communication")["step1"]["collective"].values()
    assert [call["Communication Time Info"]["Idle Time(ms)"] for call in calls] == [0.1, 0.1]


def test_totals_are_sums(tmp_path: Path) -> None:
    export(changed(step=pl.lit(1, pl.Int32)), tmp_path)

    total = written(tmp_path, "communication")["step1"]["collective"]["Total Op Info"]
    assert total["Communication Time Info"] == {"Elapse Time(ms)": 6.0}
    assert total["Communication Bandwidth Info"]["GLOO"] == {
        "Transit Size(MB)": 12.0,
        "Transit Time(ms)": 6.0,
        "Size Distribution": {},
        "Bandwidth(GB/s)": 2.0,
    }


def test_a_call_without_size_or_group_is_kept(tmp_path: Path) -> None:
    export(changed(size_bytes=pl.lit(None, pl.Int64), group=pl.lit(None, pl.String)), tmp_path)

    calls = written(tmp_path, "communication")["step1"]["collective"]
    assert calls["hcom_allReduce__0_0_1@"]["Communication Bandwidth Info"] == {}
    assert written(tmp_path, "communication_matrix")["step1"] == {"p2p": {}, "collective": {}}


def test_calls_outside_of_steps_are_left_to_the_timeline(tmp_path: Path) -> None:
    outside = pl.when(pl.col("step") == 1).then("step")
    export(changed(step=outside), tmp_path)

    assert list(written(tmp_path, "communication")) == ["step1"]


@pytest.mark.parametrize(("rank", "word"), [(0, "send"), (1, "receive")])
def test_links_go_from_sender_to_receiver(tmp_path: Path, rank: int, word: str) -> None:
    export(host_run(), tmp_path)

    matrix = written(tmp_path, "communication_matrix", rank)["step2"]
    assert matrix["collective"] == {}
    assert list(matrix["p2p"][f"{word}-total@{KEY}"]) == [f"{rank}-{rank}", "0-1"]
    top = matrix["p2p"][f"{word}-top1@{KEY}"]["0-1"]
    assert (top["Transport Type"], top["Transit Size(MB)"], top["Bandwidth(GB/s)"]) == ("GLOO", 2.0, 2.0)


def test_the_fastest_and_slowest_calls_of_a_link_are_named(tmp_path: Path) -> None:
    lasted = pl.when(pl.col("operation") == "send").then(1_000_000 * (1 + pl.col("sequence") // 2)).otherwise(5)
    export(changed(step=pl.lit(1, pl.Int32), duration_ns=lasted), tmp_path)

    links = {
        key.split("@")[0]: link["0-1"]
        for key, link in written(tmp_path, "communication_matrix")["step1"]["p2p"].items()
    }
    times = {key.removeprefix("send-"): link["Transit Time(ms)"] for key, link in links.items()}
    assert times == {"top1": 1.0, "middle": 2.0, "bottom1": 3.0, "bottom2": 2.0, "bottom3": 1.0, "total": 6.0}
