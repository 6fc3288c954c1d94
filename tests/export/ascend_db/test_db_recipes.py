"""Recipes of msprof-analyze that read databases give our own answers on what is exported.

They run if msprof-analyze is installed: its path is the environment variable STEPSCOPE_MSPROF, or it is on the PATH.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from math import isclose
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from db_exports import EPOCH_NS, MS, exported

from stepscope import Run, open_run
from stepscope.tables import COLLECTIVES, GROUPS, KERNELS, RANKS, STEPS

Rows = list[dict[str, Any]]
EXAMPLE = "examples/ddp_gloo_4rank_slow_loader"
JOBS = [EXAMPLE, "pytorch/dlrm_8rank_v100", "ascend/text_8rank", "ascend/db_8rank", "mindspore/synthetic_dp4"]
RECIPES = ("slow_rank", "cluster_time_summary", "communication_group_map", "hccl_sum")
DIXON = {4: 0.889, 8: 0.725}
"""Critical values of Dixon's test, by number of values: by which ratio the smallest one must be apart, at 99.5 %."""


@pytest.fixture
def msprof() -> Path:
    """The command; tests that need it are skipped without it."""
    found = os.environ.get("STEPSCOPE_MSPROF") or shutil.which("msprof-analyze")
    if found is None:
        pytest.skip("msprof-analyze is not installed; STEPSCOPE_MSPROF may give its path")
    return Path(found)


def answer(msprof: Path, recipe: str, directory: Path, out: Path) -> dict[str, Rows]:
    """The tables that a recipe writes."""
    command = [str(msprof), "cluster", "-m", recipe, "-d", str(directory), "-o", str(out), "--force"]
    out.mkdir(parents=True)
    done = subprocess.run(command, cwd=out, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[ERROR]" not in done.stdout + done.stderr
    tables = {}
    for file in out.rglob("cluster_analysis.db"):
        with closing(sqlite3.connect(file)) as connection:
            connection.row_factory = sqlite3.Row
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            tables.update(
                {name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')] for name in names}
            )
    return tables


def opened(job: str, request: pytest.FixtureRequest) -> Run:
    if job == EXAMPLE:
        return open_run(Path(__file__).parents[3] / job, use_store=False)
    return open_run(request.getfixturevalue("shared") / "data" / job, use_store=False)


def calls_of(run: Run) -> pl.DataFrame:
    """The calls, with the number of each among those of its group and rank."""
    rows = run.table("collectives").collect().sort("rank", "start_ns", maintain_order=True)
    return rows.with_columns(pl.col("group").fill_null(""), operation=pl.col("operation").str.replace_all("_", ""))


@pytest.mark.parametrize("job", JOBS)
def test_recipes_agree_with_our_answers(msprof: Path, tmp_path: Path, job: str, request: pytest.FixtureRequest) -> None:
    run = opened(job, request)
    directory = exported(run, tmp_path / "exported")
    told = {recipe: answer(msprof, recipe, directory, tmp_path / recipe) for recipe in RECIPES}

    check_sums(run, told["hccl_sum"])
    check_groups(run, told["communication_group_map"])
    check_times(run, told["cluster_time_summary"]["ClusterTimeSummary"])
    check_slow_ranks(run, told["slow_rank"])


def check_sums(run: Run, told: dict[str, Rows]) -> None:
    """Communication by operation, of all ranks and of each."""
    figures = {
        "Count": pl.len(),
        "SumNs": pl.sum("duration_ns"),
        "MinNs": pl.min("duration_ns"),
        "MaxNs": pl.max("duration_ns"),
    }
    calls = calls_of(run)
    for by, table in ((["operation"], "HcclAllRankStats"), (["operation", "rank"], "HcclPerRankStats")):
        ours = {row[: len(by)]: row[len(by) :] for row in calls.group_by(by).agg(**figures).iter_rows()}
        theirs = {
            (operation_of(row["OpType"]), *([row["Rank"]] if "Rank" in row else [])): tuple(
                row[name] for name in figures
            )
            for row in told[table]
        }
        assert theirs == ours


def operation_of(kind: str) -> str:
    return kind.removeprefix("hcom_").removesuffix("_").lower()


def check_groups(run: Run, told: dict[str, Rows]) -> None:
    """The groups, with their members and names; where these are not recorded, the ranks of the calls."""
    theirs = {(row["rank_set"], row["pg_name"]) for row in told["CommunicationGroupMapping"]}
    if run.has("groups"):
        known = run.table("groups").select("name", "members").collect().iter_rows()
        ours = {(tuple(members), name) for name, members in known}
    else:
        seen = calls_of(run).group_by("group").agg(pl.col("rank").unique().sort()).iter_rows()
        ours = {(tuple(members), "") for _, members in seen}
    assert theirs == {(f"({','.join(map(str, members))})", name) for members, name in ours}


def check_times(run: Run, told: Rows) -> None:
    """The times of steps, and how long calls transmit: as long as on the rank on which they are shortest."""
    parts = {
        "computation": "computing_ns",
        "communication": "communication_ns",
        "communicationOverlapComputation": "overlapped_ns",
        "communicationNotOverlapComputation": "communication_not_overlapped_ns",
    }
    broken = run.analyse("breakdown")
    lengths = run.table("steps").select("rank", "step", length_ns=pl.col("end_ns") - pl.col("start_ns")).collect()
    call = ["group", "sequence", "operation", "step"]
    calls = calls_of(run).with_columns(transmit_ns=pl.min("duration_ns").over(call))
    moved = calls.group_by("rank", "step").agg(pl.sum("transmit_ns"), pl.sum("duration_ns"))
    ours = broken.join(lengths, on=["rank", "step"]).join(moved, on=["rank", "step"])
    by_step = {(row["rank"], row["step"]): row for row in ours.iter_rows(named=True)}
    assert {(row["rank"], row["step"]) for row in told} == set(by_step)
    for row in told:
        own = by_step[row["rank"], row["step"]]
        figures = {name: own[column] for name, column in parts.items()}
        figures["stepTime"] = own["length_ns"]
        figures["communicationTransmitStageTime"] = own["transmit_ns"]
        figures["communicationWaitStageTime"] = own["duration_ns"] - own["transmit_ns"]
        for name, ns in figures.items():
            assert isclose(row[name], ns / 1000, rel_tol=1e-6, abs_tol=0.01), (name, row, own)


def check_slow_ranks(run: Run, told: dict[str, Rows]) -> None:
    """Each rank has a vote for each call that is much shorter on it: where it arrived last."""
    votes: dict[int, int] = {}
    call = ["group", "sequence", "operation"]
    for _, members in calls_of(run).sort("duration_ns").group_by(call, maintain_order=True):
        times, ranks = members["duration_ns"].to_list(), members["rank"].to_list()
        if len(set(times)) > 3 and len(times) in DIXON:
            farthest = times[-1] if len(times) == 4 else times[-2]
            if (times[1] - times[0]) / (farthest - times[0]) > DIXON[len(times)]:
                votes[ranks[0]] = votes.get(ranks[0], 0) + 1
    assert {row["rankId"]: row["slowAffectCount"] for row in told.get("SlowRank", [])} == votes


def test_the_slow_rank_is_named(msprof: Path, tmp_path: Path) -> None:
    run = job_with_a_slow_rank(slow=5)

    told = answer(msprof, "slow_rank", exported(run, tmp_path / "exported"), tmp_path / "out")

    assert [(row["rankId"], row["slowAffectCount"]) for row in told["SlowRank"]] == [(5, 6)]
    assert run.analyse("slow_ranks")["rank"].to_list() == [5]


def job_with_a_slow_rank(slow: int, ranks: int = 8, steps: int = 6) -> Run:
    """In each step one kernel, longer on one rank, and an all-reduce that ends on all ranks together."""
    frames = {}
    for rank in range(ranks):
        starts = [EPOCH_NS + 100 * MS * step for step in range(steps)]
        computed = [(60 if rank == slow else 30) * MS + 1000 * (rank * 7 + step * 13 % 11) for step in range(steps)]
        reduced = [80 * MS - each for each in computed]
        numbers = list(range(1, steps + 1))
        entered = [start + each for start, each in zip(starts, computed, strict=True)]
        ends = [start + 90 * MS for start in starts]
        facts = {"world_size": [ranks], "device_kind": ["npu"], "host": ["node"], "process": [100 + rank]}
        frames[rank] = {
            "ranks": RANKS.frame(rank=[rank], device=[rank], framework=["pytorch"], start_ns=[starts[0]], **facts),
            "groups": GROUPS.frame(group=["dp"], name=["dp"], members=[list(range(ranks))]),
            "steps": STEPS.frame(
                step=numbers,
                start_ns=starts,
                end_ns=ends,
                window_start_ns=starts,
                window_end_ns=[*starts[1:], ends[-1]],
                window=["device"] * steps,
            ),
            "kernels": KERNELS.frame(
                kernel=range(steps),
                start_ns=starts,
                duration_ns=computed,
                kind=["compute"] * steps,
                name=["mm"] * steps,
                device=[rank] * steps,
                stream=[2] * steps,
                step=numbers,
            ),
            "collectives": COLLECTIVES.frame(
                collective=range(steps),
                group=["dp"] * steps,
                sequence=range(steps),
                operation=["all_reduce"] * steps,
                name=["all_reduce"] * steps,
                size_bytes=[1 << 20] * steps,
                group_size=[ranks] * steps,
                start_ns=entered,
                duration_ns=reduced,
                on_device=[True] * steps,
                step=numbers,
            ),
        }
    return Run.from_frames(frames)


@pytest.mark.parametrize(
    "recipe",
    [
        "cluster_time_summary",
        "hccl_sum",
        "compute_op_sum",
        "cann_api_sum",
        "mstx_sum",
        "communication_time",
        "communication_matrix",
        "free_analysis",
    ],
)
def test_recipes_say_of_exported_databases_what_they_say_of_the_originals(
    msprof: Path, shared: Path, tmp_path: Path, recipe: str
) -> None:
    original = tmp_path / "original"
    shutil.copytree(shared / "data" / "ascend" / "db_8rank", original)
    directory = exported(open_run(original, use_store=False), tmp_path / "exported")

    theirs, ours = (answer(msprof, recipe, place, tmp_path / f"of_{place.name}") for place in (original, directory))

    assert theirs.keys() == ours.keys() and theirs
    for table, rows in theirs.items():
        pairs = list(zip(comparable(rows), comparable(ours[table]), strict=True))
        assert pairs or not rows
        for one, other in pairs:
            assert one.keys() == other.keys()
            for name, value in one.items():
                assert is_alike(value, other[name]), (table, name, one, other)


def comparable(rows: Rows) -> Rows:
    """Rows in an order of their own, without texts that name files or communicators or depend on the order of ranks.

    Nor is there a column that nobody records: a limit of the writer decides on it.
    """
    apart = ("profilePath", "hostUid", "group_id", "GroupName", "Ranks", "minRank", "maxRank", "MaxRank", "index")
    unknown = ("large_packet_ratio", "value")
    known = [{name: value for name, value in row.items() if name not in (*apart, *unknown)} for row in rows]
    return sorted(known, key=lambda row: [*map(shown, row.values())])


def shown(value: object) -> str:
    return f"{value:020.3f}" if isinstance(value, (int, float)) else str(value)


def is_alike(one: object, other: object) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return isclose(one, other, rel_tol=1e-6, abs_tol=1e-3)
    return one == other
