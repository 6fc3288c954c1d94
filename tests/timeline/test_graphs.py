"""Several graphs: what is shown of them, on which tracks, and that each layout of a profile gives the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import raw_profiles
from raw_profiles import DEVICE_US, EPOCH_US, GRAPHS, KERNEL_NAMES, PROF, STEP_US, beside, old_raw_only, raw_only
from reading import Timeline
from runs import BASE_NS, both

from stepscope import Run, open_run
from stepscope.errors import StepscopeError
from stepscope.tables import KERNELS, STEPS
from stepscope.timeline import TimelineOptions, write_timeline

LAYOUTS = [beside, raw_only, old_raw_only]
Layout = Callable[[Path], Path]
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def shown(directory: Path, folder: Path, **options: object) -> Timeline:
    """What both forms of a timeline hold."""
    return both(open_run(directory), folder, TimelineOptions(explain=False, **options))  # type: ignore[arg-type]


def starts(timeline: Timeline, category: str) -> list[tuple[str, str, int]]:
    """Track, name and start of the ranges of a category, by start, in us from the start of the first step."""
    rows = sorted((row for row in timeline.ranges if row.category == category), key=lambda row: (row.start, row.name))
    return [(row.place.track, row.name, (row.start - begin(timeline)) // 1000) for row in rows]


def begin(timeline: Timeline) -> int:
    """When the first step begins."""
    return min(row.start for row in timeline.ranges if row.category == "step")


@every_layout
def test_merged_graphs_share_a_track(layout: Layout, tmp_path: Path) -> None:
    timeline = shown(layout(tmp_path / "job"), tmp_path)

    assert starts(timeline, "step") == [
        ("Steps: Iterations", name, step * STEP_US)
        for step, name in enumerate(
            ["Model 1 Iteration 1", "Model 2 Iteration 1", "Model 1 Iteration 2", "Model 2 Iteration 2"]
        )
    ]


@every_layout
def test_graphs_that_are_not_merged_have_a_track_each(layout: Layout, tmp_path: Path) -> None:
    timeline = shown(layout(tmp_path / "job"), tmp_path, merge_graphs=False)

    assert starts(timeline, "step") == [
        (f"Steps: Step trace (model {graph})", f"Iteration {number}", step * STEP_US)
        for step, (graph, number) in enumerate(zip(GRAPHS, (1, 1, 2, 2), strict=True))
    ]
    phases = Counter((row.place.track, row.name) for row in timeline.ranges if row.category == "phase")
    assert phases == {
        (f"Steps: Step trace (model {graph})", name): 2
        for graph in (1, 2)
        for name in ("Forward and backward", "After backward")
    }
    tracks = [place.track for place in timeline.tracks if place.track.startswith("Steps: ")]
    assert tracks == ["Steps: Step trace (model 1)", "Steps: Step trace (model 2)"]


@every_layout
@pytest.mark.parametrize(("graphs", "steps"), [("1", (0, 2)), ("2", (1, 3)), ("1-2", (0, 1, 2, 3))])
@pytest.mark.parametrize("kind", ["summary", "detail"])
def test_only_the_steps_of_chosen_graphs_and_their_work_are_shown(
    layout: Layout, graphs: str, steps: tuple[int, ...], kind: str, tmp_path: Path
) -> None:
    timeline = shown(layout(tmp_path / "job"), tmp_path, graphs=graphs, kind=kind)

    begins = [(step - steps[0]) * STEP_US for step in steps]
    names = [f"Model {GRAPHS[step]} Iteration {raw_profiles.iteration_of(step)}" for step in steps]
    assert [row[1:] for row in starts(timeline, "step")] == list(zip(names, begins, strict=True))
    kernels = [(name, at + after) for at in begins for name, after in zip(KERNEL_NAMES, (1000, 4000), strict=True)]
    assert [row[1:] for row in starts(timeline, "kernel")] == (kernels if kind == "detail" else [])
    computing = [row for row in timeline.ranges if row.place.track == "Overlap analysis: Computing"]
    ends = [(at + after, at + after + 2000) for at in begins for after in (1000, 4000)]
    first = begin(timeline)
    assert sorted(((row.start - first) // 1000, ((row.end or 0) - first) // 1000) for row in computing) == ends
    planes = [row for row in starts(timeline, "communication_task") if "Plane 1" in row[0]]
    assert [row[2] for row in planes] == ([at + 7000 for at in begins] if kind == "detail" else [])


@every_layout
def test_a_graph_that_is_not_there_is_an_error(layout: Layout, tmp_path: Path) -> None:
    run = open_run(layout(tmp_path / "job"))

    with pytest.raises(StepscopeError, match="no step is of graph 7; it has graphs 1-2"):
        write_timeline(run, tmp_path / "none.json", TimelineOptions(graphs="7"))
    assert not (tmp_path / "none.json").exists()


def test_steps_without_graphs_cannot_be_chosen_by_them(tmp_path: Path) -> None:
    directory = beside(tmp_path / "job")
    for file in (directory / PROF / "mindstudio_profiler_output").iterdir():
        file.unlink()

    with pytest.raises(StepscopeError, match="its steps are not counted by graph"):
        write_timeline(open_run(directory), tmp_path / "none.json", TimelineOptions(graphs="1"))
    assert [row[1] for row in starts(shown(directory, tmp_path), "step")] == [
        f"Step {number}" for number in range(1, 5)
    ]


@every_layout
def test_a_layout_shows_all_that_is_in_its_files_and_nothing_twice(layout: Layout, tmp_path: Path) -> None:
    timeline = shown(layout(tmp_path / "job"), tmp_path, scope_names=True)

    counts = Counter(row.category for row in timeline.ranges)
    assert counts["kernel"] == 8
    assert counts["step"] == 4
    assert counts["runtime"] == 4
    assert [row[2] for row in starts(timeline, "runtime")] == [step * STEP_US + 500 for step in range(4)]
    tasks = [row for row in timeline.ranges if row.place.track.endswith("Plane 1")]
    assert sorted(row.start // 1000 for row in tasks) == [step * STEP_US + 7000 for step in range(4)]
    # What MindSpore's own files tell of communication is in their step trace, which has none here.
    assert counts["communication"] == (0 if layout is beside else 4)
    layers = Counter(row.place.track for row in timeline.ranges if row.category == "scope")
    assert layers == {"Scopes: Layer 0": 8, "Scopes: Layer 1": 8, "Scopes: Layer 2": 8, "Scopes: Layer 3": 4}


def test_another_clock_is_told_by_the_iterations_that_both_have(tmp_path: Path) -> None:
    run = open_run(beside(tmp_path / "job"))

    tables = {name: run.table(name).collect() for name in ("steps", "kernels", "slices", "communication_tasks")}
    assert tables["steps"]["graph"].to_list() == [*GRAPHS]
    assert {table["start_ns"].min() for table in tables.values()} == {
        (DEVICE_US + after) * 1000 for after in (0, 500, 1_000, 7_000)
    }
    assert tables["slices"]["step"].to_list() == [1, 2, 3, 4]
    assert not run.has("issues")


@pytest.mark.parametrize("longer_us", [[0, 30, 0, 40], [30, 0, 0, 0, 0, 0]])
def test_a_raw_profile_of_other_iterations_is_left_out(longer_us: list[int], tmp_path: Path) -> None:
    directory = beside(tmp_path / "job")
    file = directory / PROF / "mindstudio_profiler_output/step_trace_20240501100050.csv"
    header = "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us)"
    rows = [f"{header},Iteration Refresh(us),Data Aug Bound(us),Model ID"]
    begin = EPOCH_US
    for number, longer in enumerate(longer_us, 1):
        end = begin + STEP_US + longer * 10
        rows.append(f"{number},{begin},{end - 3_000},{end},{end - begin},{end - begin - 3_000},3000,0,1")
        begin = end
    file.write_text("\n".join(rows) + "\n")

    run = open_run(directory)

    assert run.table("steps").collect()["graph"].null_count() == 4
    assert not run.has("slices")
    assert run.table("kernels").select(pl.len()).collect().item() == 8
    problems = run.table("issues").collect()
    assert problems.select("severity", "problem").rows() == [
        ("note", "its clock cannot be told from that of MindSpore's own files, so what it alone has is left out")
    ]


def test_a_step_may_be_of_different_graphs_on_different_ranks(tmp_path: Path) -> None:
    def rank(graphs: list[int]) -> dict[str, pl.DataFrame]:
        starts = [BASE_NS, BASE_NS + 1000]
        ends = [start + 1000 for start in starts]
        steps = STEPS.frame(
            **{"step": [1, 2], "graph": graphs, "start_ns": starts, "end_ns": ends},
            **{"window_start_ns": starts, "window_end_ns": ends, "window": ["stated"] * 2},
        )
        kernels = KERNELS.frame(
            **{"kernel": [0, 1], "start_ns": starts, "duration_ns": [500] * 2, "step": [1, 2]},
            **{"kind": ["compute"] * 2, "name": ["MatMul"] * 2, "stream": [1, 1]},
        )
        return {"steps": steps, "kernels": kernels}

    run = Run.from_frames({0: rank([1, 2]), 1: rank([2, 1])})

    timeline = both(run, tmp_path, TimelineOptions(graphs=[1], explain=False, align=False))

    for category in ("step", "kernel"):
        assert [row[2] for row in starts(timeline, category)] == [0, 1]
    counts = Counter((row.place.process.split()[1], row.place.track) for row in timeline.ranges)
    assert counts["0", "Overlap analysis: Computing"] == counts["1", "Overlap analysis: Computing"] == 1


def test_kernels_of_the_raw_profile_are_taken_where_no_other_file_has_them(tmp_path: Path) -> None:
    directory = beside(tmp_path / "job")
    expected = (
        open_run(directory).table("kernels").select("name", "start_ns", "duration_ns", "stream", "step").collect()
    )
    (directory / "output_timeline_data_0.txt").unlink()

    kernels = open_run(directory).table("kernels").collect()

    assert kernels.select(expected.columns).sort("start_ns").equals(expected.sort("start_ns"))


def test_operators_of_the_host_are_on_the_clock_of_the_device_too(tmp_path: Path) -> None:
    directory = beside(tmp_path / "job")
    at = (EPOCH_US + STEP_US + 2_000) * 1000
    name = "Default/embed/EmbeddingLookup-op9"
    (directory / "cpu_op_execute_timestamp_0.txt").write_text(f"{name};HostCpuOps;{at},1.5,11\n")

    run = open_run(directory)

    slices = run.table("slices").collect()
    assert slices["slice"].is_unique().all()
    assert slices.filter(category="operator").select("name", "start_ns", "duration_ns", "step").rows() == [
        (name, (DEVICE_US + STEP_US + 2_000) * 1000, 1_500_000, 2)
    ]
    assert slices.filter(category="runtime").height == 4
