"""A run, whoever recorded it, as files of other tools: what is there again, where files go, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from export_samples import BASE, MS, collectives, torch_frames

from every_format import FORMATS as RECORDED
from stepscope import StepscopeError, open_run
from stepscope.export import FORMATS, Made, export_run
from stepscope.export.format_names import FormatName
from stepscope.run import Run

TEXTS: tuple[FormatName, ...] = ("classic", "ascend-text")


def frames(**facts: object) -> dict[str, pl.DataFrame]:
    """A small rank of PyTorch on a CPU."""
    made = torch_frames()
    return {**made, "ranks": made["ranks"].with_columns(pl.lit(value).alias(name) for name, value in facts.items())}


def a_run(count: int = 2) -> Run:
    """Two ranks with process groups."""
    groups = pl.DataFrame({"group": ["0"], "name": ["dp"], "members": [list(range(count))]})
    ranks = {rank: {**frames(host="node_1", process=70 + rank), "groups": groups} for rank in range(count)}
    return Run.from_frames(ranks, "small")


def files_in(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def totals(run: Run, table: str, *by: str) -> Mapping[tuple[object, ...], tuple[int, int]]:
    """Number and time of rows by some columns."""
    if not run.has(table):
        return {}
    rows = run.table(table).group_by(by).agg(pl.len(), pl.col("duration_ns").sum()).collect()
    return {tuple(key): (count, time) for *key, count, time in rows.iter_rows()}


@pytest.mark.parametrize("format_name", [each.name for each in FORMATS])
def test_each_format_is_written_privately_and_nothing_else(tmp_path: Path, format_name: FormatName) -> None:
    if format_name == "perfetto":
        pytest.importorskip("perfetto")
    made = export_run(a_run(), tmp_path / "new" / "out", format_name)

    assert isinstance(made, Made)
    assert made.files == sorted(made.files)
    assert [str(file.relative_to(tmp_path / "new" / "out")) for file in made.files] == files_in(
        tmp_path / "new" / "out"
    )
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in made.files)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("format_name", TEXTS)
@pytest.mark.parametrize("recorded", list(RECORDED))
def test_what_any_tool_recorded_is_there_again(tmp_path: Path, recorded: str, format_name: FormatName) -> None:
    RECORDED[recorded](tmp_path / "in")
    run = open_run(tmp_path / "in", use_store=False)
    try:
        made = export_run(run, tmp_path / "out", format_name)
    except StepscopeError as reason:
        assert "nothing can be made of it" in str(reason)
        assert not (tmp_path / "out").exists()
        return

    assert not any("Error" in reason for reason in made.left_out.values()), made.left_out
    again = open_run(tmp_path / "out", use_store=False)
    assert {rank.rank for rank in again.ranks} <= {rank.rank for rank in run.ranks}
    names = ["name"] if format_name == "ascend-text" else []  # full names in classic files
    assert totals(again, "operators", "rank", *names) == totals(run, "operators", "rank", *names)
    assert totals(again, "kernels", "rank", "kind").items() >= totals(run, "kernels", "rank", "kind").items()
    assert {key: count for key, (count, _) in totals(again, "collectives", "rank", "operation").items()} == {
        key: count for key, (count, _) in totals(run, "collectives", "rank", "operation").items()
    }
    if run.has("steps") and not run.marks_no_steps:
        assert again.steps == run.steps


def test_the_names_of_ascend_directories_say_who_recorded_them(tmp_path: Path) -> None:
    made = export_run(a_run(), tmp_path, "ascend-text")

    names = sorted({file.relative_to(tmp_path).parts[0] for file in made.files})
    assert [name.rsplit("_", 3)[0] for name in names] == ["node_1_70", "node_1_71"]
    assert all(name.endswith("_ascend_pt") and len(name.split("_")[-3]) == 17 for name in names)


@pytest.mark.parametrize(
    "facts",
    [
        [{"host": None, "process": 7}, {"host": None, "process": 8}],
        [{"host": "a", "process": 7}, {"host": "a", "process": 7}],
        [{"host": "../..", "process": 7}, {"host": "a", "process": -1}],
    ],
)
def test_ranks_of_unknown_or_equal_processes_are_named_by_their_numbers(
    tmp_path: Path, facts: list[dict[str, object]]
) -> None:
    both = {rank: frames(framework="mindspore", **known) for rank, known in enumerate(facts)}

    made = export_run(Run.from_frames(both), tmp_path, "ascend-text")

    names = sorted({file.relative_to(tmp_path).parts[0] for file in made.files})
    assert [name.partition("_")[0] for name in names] == ["rank-0", "rank-1"]
    assert all(name.endswith("_ascend_ms") for name in names)


def test_ranks_wait_for_each_other_and_groups_keep_their_names(tmp_path: Path) -> None:
    late = frames(host="b", process=2)
    late["collectives"] = collectives().with_columns(
        start_ns=pl.col("start_ns") + MS // 2, duration_ns=pl.col("duration_ns") - MS // 2
    )
    groups = pl.DataFrame({"group": ["0"], "name": ["dp"], "members": [[0, 1]]})
    run = Run.from_frames({0: {**frames(host="a", process=1), "groups": groups}, 1: {**late, "groups": groups}})

    export_run(run, tmp_path / "classic", "classic")
    export_run(run, tmp_path / "text", "ascend-text")

    rows = (tmp_path / "classic" / "profiler" / "hccl_raw_0.csv").read_text().splitlines()
    assert [row.split(",")[:3] for row in rows[1:4]] == [[str(step), "0.5", "0.5"] for step in (1, 2, 3)]
    again = open_run(tmp_path / "text", use_store=False)
    assert again.table("groups").select("name", "members").collect().rows() == [("dp", [0, 1])] * 2


def test_steps_of_classic_files_keep_their_numbers_and_a_choice_of_ranks_and_steps_counts(tmp_path: Path) -> None:
    export_run(a_run(), tmp_path, "classic", ranks=1, steps="5-")

    again = open_run(tmp_path, use_store=False)
    assert again.steps == [5, 6]
    assert [rank.rank for rank in again.ranks] == [1]
    listed = json.loads((tmp_path / "profiler" / "exported-1.json").read_text())
    assert (listed["steps"], listed["recording"], listed["complete"]) == ([5, 6], "-", True)


def test_what_ranks_lack_is_said_once_for_all(tmp_path: Path) -> None:
    left_out = export_run(a_run(), tmp_path / "classic", "classic").left_out

    assert "flops_R.txt of ranks 0-1" not in left_out
    assert left_out["minddata_cpu_utilization_R.json of ranks 0-1"].startswith("no samples of the host")
    assert left_out["groups"] == "the format has no place for them"
    alone = export_run(a_run(1), tmp_path / "alone", "classic").left_out
    assert "minddata_cpu_utilization_0.json" in alone


@pytest.mark.parametrize("format_name", TEXTS)
def test_a_rank_without_anything_stops_no_other(tmp_path: Path, format_name: FormatName) -> None:
    run = Run.from_frames({0: {"ranks": frames()["ranks"]}, 1: frames(host="a", process=1)})

    made = export_run(run, tmp_path, format_name)

    assert made.left_out["rank 0"] == "nothing was recorded that these files could hold"
    assert open_run(tmp_path, use_store=False).ranks[0].rank == 1
    assert not any("_0." in name for name in files_in(tmp_path))


def test_a_fault_costs_one_file_or_with_strict_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise ValueError("no such thing")

    monkeypatch.setitem(
        __import__("stepscope.export.ascend_ms.directory", fromlist=["FILES"]).FILES, "op_statistic.csv", fail
    )

    made = export_run(a_run(), tmp_path / "a", "ascend-text")

    assert made.left_out["op_statistic.csv of ranks 0-1"] == "ValueError: no such thing"
    with pytest.raises(ValueError, match="no such thing"):
        export_run(a_run(), tmp_path / "b", "ascend-text", strict=True)
    assert not (tmp_path / "b").exists()


def test_a_recording_with_totals_alone_has_those(tmp_path: Path) -> None:
    totals_of = pl.DataFrame(
        {
            "level": ["type", "operator"],
            "unit": ["AI_CORE"] * 2,
            "name": ["MatMul", "MatMul-op1"],
            "full_name": [None, "Default/MatMul-op1"],
            "core": ["AI_CORE"] * 2,
            "count": [3, 3],
            "total_ns": [3_000_000, 3_000_000],
            "inputs": [None, '{"Input_0": {"shape": "2,2"}}'],
        }
    )
    run = Run.from_frames({0: {"ranks": frames(device_kind="npu")["ranks"], "operator_totals": totals_of}})

    export_run(run, tmp_path / "classic", "classic")
    export_run(run, tmp_path / "text", "ascend-text")

    again = open_run(tmp_path / "classic", use_store=False)
    rows = again.table("operator_totals").select("level", "full_name", "count", "total_ns", "inputs").collect()
    assert set(rows.rows()) == {
        ("type", None, 3, 3_000_000, None),
        ("operator", "Default/MatMul-op1", 3, 3_000_000, '{"Input_0": {"shape": "2,2"}}'),
    }
    (statistic,) = tmp_path.glob("text/*/ASCEND_PROFILER_OUTPUT/op_statistic.csv")
    assert statistic.read_text().splitlines()[1] == ",MatMul,AI_CORE,3,3000.000,,1000.0,,100.0"


@pytest.mark.parametrize("format_name", TEXTS)
def test_names_with_control_characters_are_there_again(tmp_path: Path, format_name: FormatName) -> None:
    odd = frames(host="../h\n\x00", process=3)
    name = 'a\n\x1b[31m,"b"'
    odd = {
        table: rows.with_columns(name=pl.lit(name)) if "name" in rows.columns else rows for table, rows in odd.items()
    }

    made = export_run(Run.from_frames({0: odd}), tmp_path, format_name)

    assert not any("Error" in reason for reason in made.left_out.values())
    assert all(file.resolve().is_relative_to(tmp_path) for file in made.files)
    again = open_run(tmp_path, use_store=False)
    assert again.table("operators").select("name").unique().collect().height == 1


@pytest.mark.parametrize("format_name", TEXTS)
def test_times_that_are_not_since_the_epoch_are_taken(tmp_path: Path, format_name: FormatName) -> None:
    early = {
        table: rows.with_columns(pl.col(name) - BASE for name in rows.columns if name.endswith(("start_ns", "end_ns")))
        for table, rows in frames().items()
    }

    export_run(Run.from_frames({0: early}), tmp_path, format_name)

    assert open_run(tmp_path, use_store=False).steps == [4, 5, 6]


def test_nothing_is_overwritten_and_other_files_stay(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    export_run(a_run(), tmp_path, "classic", ranks=0)
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}

    with pytest.raises(StepscopeError, match=r"profiler/profiler_info_0\.json is there already"):
        export_run(a_run(), tmp_path, "classic")

    assert {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)} == before
    export_run(a_run(), tmp_path, "classic", ranks=1)
    assert before.items() <= {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}.items()


def test_a_file_that_appeared_meanwhile_stays_and_nothing_of_the_export_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.export.formats._classic_names", lambda _: ())
    stranger = tmp_path / "profiler" / "step_trace_raw_1_detail_time.csv"
    stranger.parent.mkdir()
    stranger.write_text("mine")
    monkeypatch.setattr(
        "stepscope.export.formats.FORMATS",
        tuple(each if each.name != "classic" else type(each)("classic", "", each.write) for each in FORMATS),
    )

    with pytest.raises(StepscopeError, match="is there already"):
        export_run(a_run(), tmp_path, "classic")

    assert files_in(tmp_path) == ["profiler/step_trace_raw_1_detail_time.csv"]
    assert stranger.read_text() == "mine"


@pytest.mark.parametrize("inside", ["", "new", "new/deep"])
def test_nothing_is_written_into_a_recording(tmp_path: Path, inside: str) -> None:
    RECORDED["classic"](tmp_path)
    run = open_run(tmp_path, use_store=False)
    before = files_in(tmp_path)

    with pytest.raises(StepscopeError, match="inside the recording"):
        export_run(run, tmp_path / "profiler" / inside, "classic")
    with pytest.raises(StepscopeError, match="inside the recording"):
        export_run(a_run(), tmp_path / inside, "classic", inputs=[tmp_path])
    (tmp_path / "link").symlink_to(tmp_path / "profiler")
    with pytest.raises(StepscopeError, match="inside the recording"):
        export_run(run, tmp_path / "link" / inside, "classic")
    (tmp_path / "link").unlink()

    assert files_in(tmp_path) == before


def test_a_directory_beside_the_recording_whose_files_would_be_in_it_is_refused(tmp_path: Path) -> None:
    RECORDED["classic"](tmp_path)
    before = files_in(tmp_path)

    with pytest.raises(StepscopeError, match=r"nothing is (over)?written"):
        export_run(open_run(tmp_path / "profiler", use_store=False), tmp_path, "classic")
    with pytest.raises(StepscopeError, match="into which nothing is written"):
        export_run(a_run(), tmp_path, "classic", inputs=[tmp_path / "profiler"])

    assert files_in(tmp_path) == before


def test_wrong_wishes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wrong, message in (
        ({"format": "pdf"}, "there is no format 'pdf'. There are: chrome"),
        ({"format": "parquet", "limit_mb": 3}, "parquet has no timeline"),
        ({"limit_mb": 0}, "give a size above 0"),
        ({"ranks": 7}, "no rank 7"),
        ({"steps": 99}, "no step 99"),
        ({"directory": tmp_path / "file"}, "this is a file"),
    ):
        with pytest.raises(StepscopeError, match=message):
            export_run(a_run(), **{"directory": tmp_path / "out", "format": "classic", **wrong})  # type: ignore[arg-type]
    assert files_in(tmp_path) == ["file"]
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(StepscopeError, match="cannot be written"):
        export_run(a_run(), tmp_path / "out", "classic")


def test_parallel_sizes_are_stated_if_they_are_those_of_the_format(tmp_path: Path) -> None:
    sizes = {"tensor_model_parallel_size": 2, "pp_info": {"pp_type": "1f1b"}}
    for name, known in (("a", sizes), ("b", {"parallel_mode": "data_parallel", "stage_num": 1})):
        export_run(Run.from_frames({0: frames(parallelism=json.dumps(known))}), tmp_path / name, "ascend-text")

    first, second = (
        json.loads(next((tmp_path / name).glob("*/profiler_metadata.json")).read_text()) for name in ("a", "b")
    )
    assert first["distributed_args"] == {"tensor_model_parallel_size": 2}
    assert first["pp_info"] == {"pp_type": "1f1b"}
    assert "distributed_args" not in second


def test_recorded_transports_links_and_counters_are_there_again(tmp_path: Path) -> None:
    calls = collectives().with_columns(on_device=pl.lit(value=True), group=pl.lit("11517043351967950690"))
    calls = calls.with_columns(transmit_ns=pl.lit(MS // 2), wait_ns=pl.lit(MS // 4), size_bytes=pl.lit(2_000_000))
    base = {"step": [4, 4], "group": ["11517043351967950690"] * 2}
    transports = pl.DataFrame(
        {
            **base,
            "name": ["gloo:all_reduce"] * 2,
            "transport": ["SDMA", "HCCS"],
            "size_bytes": [2_000_000, 2_000_000],
            "duration_ns": [MS // 2, MS // 2],
            "packet_bytes": [1_000_000, 1_000_000],
            "packets": [2, 2],
        }
    )
    links = pl.DataFrame(
        {
            **base,
            "operation": ["all_reduce"] * 2,
            "name": ["gloo:all_reduce", None],
            "source": [0, 0],
            "destination": [1, 1],
            "transport": ["HCCS", "HCCS"],
            "size_bytes": [2_000_000, 6_000_000],
            "duration_ns": [MS // 2, MS],
        }
    )
    stray = links.head(1).with_columns(group=pl.lit("unknown"))
    kernels = pl.DataFrame(
        {
            "kernel": [0, 1],
            "start_ns": [BASE + MS, BASE + 11 * MS],
            "duration_ns": [MS, MS],
            "kind": ["compute"] * 2,
            "name": ["MatMul"] * 2,
            "core": ["AI_CORE"] * 2,
            "input_shapes": ["2,3;3,4"] * 2,
            "step": [4, 5],
        }
    )
    counters = pl.DataFrame({"kernel": [1], "aic_time_ns": [900_000.0], "aic_mac_ratio": [0.5]})
    groups = pl.DataFrame({"group": ["11517043351967950690"], "name": ["dp"], "members": [[0, 1]]})
    device = {
        "collectives": calls,
        "transports": transports,
        "links": pl.concat([links, stray]),
        "kernels": kernels,
        "kernel_counters": counters,
        "groups": groups,
    }
    facts = {"device_kind": "npu", "device": 0, "ai_cores": 24, "nominal_clock_mhz": 1800.0, "host": "h", "process": 1}
    run = Run.from_frames({0: {**frames(**facts), **device}})

    made = export_run(run, tmp_path, "ascend-text")

    assert made.left_out["communication_matrix.json (links)"].startswith("1 link of calls")
    again = open_run(tmp_path, use_store=False)
    assert again.table("groups").select("group", "name", "members").collect().rows() == groups.rows()
    for table, columns in (
        ("transports", ("step", "group", "transport", "size_bytes", "duration_ns", "packet_bytes", "packets")),
        ("links", ("step", "group", "operation", "source", "destination", "transport", "size_bytes", "duration_ns")),
        ("kernel_counters", ("aic_time_ns", "aic_mac_ratio")),
    ):
        before = {"transports": transports, "links": links, "kernel_counters": counters}[table].select(columns)
        assert sorted(again.table(table).select(columns).collect().rows()) == sorted(before.rows()), table
    assert again.ranks[0].facts["ai_cores"] == 24
    (details,) = tmp_path.glob("*/ASCEND_PROFILER_OUTPUT/kernel_details.csv")
    assert '"""2,3;3,4"""' in details.read_text()


def test_kernels_of_an_ascend_device_are_summed_by_type_and_name(tmp_path: Path) -> None:
    kernels = pl.DataFrame(
        {
            "kernel": [0, 1, 2, 3],
            "start_ns": [BASE + n * MS for n in range(4)],
            "duration_ns": [MS, 3 * MS, MS, MS],
            "kind": ["compute"] * 3 + ["memory"],
            "name": ["Default/net/MatMul-op1", "Default/net/MatMul-op1", "Default/net/Add-op2", "copy"],
            "type": ["MatMul", "MatMul", "Add", None],
            "core": ["AI_CORE", "AI_CORE", "AI_VECTOR_CORE", None],
            "input_shapes": ["2,3;3,4", "2,3;3,4", None, None],
            "input_types": ["FLOAT16;FLOAT16", "FLOAT16;FLOAT16", None, None],
        }
    )
    ranks = frames(device_kind="npu", framework="mindspore")["ranks"]

    export_run(Run.from_frames({0: {"ranks": ranks, "kernels": kernels}}), tmp_path, "classic")

    found = {
        name: (tmp_path / "profiler" / name).read_text().splitlines()[1:] for name in files_in(tmp_path / "profiler")
    }
    assert found["aicore_intermediate_0_type.csv"] == ["MatMul,4.0,2,0.8", "Add,1.0,1,0.2"]
    details = found["aicore_intermediate_0_detail.csv"]
    assert [row.split(",")[1:] for row in details] == [["2.0", "2", "AI_CORE"], ["1.0", "1", "AI_VECTOR_CORE"]]
    assert '""Input_1"": {""data_type"": ""FLOAT16"", ""shape"": ""3,4""}' in found["framework_raw_0.csv"][0]


def test_files_of_a_classic_profile_are_copied_unless_some_steps_are_chosen(tmp_path: Path) -> None:
    RECORDED["classic"](tmp_path / "in")
    run = open_run(tmp_path / "in", use_store=False)
    originals = {file.name: file.read_bytes() for file in (tmp_path / "in" / "profiler").glob("*.*")}

    whole = export_run(run, tmp_path / "whole", "classic")
    some = export_run(run, tmp_path / "some", "classic", steps=run.steps[0])

    copied = [file for file in whole.files if file.name in originals]
    assert len(copied) > 10
    assert all(file.read_bytes() == originals[file.name] for file in copied)
    assert any("covers all steps" in reason for reason in some.left_out.values())
    assert len(open_run(tmp_path / "some", use_store=False).steps) == 1


def test_a_limit_cuts_timelines_and_says_so(tmp_path: Path) -> None:
    made = export_run(a_run(1), tmp_path, "ascend-text", limit_mb=0.001)

    (view,) = tmp_path.glob("*/ASCEND_PROFILER_OUTPUT/trace_view.json")
    assert view.stat().st_size <= 1000
    assert json.loads(view.read_text())
    assert "holds the first" in made.left_out["trace_view.json"]
