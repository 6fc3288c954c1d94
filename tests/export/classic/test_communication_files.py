"""What communication costs: `hccl_raw`, and `gpu_cluster_analyse` for jobs on GPUs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from export_samples import BASE, MS, US, exported, lines, make_export, read, torch_frames

from recordings import Raw
from stepscope.export.classic.cluster_analyse import write_cluster_analyse
from stepscope.export.classic.hccl_raw import HEADER, write_hccl_raw
from stepscope.export.classic.step_trace import write_step_trace
from stepscope.export.exporting import export
from stepscope.export.rank_export import RankExport
from stepscope.run import Run

NAME = "hccl_raw_1.csv"
UNKNOWN = f"{NAME} (wait_cost)"
Call = tuple[int, str, int, int]
"""Step from 0, operation, start in it and length in us."""


def calls(*told: Call, group: str = "0", size: int = 3000, peer: int | None = None) -> pl.DataFrame:
    """Calls of one rank in order of start; those between two ranks know the other one."""
    rows = [
        {
            "collective": number,
            "group": group,
            "sequence": number,
            "operation": operation,
            "name": f"gloo:{operation}",
            "size_bytes": size,
            "peer": peer if operation in ("send", "recv") else None,
            "start_ns": BASE + step * 10 * MS + start * US,
            "duration_ns": length * US,
            "on_device": False,
            "step": 4 + step,
        }
        for number, (step, operation, start, length) in enumerate(told)
    ]
    return pl.DataFrame(rows, schema_overrides={"peer": pl.Int32, "step": pl.Int32})


def frames(collectives: pl.DataFrame, members: int = 2) -> dict[str, pl.DataFrame]:
    """A rank with these calls in one group, on gloo."""
    groups = pl.DataFrame({"group": ["0"], "members": [list(range(members))]})
    ranks = torch_frames()["ranks"].with_columns(backend=pl.lit("gloo"), world_size=pl.lit(members))
    return {**torch_frames(), "collectives": collectives, "groups": groups, "ranks": ranks}


MINE = calls((0, "all_reduce", 7000, 1000), (0, "recv", 8500, 300), (2, "all_reduce", 7000, 500), peer=0)
OTHERS = calls((0, "all_reduce", 7400, 600), (0, "send", 8600, 250), (2, "all_reduce", 6900, 600), peer=1)


def job_of(
    root: Path, mine: pl.DataFrame, others: pl.DataFrame | None = None, members: int = 2, **about: Any
) -> RankExport:
    """Rank 1, and what is known of it together with rank 0, if that was recorded, too."""
    export = make_export(root, frames(mine, members), world_size=members, **about)
    if others is not None:
        both = Run.from_frames({0: frames(others, members), 1: frames(mine, members)})
        export.arrivals = lambda: both.analyse("arrival").filter(pl.col("rank") == 1)
    return export


def table(export: RankExport) -> list[dict[str, Any]]:
    """The file as a reader sees it: with Python's limit of a cell."""
    rows = csv.DictReader(read(export, NAME).splitlines())
    return [{key: json.loads(cell) if cell[0] == "{" else cell for key, cell in row.items()} for row in rows]


def test_costs_waiting_and_links_of_each_step_and_their_mean(tmp_path: Path) -> None:
    export = exported(job_of(tmp_path, MINE, OTHERS), write_hccl_raw)

    assert lines(export, NAME)[0] == HEADER
    rows = table(export)
    assert [row["step_num"] for row in rows] == ["1", "2", "3", "-"]
    assert [row["communication_cost"] for row in rows] == ["0.8", "0.0", "0.5", "0.433333"]
    assert [row["wait_cost"] for row in rows] == ["0.5", "0.0", "0.0", "0.166667"]
    link = {"0-1": {"GLOO": [0.2, 3.0, 15000.0]}}
    assert rows[0]["link_info"] == link
    assert rows[0]["communication_operator_cost"] == {
        "stream_0_0_AllReduce": ["1", 0.6, 0.4, {}],
        "stream_0_1_Receive": ["1", 0.2, 0.1, link],
    }
    assert (rows[1]["link_info"], rows[1]["communication_operator_cost"]) == ({}, {})
    assert rows[3]["link_info"] == {"0-1": {"GLOO": [0.066667, 1.0, 15000.0]}}
    means = rows[3]["communication_operator_cost"]
    assert means["stream_0_0_AllReduce"] == ["-", 0.55, 0.2, {}]
    assert means["stream_0_1_Receive"] == ["-", 0.2, 0.1, link]
    assert not export.left_out


def test_sums_are_those_of_the_communication_table(tmp_path: Path) -> None:
    export = exported(job_of(tmp_path, MINE, OTHERS), write_hccl_raw)

    rows = table(export)[:-1]
    known = export.run.analyse("communication")
    spent, wait = (sum(float(row[key]) for row in rows) for key in ("communication_cost", "wait_cost"))
    assert spent + wait == pytest.approx(known["total_ns"].sum() / MS)
    arrival = export.arrivals()
    assert arrival is not None
    assert wait == pytest.approx(arrival["wait_ns"].sum() / MS)
    assert spent == pytest.approx(arrival["transmit_ns"].sum() / MS)
    operators = [entry for row in rows for entry in row["communication_operator_cost"].values()]
    assert sum(entry[1] + entry[2] for entry in operators) == pytest.approx(spent + wait)


def test_operators_have_the_names_of_the_step_trace(tmp_path: Path) -> None:
    export = exported(job_of(tmp_path, MINE), write_hccl_raw, write_step_trace)

    header = lines(export, "step_trace_raw_1_detail_time.csv")[0].split(",")
    assert set(table(export)[-1]["communication_operator_cost"]) == set(header[9::3])


def test_alone_a_rank_does_not_know_how_long_it_waited(tmp_path: Path) -> None:
    export = exported(job_of(tmp_path, MINE), write_hccl_raw)

    rows = table(export)
    assert [row["communication_cost"] for row in rows[:3]] == ["1.3", "0.0", "0.5"]
    assert {row["wait_cost"] for row in rows} == {"0.0"}
    assert "3 of 3 calls" in export.left_out[UNKNOWN]
    assert "offline_analyse" in export.left_out[UNKNOWN]


def test_the_last_of_those_recorded_is_not_the_last_of_all(tmp_path: Path) -> None:
    export = exported(job_of(tmp_path, MINE, OTHERS, members=3), write_hccl_raw)

    assert [row["wait_cost"] for row in table(export)[:3]] == [
        "0.1",
        "0.0",
        "0.0",
    ]  # of the receive, with both sides
    assert "2 of 3 calls" in export.left_out[UNKNOWN]


def test_a_link_is_told_only_where_both_ends_and_the_time_are_known(tmp_path: Path) -> None:
    eager = calls((0, "send", 100, 50), (1, "recv", 8000, 100), (2, "send", 100, 50), peer=0)
    # Two were received before they were sent, which no clock explains, as they went either way.
    late = calls((0, "recv", 50, 200), (1, "send", 8150, 10), (2, "recv", 20, 60), peer=1)
    export = exported(job_of(tmp_path, eager, late), write_hccl_raw)

    assert all(row["link_info"] == {} for row in table(export))


def test_waiting_that_the_source_states_counts(tmp_path: Path) -> None:
    export = exported(job_of(tmp_path, MINE.with_columns(wait_ns=pl.lit(100 * US))), write_hccl_raw)

    assert [row["wait_cost"] for row in table(export)] == ["0.2", "0.0", "0.1", "0.1"]
    assert not export.left_out


def test_of_chosen_steps_the_mean_is_theirs(tmp_path: Path) -> None:
    export = job_of(tmp_path, MINE, OTHERS)
    export.run, export.steps = export.run.select(steps="5-6"), [5, 6]

    write_hccl_raw(export)

    rows = table(export)
    assert [(row["step_num"], row["communication_cost"]) for row in rows] == [("1", "0.0"), ("2", "0.5"), ("-", "0.25")]


def test_a_cell_is_never_larger_than_readers_take(tmp_path: Path) -> None:
    many = calls(*((0, "all_reduce", 2 * n, 1 + n % 3) for n in range(4000)))
    export = exported(job_of(tmp_path, many), write_hccl_raw)

    rows = table(export)
    assert float(rows[0]["communication_cost"]) == pytest.approx(sum(1 + n % 3 for n in range(4000)) / 1000)
    kept = rows[0]["communication_operator_cost"]
    assert 2000 < len(kept) < 4000
    assert sum(entry[1] == 0.003 for entry in kept.values()) == sum(n % 3 == 2 for n in range(4000))
    cut = max(4000 - len(row["communication_operator_cost"]) for row in (rows[0], rows[-1]))
    assert f"up to {cut}:" in export.left_out[f"{NAME} (operators)"]


@pytest.mark.parametrize("without", ["collectives", "steps"])
def test_without_calls_in_steps_there_is_no_file_and_a_reason(tmp_path: Path, without: str) -> None:
    export = exported(
        make_export(tmp_path, {name: frame for name, frame in frames(MINE).items() if name != without}), write_hccl_raw
    )

    assert not export.written
    assert "no communication" in export.left_out[NAME]


def ddp_recording(root: Path, rank: int) -> Path:
    """Two steps with an all-reduce, into which rank 1 comes 2 ms late."""
    groups = [{"group": "0", "name": "default_pg", "members": [0, 1]}]
    raw = Raw(root, rank=rank, pid=100 + rank, about={"world_size": 2, "groups": groups, "backend": "gloo"})
    detail = {"group": "0", "size_bytes": 400, "group_size": 2}
    for n in range(2):
        raw.mark("collective", "all_reduce", (10 * n + 5 + 2 * rank) * MS, (10 * n + 8) * MS, n + 1, detail)
        raw.steps((n + 1, 10 * n * MS, 10 * (n + 1) * MS))
    return raw.directory


def test_ranks_that_are_exported_together_know_how_long_they_waited(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    recordings = [ddp_recording(tmp_path / "link", rank) for rank in (0, 1)]
    file = tmp_path / "data" / "profiler" / "hccl_raw_0.csv"

    (alone,) = export(recordings[:1])
    before = file.read_text().splitlines()
    together = export(recordings)

    assert before[1].startswith("1,3.0,0.0,")
    assert "hccl_raw_0.csv (wait_cost)" in alone.left_out
    assert [line.split(",")[:3] for line in file.read_text().splitlines()[1:]] == [
        ["1", "1.0", "2.0"],
        ["2", "1.0", "2.0"],
        ["-", "1.0", "2.0"],
    ]
    assert not any("hccl" in name for outcome in together for name in outcome.left_out)


def gpu_job(root: Path, **about: Any) -> RankExport:
    """In each step 3 ms of kernels, an all-reduce of 2 ms of which 1 ms is beside them, and a receive of 1 ms."""
    ranges = [("compute", 1, 3), ("communication", 3, 2), ("communication", 6, 1)]
    kernels = [
        {
            "kernel": 3 * n + number,
            "start_ns": BASE + (10 * n + start) * MS,
            "duration_ns": (length + n * (kind == "compute")) * MS,
            "kind": kind,
            "name": f"{kind}{number}",
            "stream": number,
            "step": 4 + n,
        }
        for n in range(3)
        for number, (kind, start, length) in enumerate(ranges)
    ]
    told = [call for n in range(3) for call in ((n, "all_reduce", 3000, 2000), (n, "recv", 6000, 1000))]
    mine = calls(*told, peer=0).with_columns(on_device=pl.lit(value=True))
    ranks = torch_frames()["ranks"].with_columns(device_kind=pl.lit("cuda"))
    device = pl.DataFrame(kernels, schema_overrides={"step": pl.Int32, "stream": pl.Int32})
    return make_export(root, {**frames(mine), "kernels": device, "ranks": ranks}, device_kind="cuda", **about)


@pytest.mark.parametrize(
    ("parallel", "kind"),
    [
        ({}, "data-parallel_1"),
        ({"parallel_mode": "semi_auto_parallel"}, "model-parallel_1"),
        ({"parallel_mode": "semi_auto_parallel", "stage_num": 2}, "pipeline-parallel_2"),
    ],
)
def test_on_gpus_computing_and_communication_of_each_step(tmp_path: Path, parallel: dict[str, Any], kind: str) -> None:
    export = exported(gpu_job(tmp_path, parallel=parallel), write_cluster_analyse)

    told = [line.split(",") for line in lines(export, f"gpu_cluster_analyse_{kind}_2_1.csv")]
    rows = [
        ["8.0", "2.0", "9.0", "1.0", "1.0"],
        ["9.0", "1.0", "9.0", "1.0", "0.0"],
        ["9.0", "1.0", "9.0", "1.0", "0.0"],
    ]
    wide = kind.startswith("pipeline")
    assert told[0][:2] == ["computation_time", "communication_alone_time"]
    assert told[1:] == [row if wide else row[:2] for row in (*rows, rows[1])]


def test_a_host_or_a_single_rank_has_no_cluster_file(tmp_path: Path) -> None:
    for one in (job_of(tmp_path / "host", MINE), gpu_job(tmp_path / "one", world_size=1)):
        write_cluster_analyse(one)

        assert not one.written
        assert not one.left_out


def test_steps_without_device_work_leave_no_cluster_file(tmp_path: Path) -> None:
    export = gpu_job(tmp_path)
    steps = export.rows("steps").with_columns(recorded=pl.col("step") != 5)
    export.run = Run.from_frames(
        {1: {name: export.rows(name) for name in ("kernels", "collectives", "ranks")} | {"steps": steps}}
    )

    write_cluster_analyse(export)

    assert "not recorded in each step" in export.left_out["gpu_cluster_analyse_data-parallel_1_2_1.csv"]
