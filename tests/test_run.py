"""A run: its tables, what it lacks, its selections and its answers."""

from __future__ import annotations

import math
import time
from pathlib import Path

import polars as pl
import pytest

import stepscope.analysis  # noqa: F401 - registers the analyses, so that the fixture below can restore them
from builders import EPOCH_NS, ToySource, make_run, toy_slices, write_toy
from stepscope import Run, StepscopeError, Unavailable, open_run, open_runs
from stepscope.analysis.columns import columns
from stepscope.analysis.registry import ANALYSES, analysis
from stepscope.errors import NothingReadable
from stepscope.tables import ISSUES, KERNELS, RANKS, TABLES


@pytest.fixture
def toys(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the toy format is known, and the store is empty."""
    monkeypatch.setattr("stepscope.sources.registry.SOURCES", [ToySource()])


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyses registered by a test are forgotten after it."""
    monkeypatch.setattr("stepscope.analysis.registry.ANALYSES", dict(ANALYSES))


def write_job(directory: Path, ranks: int = 3, **content: object) -> Path:
    for rank in range(ranks):
        window = {"start_ns": EPOCH_NS, "end_ns": EPOCH_NS + 10**9}
        write_toy(directory / f"rank{rank}.json", rank=rank, world_size=ranks, **{**window, **content})
    return directory


@pytest.mark.usefixtures("toys")
def test_a_directory_opens_as_a_run(tmp_path: Path) -> None:
    run = open_run(write_job(tmp_path / "job"))

    assert (run.name, run.path, [rank.rank for rank in run.ranks]) == ("job", tmp_path / "job", [0, 1, 2])
    assert (run.world_size, run.rank(1).facts["rank_origin"]) == (3, "content")
    assert run.rank(1).path.name == "rank1.json"
    assert run.others == []


@pytest.mark.usefixtures("toys")
def test_tables_carry_the_rank_and_all_columns(tmp_path: Path) -> None:
    run = open_run(write_job(tmp_path))

    for name in ("slices", "steps", "ranks", "issues"):
        assert run.table(name).collect_schema() == TABLES[name].schema
    assert run.table("slices").collect().group_by("rank").len().sort("rank")["len"].to_list() == [4, 4, 4]
    assert run.table("ranks").collect()["rank"].to_list() == [0, 1, 2]


@pytest.mark.usefixtures("toys")
def test_opening_again_is_cheap(tmp_path: Path) -> None:
    write_job(tmp_path, ranks=8)
    open_run(tmp_path)

    started = time.process_time()
    open_run(tmp_path)

    assert time.process_time() - started < 0.05


@pytest.mark.usefixtures("toys")
def test_the_largest_job_is_opened_and_the_others_named(tmp_path: Path) -> None:
    write_job(tmp_path / "big", ranks=3)
    write_job(tmp_path / "small", ranks=2, start_ns=0, end_ns=1)

    run = open_run(tmp_path)

    assert (run.name, [other.name for other in run.others]) == ("big", ["small"])
    assert "small" in run.issues.filter(severity="note")["problem"].item()
    assert [r.name for r in open_runs(tmp_path)] == ["big", "small"]


@pytest.mark.usefixtures("toys")
def test_what_was_not_read_is_told_beside_what_was(tmp_path: Path) -> None:
    write_job(tmp_path)
    write_toy(tmp_path / "rank3.json", rank=3, world_size=3, unreadable="cut off")
    write_toy(tmp_path / "rank4.json", rank=4, world_size=3, fail="oops")
    write_toy(tmp_path / "rank0.json", rank=0, world_size=3, damaged=9)
    (tmp_path / "empty.json").touch()
    (tmp_path / "readme.md").write_text("hello")

    run = open_run(tmp_path)
    issues = run.issues

    assert sorted(Path(u.file).name for u in run.unread) == ["empty.json", "rank3.json", "rank4.json"]
    assert run.skipped == 1
    assert issues.schema == ISSUES.schema
    assert issues.filter(pl.col("rank") == 0).select("place", "lost").rows() == [("byte 7", 9)]
    assert set(issues["severity"]) == {"error"}
    assert issues.height == 4


@pytest.mark.usefixtures("toys")
def test_nothing_readable_says_what_was_seen(tmp_path: Path) -> None:
    write_toy(tmp_path / "rank0.json", unreadable="cut off")
    (tmp_path / "readme.md").write_text("hello")

    with pytest.raises(NothingReadable, match=r"(?s)rank0.json: cut off. Record again.*1 other file"):
        open_run(tmp_path)


@pytest.mark.usefixtures("toys")
def test_a_missing_path_is_an_error() -> None:
    with pytest.raises(StepscopeError, match="no such file"):
        open_run("/no/such/path")


@pytest.mark.usefixtures("toys")
def test_the_steps_that_a_caller_gets_are_its_own(tmp_path: Path) -> None:
    run = open_run(write_job(tmp_path))
    steps = run.steps

    run.steps.append(99)

    assert run.steps == steps and 99 not in steps


@pytest.mark.usefixtures("toys")
def test_several_ranks_that_lack_a_table_are_several() -> None:
    run = Run.from_frames({0: {"stacks": pl.DataFrame({"stack": [0], "text": ["main"]})}, 1: {}, 2: {}})

    assert "ranks 1-2 lack `stacks`" in run.missing("stacks")
    assert "rank 1 lacks `stacks`" in run.select(ranks="0-1").missing("stacks")


@pytest.mark.usefixtures("toys")
def test_ranks_and_steps_can_be_selected(tmp_path: Path) -> None:
    write_job(tmp_path, steps=5)

    run = open_run(tmp_path, ranks="1-", steps="2,4")

    assert [rank.rank for rank in run.ranks] == [1, 2]
    assert run.steps == [2, 4]
    assert run.table("slices").select("rank", "step").unique().sort("rank", "step").collect().rows() == [
        (1, 2),
        (1, 4),
        (2, 2),
        (2, 4),
    ]


def test_tables_without_steps_keep_their_rows() -> None:
    frames = {
        0: {"slices": toy_slices(1), "issues": ISSUES.frame(severity=["note"], file=["f"], problem=["p"], remedy=["r"])}
    }

    run = Run.from_frames(frames).select(steps=[1])

    assert (run.table("slices").collect().height, run.issues.height) == (2, 1)


@pytest.mark.parametrize(
    ("ranks", "steps", "message"),
    [("9", None, "no rank 9.*has ranks 0-3"), (None, "7-", "no steps 7-.*has steps 1-3"), ("x", None, "not a number")],
)
def test_a_selection_of_nothing_says_what_there_is(ranks: str | None, steps: str | None, message: str) -> None:
    with pytest.raises(StepscopeError, match=message):
        make_run().select(ranks, steps)


def test_a_selection_of_a_selection_has_what_both_choose() -> None:
    run = make_run(ranks=4, late={2: 30_000_000})
    of_two = run.select(steps="2-3").analyse("arrival").filter(rank=2)

    twice = run.select(ranks="2", steps="1-2").select(steps="2-").select(ranks="1-")

    assert (str(twice), twice.steps) == ("Run('frames', ranks 2)", [2])
    assert of_two["members"].unique().to_list() == [4]
    assert run.select(ranks=2).select(steps="2-3").analyse("arrival").equals(of_two)
    assert run.select(ranks=2, steps="2-3").analyse("arrival").equals(of_two)
    with pytest.raises(StepscopeError, match=r"no step 3 in frames. It has steps 1-2"):
        run.select(steps="1-2").select(steps=3)


@pytest.mark.parametrize("answers_mb", [-1, math.nan, math.inf])
def test_a_size_of_answers_that_is_none_is_refused(answers_mb: float) -> None:
    with pytest.raises(StepscopeError, match=r"answers_mb is .* 0 or above"):
        Run("job", Path(), [], answers_mb=answers_mb)


def test_a_missing_table_is_unavailable_with_a_reason() -> None:
    issue = ISSUES.frame(
        severity=["note"], file=["f"], place=["kernels"], problem=["no device was recorded"], remedy=["Record CUDA"]
    )
    run = Run.from_frames({rank: {"slices": toy_slices(1), "issues": issue} for rank in range(2)})

    with pytest.raises(Unavailable, match=r"no rank has `kernels`.*no device was recorded. Record CUDA"):
        run.table("kernels")
    with pytest.raises(StepscopeError, match="no table 'kernel'"):
        run.table("kernel")
    assert run.missing("slices") == ""


def test_coverage_counts_rows_by_rank_and_table() -> None:
    run = Run.from_frames({0: {"slices": toy_slices(1)}, 3: {}})

    assert run.coverage().select("rank", "ranks", "slices", "kernels").rows() == [(0, 1, 2, 0), (3, 1, 0, 0)]
    assert run.missing("slices").startswith("rank 3 lacks")


def test_frames_may_carry_their_rank_and_facts() -> None:
    frame = toy_slices(1).with_columns(rank=pl.lit(0, pl.Int32))

    run = Run.from_frames({0: {"slices": frame, "ranks": RANKS.frame(host=["a"], world_size=[64])}})

    assert (run.table("slices").collect()["rank"].to_list(), run.world_size) == ([0, 0], 64)
    assert run.rank(0).facts["host"] == "a"


def test_an_analysis_of_a_rank_is_stacked_over_ranks(registry: None) -> None:
    @analysis("rank", columns("rank duration_ns"))
    def busy(kernels: pl.LazyFrame) -> pl.LazyFrame:
        return kernels.group_by("rank").agg(pl.sum("duration_ns"))

    answer = make_run(ranks=3, steps=1, compute_ns=60, collective_ns=20).analyse("busy")

    assert answer.rows() == [(0, 80), (1, 80), (2, 80)]


def test_an_analysis_of_a_job_sees_all_ranks(registry: None) -> None:
    @analysis("job", columns("rank"))
    def ranks_seen(collectives: pl.LazyFrame, ranks: pl.LazyFrame) -> pl.LazyFrame:
        return collectives.join(ranks, on="rank").select(pl.col("rank").unique().sort())

    assert make_run().analyse(ranks_seen)["rank"].to_list() == [0, 1, 2, 3]


def test_an_analysis_gets_other_answers_and_options_and_is_asked_once(registry: None) -> None:
    calls = []

    @analysis("rank", columns("rank duration_ns"))
    def first(kernels: pl.LazyFrame) -> pl.DataFrame:
        calls.append("first")
        return kernels.select("rank", "duration_ns").collect()

    @analysis("rank", columns("rank duration_ns"))
    def second(first: pl.DataFrame, factor: int = 1) -> pl.DataFrame:
        return first.group_by("rank").agg(pl.sum("duration_ns") * factor)

    @analysis("job", columns("count steps"))
    def third(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame({"count": [first.height], "steps": [second.height]})

    run = make_run(ranks=2, steps=1, compute_ns=1, collective_ns=1)

    assert run.analyse(second, factor=10).rows() == [(0, 20), (1, 20)]
    assert run.analyse(third).rows() == [(4, 2)]
    assert run.analyse(third).rows() == [(4, 2)]
    assert calls == ["first", "first"]


def test_optional_tables_and_answers_may_be_missing(registry: None) -> None:
    @analysis("job", columns("rank"))
    def links_seen(links: pl.LazyFrame) -> pl.LazyFrame:
        return links.select("rank")

    @analysis("job", columns("on_device"))
    def tolerant(links: pl.LazyFrame | None, links_seen: pl.DataFrame | None) -> pl.DataFrame:
        return pl.DataFrame({"on_device": [links is None and links_seen is None]})

    assert make_run().analyse(tolerant).item() is True


def test_a_missing_table_makes_the_answer_unavailable_with_names(registry: None) -> None:
    @analysis("rank", columns("rank"))
    def links_seen(links: pl.LazyFrame) -> pl.LazyFrame:
        return links

    run = make_run()

    with pytest.raises(Unavailable, match="links_seen needs `links`: no rank has `links`"):
        run.analyse(links_seen)
    assert sorted(run.silent_ranks(links_seen)) == [0, 1, 2, 3]


def test_ranks_that_cannot_answer_are_left_out_and_remembered(registry: None) -> None:
    @analysis("rank", columns("rank"))
    def kernels_seen(kernels: pl.LazyFrame) -> pl.DataFrame | None:
        frame = kernels.select("rank").collect()
        if frame["rank"][0] == 1:
            raise Unavailable("rank 1 is broken")
        return None if frame["rank"][0] == 2 else frame

    kernel = KERNELS.frame(kernel=[0], start_ns=[0], duration_ns=[1], kind=["compute"], name=["k"])
    run = Run.from_frames({**{rank: {"kernels": kernel} for rank in range(3)}, 3: {}})

    assert run.analyse(kernels_seen)["rank"].to_list() == [0]
    assert {rank: str(reason) for rank, reason in run.silent_ranks(kernels_seen).items()} == {
        1: "rank 1 is broken",
        2: "kernels_seen gives nothing for rank 2",
        3: "kernels_seen needs `kernels`: rank 3 lacks `kernels` (read as frames)",
    }


def test_small_ranks_are_asked_together_and_one_by_one_where_one_cannot_answer(registry: None) -> None:
    asked = []

    @analysis("rank", columns("rank"), together=True)
    def seen(kernels: pl.LazyFrame) -> pl.DataFrame:
        frame = kernels.select("rank").collect()
        asked.append(frame["rank"].to_list())
        if 1 in asked[-1]:
            raise Unavailable("rank 1 is broken")
        return frame

    kernel = KERNELS.frame(kernel=[0], start_ns=[0], duration_ns=[1], kind=["compute"], name=["k"])
    tables = {"kernels": kernel, "slices": toy_slices(1)}
    run = Run.from_frames({**{rank: {"kernels": kernel} for rank in range(3)}, 3: tables, 4: tables})

    assert run.analyse(seen)["rank"].to_list() == [0, 2, 3, 4]
    assert {rank: str(reason) for rank, reason in run.silent_ranks(seen).items()} == {1: "rank 1 is broken"}
    assert sorted(asked) == [[0], [0, 1, 2, 3, 4], [1], [2], [3], [4]]


def test_ranks_that_cannot_answer_are_left_out_and_the_others_asked_together_again(registry: None) -> None:
    asked = []

    @analysis("rank", columns("rank"), together=True, nothing="no kernel is long")
    def long(kernels: pl.LazyFrame) -> pl.DataFrame:
        frame = kernels.select("rank", "duration_ns").collect()
        asked.append(frame["rank"].to_list())
        if broken := frame.filter(pl.col("duration_ns") == 0)["rank"].to_list():
            raise Unavailable("a kernel has no length", of=broken)
        return frame.filter(pl.col("duration_ns") > 1).select("rank")

    @analysis("rank", columns("rank"), together=True)
    def longer(long: pl.DataFrame, kernels: pl.LazyFrame) -> pl.DataFrame:
        return kernels.select("rank").collect()

    def kernel(duration_ns: int) -> pl.DataFrame:
        return KERNELS.frame(kernel=[0], start_ns=[0], duration_ns=[duration_ns], kind=["compute"], name=["k"])

    run = Run.from_frames({rank: {"kernels": kernel(length)} for rank, length in enumerate([5, 0, 1, 0, 7])})
    reasons = {1: "a kernel has no length", 2: "no kernel is long", 3: "a kernel has no length"}

    for question in (long, longer):
        assert run.analyse(question)["rank"].to_list() == [0, 4]
        assert {rank: str(reason) for rank, reason in run.silent_ranks(question).items()} == reasons
    assert sorted(asked) == [[0, 1, 2, 3, 4], [0, 2, 4], [1, 3]]


def test_what_is_asked_together_needs_only_what_is_asked_together(registry: None) -> None:
    @analysis("rank", columns("rank"))
    def alone(kernels: pl.LazyFrame) -> pl.DataFrame:
        frame = kernels.select("rank").collect()
        assert frame["rank"].n_unique() == 1
        return frame

    @analysis("rank", columns("rank"), together=True)
    def both(alone: pl.DataFrame) -> pl.DataFrame:
        return alone.unique()

    assert make_run(ranks=3).analyse(both)["rank"].to_list() == [0, 1, 2]


def test_ranks_whose_optional_answers_differ_are_asked_alone(registry: None) -> None:
    @analysis("rank", columns("rank"), together=True)
    def choosy(kernels: pl.LazyFrame) -> pl.DataFrame:
        frame = kernels.select(pl.col("rank").unique()).collect()
        if 1 in frame["rank"]:
            raise Unavailable("not rank 1")
        return frame

    @analysis("rank", columns("rank on_device"), together=True)
    def tolerant(kernels: pl.LazyFrame, choosy: pl.DataFrame | None) -> pl.DataFrame:
        return kernels.select(pl.col("rank").unique().sort()).collect().with_columns(on_device=choosy is not None)

    assert make_run(ranks=3).analyse(tolerant).rows() == [(0, True), (1, False), (2, True)]


def test_unknown_analyses_and_options_are_refused(registry: None) -> None:
    @analysis("job", columns("count"))
    def ranks_seen(ranks: pl.LazyFrame, limit: int = 3) -> pl.DataFrame:
        return pl.DataFrame({"count": [limit]})

    with pytest.raises(StepscopeError, match=r"no analysis 'rank_seen'. Did you mean ranks_seen"):
        make_run().analyse("rank_seen")
    with pytest.raises(StepscopeError, match=r"no option 'limits'. Did you mean limit"):
        make_run().analyse(ranks_seen, limits=4)
    assert make_run().analyse(ranks_seen, limit=4).item() == 4
