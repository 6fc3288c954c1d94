"""Answers kept on disk: equal to what is computed, found only for the very same question, and never in the way."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from every_format import FORMATS
from stepscope import Run, StepscopeError, open_run, open_runs
from stepscope.advice import RULES, advise, limits_from, rule
from stepscope.advice.messages import Message, Text
from stepscope.analysis import ANALYSES, analysis
from stepscope.analysis.columns import columns
from stepscope.errors import Unavailable
from stepscope.run import kept_answers
from stepscope.run.supply import Supplier
from stepscope.store import Store, cache_directory
from stepscope.store import answers as answer_files


@pytest.fixture(autouse=True)
def keeping(computed: pytest.MonkeyPatch) -> None:
    """Answers are kept."""
    computed.undo()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the analyses and rules that are called, in order."""
    called: list[str] = []
    call = Supplier._call

    def noted(self: Supplier, one: Any, *args: Any) -> Any:
        called.append(one.name)
        return call(self, one, *args)

    monkeypatch.setattr(Supplier, "_call", noted)
    return called


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job of several ranks."""
    FORMATS["kineto"](tmp_path / "job")
    return tmp_path / "job"


def make(directory: Path) -> Path:
    directory.mkdir()
    return directory


def everything(run: Run) -> dict[str, Any]:
    """Every answer, why there is none, who is silent and why, and the advice, with types."""
    found: dict[str, Any] = {"advice": [repr(finding) for finding in advise(run)], "issues": run.issues.to_dicts()}
    for question in ANALYSES:
        try:
            found[question] = run.analyse(question)
        except Unavailable as reason:
            found[question] = reason_of(reason)
        found[f"{question} silent"] = {rank: reason_of(why) for rank, why in run.silent_ranks(question).items()}
    return found


def reason_of(reason: Unavailable) -> tuple[Any, ...]:
    causes = tuple(map(reason_of, reason.causes))
    return (type(reason), str(reason), reason.question, reason.table, reason.ranks, reason.why, causes, reason.of)


def assert_equal(found: Mapping[str, Any], expected: Mapping[str, Any], *, exactly: bool = True) -> None:
    """Equal; if not `exactly`, but for the last digits of sums of fractions, which depend on the order of addition."""
    assert found.keys() == expected.keys()
    for question, answer in expected.items():
        if isinstance(answer, pl.DataFrame):
            assert_frame_equal(found[question], answer, check_exact=exactly, rel_tol=1e-12, abs_tol=0.0)
        else:
            assert found[question] == answer, question


def files() -> list[Path]:
    return [one.file for one in Store(cache_directory()).list_answers()]


@pytest.mark.parametrize("name", FORMATS)
def test_kept_answers_are_those_that_are_computed(name: str, tmp_path: Path, calls: list[str]) -> None:
    directory = make(tmp_path / "job")
    FORMATS[name](directory)
    computed = [everything(run) for run in open_runs(directory, use_store=False)]
    assert not files()

    first = [everything(run) for run in open_runs(directory)]
    calls.clear()
    kept = [everything(run) for run in open_runs(directory)]

    assert not calls
    for one, again, expected in zip(first, kept, computed, strict=True):
        assert_equal(one, expected)
        assert_equal(again, expected)


def changed_file(job: Path) -> Run:
    file = sorted(job.rglob("*.json"))[0]
    os.utime(file, ns=(1, file.stat().st_mtime_ns + 1))
    return open_run(job)


def read_again(job: Path) -> Run:
    for entry in Store(cache_directory()).list_entries():
        Store(cache_directory())._remove(entry.directory)
    return open_run(job)


def without_a_rank(job: Path) -> Run:
    sorted(job.rglob("*.json"))[0].unlink()
    return open_run(job)


def other_version(job: Path) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_answers, "code_version", lambda: "f" * 16)
        run = open_run(job)
        assert run._kept is not None
    return run


def other_issues(job: Path) -> Run:
    (job / "torn.json").write_text('{"traceEvents": [')
    return open_run(job)


QUESTIONS: Mapping[str, Callable[[Path], Run]] = {
    "a file that changed": changed_file,
    "rows that were read again": read_again,
    "fewer ranks": without_a_rank,
    "another version": other_version,
    "other issues": other_issues,
    "selected ranks": lambda job: open_run(job, ranks="1"),
    "selected steps": lambda job: open_run(job, steps="4"),
    "other limits": lambda job: open_run(job).with_limits(limits_from({"suspect_costs": {"cost_ratio": 0.5}})),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_question_is_computed(name: str, job: Path, calls: list[str]) -> None:
    open_run(job).analyse("slow_ranks")
    calls.clear()
    open_run(job).analyse("slow_ranks")
    assert not calls

    QUESTIONS[name](job).analyse("slow_ranks")

    assert "slow_ranks" in calls or name == "selected ranks"  # narrowed from that of all ranks


def test_options_and_those_of_needed_analyses_matter(job: Path, calls: list[str]) -> None:
    open_run(job).analyse("time_by_rank")
    calls.clear()
    open_run(job).analyse("kernel_totals")
    assert calls
    calls.clear()

    limits = limits_from({"time_by_rank": {"length_factor": 9.0}})
    open_run(job).analyse("time_by_rank", limits=limits["time_by_rank"])
    assert calls[0] == "time_by_rank"
    calls.clear()
    open_run(job).with_limits(limits).analyse("time_by_rank")  # the same options, but set for all questions
    assert calls[0] == "time_by_rank"
    calls.clear()
    open_run(job).with_limits(limits).analyse("time_by_rank")
    assert not calls


def test_options_are_told_apart_by_type(job: Path) -> None:
    kept = open_run(job)._kept
    assert kept is not None
    values = (1, 1.0, True, "1", (1,), None, frozenset({1}), Path("1"))
    keys = {kept.key(ANALYSES["breakdown"], {"option": value}, {}, ()) for value in values}
    assert len(keys) == len(values)
    assert None not in keys


def test_an_answer_about_a_rank_is_taken_from_that_of_all(job: Path, calls: list[str]) -> None:
    whole = open_run(job).analyse("breakdown")
    calls.clear()

    assert_frame_equal(open_run(job, ranks="1").analyse("breakdown"), whole.filter(pl.col("rank") == 1))

    assert not calls


def test_answers_that_another_question_needs_are_kept(job: Path, calls: list[str]) -> None:
    open_run(job).analyse("operator_types")
    assert calls == ["operator_types", "operator_instances"]
    calls.clear()

    found = open_run(job).analyse("operator_instances")

    assert not calls
    assert_frame_equal(found, open_run(job, use_store=False).analyse("operator_instances"))


def test_one_more_rank_costs_one_rank(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = sorted(job.rglob("*.json"))[-1]
    content = last.read_bytes()
    last.unlink()
    smaller = open_run(job)
    everything(smaller)
    last.write_bytes(content)
    expected = everything(open_run(job, use_store=False))

    asked: list[tuple[int, ...]] = []
    ask_part = Supplier.ask_part

    def noted(self: Supplier, one: Any, options: Any, ranks: Any, **how: Any) -> Any:
        asked.append(ranks)
        return ask_part(self, one, options, ranks, **how)

    monkeypatch.setattr(Supplier, "ask_part", noted)
    larger = open_run(job)
    assert larger.analyse("breakdown").height
    (new,) = {rank.rank for rank in larger.ranks} - {rank.rank for rank in smaller.ranks}
    assert {*asked} == {(new,)}
    assert_equal(everything(larger), expected)


def test_another_selection_of_steps_computes_only_what_depends_on_it(
    job: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.run.rank_groups.TOGETHER_ROWS", 0)  # several parts
    open_run(job).analyse("gaps")
    assert {"activity", "idle_pieces", "gap_ends"} <= {*calls}
    calls.clear()
    run = open_run(job)
    found = run.select(steps=str(run.steps[-1])).analyse("gaps")

    assert {"gap_ends", "gaps"} <= {*calls}
    assert not {"activity", "marks", "idle_pieces"} & {*calls}
    expected = open_run(job, use_store=False).select(steps=str(run.steps[-1])).analyse("gaps")
    assert_equal({"gaps": found}, {"gaps": expected})


@pytest.mark.parametrize("name", FORMATS)
def test_answers_of_other_runs_are_those_that_are_computed(name: str, tmp_path: Path) -> None:
    FORMATS[name](make(tmp_path / "job"))
    for run in open_runs(tmp_path / "job"):
        for rank in run.ranks[1:]:
            everything(run.select(ranks=[rank.rank]))
            everything(open_run(rank.path))
        expected = everything(Run(run.name, run.path, run.ranks, own_issues=run.own_issues, unread=run.unread))
        others = Run(run.name, run.path, run.ranks, own_issues=run.own_issues, unread=run.unread, store=run._store)
        assert_equal(everything(others), expected, exactly=False)


@pytest.mark.parametrize("cut", [0, 1, 30, 200, -1, -300])
def test_a_file_that_was_cut_off_costs_what_was_lost(job: Path, cut: int) -> None:
    expected = everything(open_run(job))
    (file,) = files()
    content = file.read_bytes()
    file.write_bytes(content[:cut])

    assert_equal(everything(open_run(job)), expected)
    (file,) = files()
    assert file.stat().st_size >= 0.99 * len(content)  # all but what nobody asked again
    assert_equal(everything(open_run(job)), expected)


@pytest.mark.parametrize("place", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_damaged_file_costs_what_was_damaged(job: Path, place: float, calls: list[str]) -> None:
    expected = everything(open_run(job))
    (file,) = files()
    content = bytearray(file.read_bytes())
    at = int(place * len(content))
    content[at : at + 8] = bytes(255 - byte for byte in content[at : at + 8])
    file.write_bytes(content)

    assert_equal(everything(open_run(job)), expected)
    calls.clear()
    assert_equal(everything(open_run(job)), expected)
    assert not calls


def test_a_foreign_file_is_replaced(job: Path) -> None:
    expected = everything(open_run(job))
    (file,) = files()
    file.write_bytes(b"something else" * 100)

    assert_equal(everything(open_run(job)), expected)
    assert file.read_bytes().startswith(b"stepscope answers")


def test_what_a_checksum_cannot_tell_is_computed(job: Path) -> None:
    run = open_run(job)
    expected = run.analyse("breakdown")
    kept = open_run(job)._kept
    assert kept is not None and kept._records is not None
    for content in (b"\xc1", b"", b"\x82\xa4kind\xa6fields\xa4type\xa9os:system"):
        for key in list(kept._records._known()):
            kept._records.add({key: content})
        assert_frame_equal(open_run(job).analyse("breakdown"), expected)


def test_nothing_that_could_be_called_is_read(job: Path) -> None:
    import msgspec

    for place in ("os:system", "builtins:print", "stepscope.run:open_run", "pathlib:Path"):
        data = msgspec.msgpack.encode({"kind": "fields", "type": place, "fields": {"command": "true"}})
        with pytest.raises((TypeError, AttributeError)):
            kept_answers.decoded(data)


def test_others_cannot_read_it(job: Path) -> None:
    open_run(job).analyse("breakdown")
    (file,) = files()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_folder_that_takes_nothing_costs_only_the_keeping(job: Path, cache: Path) -> None:
    expected = open_run(job, use_store=False).analyse("breakdown")
    open_run(job)
    (cache / answer_files.FOLDER).write_text("no folder")
    assert_frame_equal(open_run(job).analyse("breakdown"), expected)


def test_a_full_disk_costs_only_the_keeping(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = everything(open_run(job, use_store=False))
    open_run(job).analyse("breakdown")
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[: len(data) // 2]))
    assert_equal(everything(open_run(job)), expected)
    monkeypatch.undo()
    monkeypatch.setenv("STEPSCOPE_CACHE", str(cache_directory()))


def test_without_the_store_nothing_is_kept(job: Path, cache: Path) -> None:
    open_run(job, use_store=False).analyse("breakdown")
    assert not (cache / answer_files.FOLDER).exists()


@pytest.fixture
def of_others() -> Iterator[None]:
    """An analysis and a rule of another package."""

    @analysis("rank", columns("rank"))
    def offered(breakdown: pl.DataFrame) -> pl.DataFrame:
        return breakdown.select("rank").unique()

    @rule("offered", messages={"any": Message(*[Text("a", "b")] * 3)})
    def offered_rule(offered: pl.DataFrame) -> Iterator[Any]:
        yield from ()

    yield
    del ANALYSES["offered"], RULES["offered"]


@pytest.mark.usefixtures("of_others")
def test_functions_of_others_are_asked_each_time(job: Path, calls: list[str]) -> None:
    for _ in range(2):
        run = open_run(job)
        calls.clear()
        run.analyse("offered")
        run.analyse(RULES["offered"].function)
        run.analyse(lambda steps: steps.select("step"))
        assert len(calls) >= 3


def test_a_rule_that_fails_is_not_kept(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(**_: Any) -> None:
        raise RuntimeError("broken")

    function = RULES["memory-leak"].function
    for name in list(RULES):
        monkeypatch.delitem(RULES, name)
    with monkeypatch.context() as patch:
        patch.setattr(Supplier, "_call", lambda *_: failing())
        for _ in range(2):
            with pytest.raises(RuntimeError):
                open_run(job).analyse(function)
    with pytest.raises(Unavailable, match="memory"):
        open_run(job).analyse(function)


def test_large_answers_are_not_kept(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MOST_BYTES", 10)
    monkeypatch.setattr(kept_answers, "LEAST_RATIO", 1e9)  # none takes so long to compute
    open_run(job).analyse("breakdown")
    assert not files()


def test_a_large_answer_is_kept_if_computing_it_takes_far_longer_than_reading_it(
    job: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_answers, "MOST_BYTES", 10)
    monkeypatch.setattr(kept_answers, "LEAST_RATIO", 0)
    expected = open_run(job).analyse("breakdown")
    calls.clear()
    assert_frame_equal(open_run(job).analyse("breakdown"), expected)
    assert not calls


def test_no_large_answer_takes_much_of_what_may_be_kept_about_a_run(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MOST_BYTES", 10)
    monkeypatch.setattr(kept_answers, "LEAST_RATIO", 0)
    monkeypatch.setattr(kept_answers, "SHARE", 1e-9)
    open_run(job).analyse("breakdown")
    assert not files()


def test_the_answers_of_a_run_are_bounded(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_run(job).analyse("breakdown")
    (file,) = files()
    monkeypatch.setenv("STEPSCOPE_CACHE_MAX_GB", str(4e-5 * 1.2))  # 48 KB: 1.2 KB a run
    run = open_run(job)
    for question in ("kernel_totals", "idle", "slow_ranks", "communication", "activity"):
        run.analyse(question)
    assert file.stat().st_size < 40_000
    total = sum(one.stat().st_size for one in files())
    assert total == file.stat().st_size


def test_the_least_recently_used_answers_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = answer_files.About("/job", [])
    for number in range(4):
        records = answer_files.KeptRecords(tmp_path, f"{number:040}", "0" * 16, about, 40_000)
        records.add({bytes([1]) * 16: bytes(900)})
        os.utime(records.file, (1000 + number, 1000 + number))
    records = answer_files.KeptRecords(tmp_path, "4" * 40, "0" * 16, about, 40_000)
    records.add({bytes([1]) * 16: bytes(900)})
    left = [one.file.name[:40] for one in answer_files.list_answers(tmp_path)]
    assert left == ["4" * 40, f"{3:040}", f"{2:040}"]


def test_answers_go_with_their_rows(job: Path, cache: Path) -> None:
    open_run(job).analyse("breakdown")
    store = Store(cache)
    store.evict(10**9)
    assert files()
    store._remove(store.list_entries()[0].directory)
    store.evict(10**9)
    assert not files()


def test_a_new_version_replaces_the_answers_of_the_old_one(job: Path) -> None:
    open_run(job).analyse("breakdown")
    before = files()
    other_version(job).analyse("breakdown")
    assert len(files()) == 1
    assert files() != before


def test_clearing_the_cache_clears_the_answers(job: Path, cache: Path) -> None:
    open_run(job).analyse("breakdown")
    entries = len(Store(cache).list_entries())
    size = sum(one.size_bytes for one in Store(cache).list_answers())
    removed, freed = Store(cache).clear()
    assert removed == entries
    assert freed > size > 0
    assert not files()


def test_several_processes_keep_at_once(job: Path) -> None:
    asking = "import sys, stepscope\nrun = stepscope.open_run(sys.argv[1])\n"
    asking += "for name in sys.argv[2:]:\n    run.analyse(name)"
    open_run(job)
    names = [["breakdown", "idle"], ["kernel_totals", "communication"], ["slow_ranks", "breakdown"]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    started = [subprocess.Popen([sys.executable, "-c", asking, str(job), *some], env=environment) for some in names]
    assert [process.wait() for process in started] == [0, 0, 0]
    expected = everything(open_run(job, use_store=False))
    assert_equal(everything(open_run(job)), expected)


def test_records_of_two_writers_are_both_found(tmp_path: Path) -> None:
    about = answer_files.About("/job", [])

    def opened() -> answer_files.KeptRecords:
        return answer_files.KeptRecords(tmp_path, "0" * 40, "0" * 16, about, 10**9)

    opened().add({b"0" * 16: b"zero"})
    one, two = opened(), opened()
    assert (one.find(b"0" * 16), two.find(b"1" * 16)) == (b"zero", None)
    one.add({b"1" * 16: b"one"})
    two.add({b"2" * 16: b"two"})
    one.add({b"3" * 16: b"three"})
    found = opened()
    assert [found.find(str(n).encode() * 16) for n in range(4)] == [b"zero", b"one", b"two", b"three"]
    assert [two.find(b"2" * 16), one.find(b"3" * 16)] == [b"two", b"three"]


def test_a_code_version_follows_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(kept_answers.stepscope, "__file__", str(package / "__init__.py"))
    version = kept_answers.code_version.__wrapped__
    before = version()
    assert before == version()
    (package / "more.py").write_text("1")
    assert before != (after := version())
    os.utime(package / "more.py", ns=(1, 1))
    assert version() not in (before, after, None)
    monkeypatch.setattr(kept_answers.stepscope, "__file__", str(tmp_path / "archive.zip" / "__init__.py"))
    assert version() is None


def test_a_mistake_is_told_each_time(job: Path) -> None:
    for _ in range(2):
        with pytest.raises(StepscopeError, match="no option"):
            open_run(job).analyse("breakdown", wrong=1)
