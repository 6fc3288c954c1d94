"""A flat profile beside directories of the same ranks: what these lack comes from the flat files, where that cannot mix
what does not belong together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import test_agree
from every_kind import graph, operator, pipeline_json
from polars.testing import assert_frame_equal
from test_agree import RANKS

from stepscope import Run, open_run, open_runs
from stepscope.cli import main
from stepscope.run import Processes
from stepscope.run.supplements import SUBJECTS
from stepscope.store import Store, StoredRecording, list_answers
from stepscope.tables import TABLES
from strategy_files import node, write_graph
from test_bad_jobs import classic

PLAN = ("graphs", "graph_nodes", "graph_tensors")
TAKEN = (*PLAN, "parallel_graphs", "parallel_nodes", "pipeline_operators")
TOLD = "holds files of the same ranks, which are a run of their own"


def flat(folder: Path, rank: int, world: int = RANKS) -> None:
    """The flat files of a rank: a plan, a strategy, FLOPs by scope, dataset operators with queues, steps."""
    classic(folder, rank, world)
    write_graph(folder, rank, [node("1", "MatMul", ["p"])], stages=[range(RANKS)], parameters=["p"])
    (folder / f"memory_usage_details_{rank}.json").write_text(json.dumps({"1": graph()}))
    scope = {"source": "Total", "target": "Default", "value": 1}
    (folder / f"flops_scope_{rank}.json").write_text(json.dumps({"data": {"links": [scope]}}))
    operators = (operator(0, "Batch", [1], [1, 2]), operator(1, "Map", None, [3, 4]))
    (folder / f"pipeline_profiling_{rank}.json").write_text(pipeline_json(*operators))


def beside(folder: Path, ranks: int = RANKS) -> None:
    """The directories of the ranks."""
    for trace in test_agree.job()[:ranks]:
        test_agree.write_text(folder, trace)
    for own in folder.glob("host_*_ascend_pt"):
        own.rename(own.with_name(own.name.replace("_pt", "_ms")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for rank in range(RANKS):
        flat(tmp_path / "job" / "profiler", rank)
    beside(tmp_path / "job" / "profiler")
    return tmp_path / "job"


def supplied(run: Run) -> dict[int, tuple[str, ...]]:
    return {rank.rank: rank.supplement.tables for rank in run.ranks if rank.supplement is not None}


def notes(run: Run) -> list[str]:
    return [text for text in run.issues["problem"] if text.startswith(TOLD)]


def test_what_the_directories_lack_comes_from_the_flat_files(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone" / "profiler"
    for rank in range(RANKS):
        flat(alone, rank)
    run, only = open_run(folder), open_run(alone)

    assert [(rank.rank, rank.facts["format"]) for rank in run.ranks] == [(rank, "ascend_text") for rank in range(RANKS)]
    assert supplied(run) == dict.fromkeys(range(RANKS), TAKEN)
    for name in TAKEN:
        assert_frame_equal(run.table(name).collect(), only.table(name).collect())
    for question in ("memory_peak", "memory_breakdown", "strategy_nodes", "strategy_stages"):
        assert_frame_equal(run.analyse(question), only.analyse(question))
    assert run.analyse("input_operators")["operator"].to_list() == only.analyse("input_operators")["operator"].to_list()


def test_nothing_else_is_taken_and_own_rows_stay(folder: Path, tmp_path: Path) -> None:
    beside(tmp_path / "own")
    run, own = open_run(folder), open_run(tmp_path / "own")
    (rest,) = run.others

    assert {name for name in TABLES if run.has(name)} == {name for name in TABLES if own.has(name)} | {*TAKEN}
    assert rest.has("input_pipeline") and rest.has("flop_scopes")
    for name in ("steps", "kernels", "collectives"):
        assert_frame_equal(run.table(name).collect(), own.table(name).collect())
    assert_frame_equal(run.analyse("breakdown"), own.analyse("breakdown"))


def test_the_user_is_told_what_was_taken_and_how_to_see_the_rest(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_run(folder)

    listed = f"{', '.join(TAKEN)} of ranks 0-{RANKS - 1}"
    assert notes(run) == [f"{TOLD}: {listed} are taken from them, nothing else is shown here"]
    (rest,) = run.others
    assert open_run(folder, run=rest.name).ranks[0].facts["format"] == "classic"
    assert main(["info", str(folder), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["runs"]
    assert first["supplied"] == [f"{listed}: from {folder / 'profiler'}"]
    assert second["supplied"] == []


def test_tables_of_a_subject_are_taken_together_or_not_at_all(tmp_path: Path) -> None:
    """Rank 0 has no plan; the others have all."""
    for rank in range(RANKS):
        flat(tmp_path / "profiler", rank)
    (tmp_path / "profiler" / "memory_usage_details_0.json").unlink()
    beside(tmp_path / "profiler")

    run = open_run(tmp_path)

    assert supplied(run)[0] == TAKEN[len(PLAN) :]
    assert supplied(run)[1] == TAKEN
    assert [rank.rank for rank in run.ranks if rank.has("graphs")] == list(range(1, RANKS))


def test_a_plan_is_not_put_beside_recorded_memory(folder: Path) -> None:
    (own,) = (folder / "profiler").glob(f"host_{test_agree.PYTHON}_*/ASCEND_PROFILER_OUTPUT")
    header = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type"
    times = "".join(f"APP,{test_agree.EPOCH_NS // 1000 + at}.000\t,1,2,1,,NPU:0\n" for at in (10, 20))
    (own / "memory_record.csv").write_text(f"{header}\n{times}")

    run = open_run(folder)

    assert run.rank(0).has("memory_curve")
    assert supplied(run)[0] == TAKEN[len(PLAN) :]
    assert supplied(run)[1] == TAKEN


def other_world(folder: Path) -> None:
    for rank in range(RANKS):
        classic(folder / "profiler", rank, world=2 * RANKS)


def other_framework(folder: Path) -> None:
    for file in (folder / "profiler").glob("profiler_info_*.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "framework": "pytorch"}))


def second_session(folder: Path) -> None:
    for trace in test_agree.job():
        test_agree.write_text(folder / "profiler" / "later", trace.shifted(3600 * 10**9))
    for own in (folder / "profiler" / "later").glob("host_*_ascend_pt"):
        own.rename(own.with_name(own.name.replace("_pt", "_ms")))


@pytest.mark.parametrize("change", [other_world, other_framework, second_session])
def test_nothing_is_taken_where_it_may_be_of_another_job(folder: Path, change: Callable[[Path], None]) -> None:
    change(folder)

    runs = open_runs(folder)

    assert [supplied(run) for run in runs] == [{}] * len(runs)
    assert [text for run in runs for text in notes(run)] == [f"{TOLD} and are not shown here"]
    assert runs[-1].ranks[0].facts["format"] == "classic"


def test_ranks_that_the_directories_lack_keep_the_flat_files_apart(tmp_path: Path) -> None:
    for rank in range(RANKS):
        flat(tmp_path / "profiler", rank)
    beside(tmp_path / "profiler", ranks=2)

    assert [supplied(run) for run in open_runs(tmp_path)] == [{}, {}]


def test_selections_and_worker_processes_have_the_same_rows(folder: Path) -> None:
    run = open_run(folder)
    with Processes(1) as engine:
        there = open_run(folder, engine=engine)
        assert_frame_equal(there.analyse("memory_peak"), run.analyse("memory_peak"))
    some = run.select(ranks="1", steps=run.steps[:1])

    assert supplied(some) == {1: TAKEN}
    assert_frame_equal(
        some.table("graph_nodes").collect(), run.table("graph_nodes").filter(pl.col("rank") == 1).collect()
    )
    assert_frame_equal(some.analyse("memory_peak"), run.analyse("memory_peak").filter(pl.col("rank") == 1))


def test_without_a_store_the_rows_are_the_same(folder: Path) -> None:
    one, other = open_run(folder), open_run(folder, use_store=False)

    assert_frame_equal(one.analyse("memory_peak"), other.analyse("memory_peak"))


def test_kept_answers_depend_on_the_files_that_supply_them(folder: Path, computed: pytest.MonkeyPatch) -> None:
    computed.undo()
    before = open_run(folder).analyse("memory_peak")
    changed = json.dumps({"1": graph(static_mem=0.5)})
    (folder / "profiler" / "memory_usage_details_1.json").write_text(changed)

    after = open_run(folder).analyse("memory_peak")

    assert after["static_bytes"].to_list() != before["static_bytes"].to_list()
    assert_frame_equal(after, open_run(folder, use_store=False).analyse("memory_peak"))
    assert_frame_equal(after, open_run(folder).analyse("memory_peak"))


def test_kept_answers_go_with_the_entries_that_supply_rows(folder: Path, computed: pytest.MonkeyPatch) -> None:
    computed.undo()
    run = open_run(folder)
    run.analyse("memory_peak")
    recording = run.ranks[0].recording_of("graphs")
    assert isinstance(recording, StoredRecording)
    store = Store(recording.directory.parent)

    store.evict(10**9)
    assert len(list_answers(store.directory)) == 1
    store._remove(recording.directory)
    store.evict(10**9)

    assert list_answers(store.directory) == []


def test_damage_of_a_file_that_supplies_rows_is_told(folder: Path) -> None:
    bad = {"graph_id": "x", "nodes": []}
    (folder / "profiler" / "memory_usage_details_1.json").write_text(json.dumps({"1": graph(), "2": bad}))
    run = open_run(folder)

    (rest,) = run.others
    told = rest.issues.filter(pl.col("severity") != "note", pl.col("file").str.contains("memory_usage_details_1"))
    assert not told.is_empty()
    assert_frame_equal(run.issues.join(told, on=told.columns, how="semi", nulls_equal=True), told)


def test_what_is_taken_has_neither_times_nor_steps_nor_keys_of_other_tables() -> None:
    keys = {"slice", "kernel", "collective", "correlation", "external_id", "stack", "thread", "step"}
    for subject in SUBJECTS:
        for name in subject.tables:
            columns = {column.name for column in TABLES[name].columns}
            assert not columns & keys
            assert not [name for name in columns if name.endswith("_ns") and name != "sample_interval_ns"]
