"""An answer is a declared table: each analysis names its columns, and the engine holds it to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from every_format import FORMATS
from stepscope import Run, Unavailable, open_run
from stepscope.analysis import ANALYSES, registry
from stepscope.analysis.columns import SHARED, columns, meaning
from stepscope.analysis.registry import Analysis, analysis
from stepscope.tables.base import ORDINARY, Column, unit_of

SENTENCE = re.compile(r"[A-Z`0-9].*[.]")
TIMES = columns("rank", Column("own_ns", "int64", "Time of its own."), "steps share_ratio")
DECLARED = Analysis("times", lambda: None, "job", TIMES)


def frame(**changed: Any) -> pl.DataFrame:
    """A result as `TIMES` declares it, but for some columns."""
    values = {"rank": pl.Series([0, 1], dtype=pl.Int32), "own_ns": [3, 4], "steps": [1, 1], "share_ratio": [0.5, 0.5]}
    return pl.DataFrame({**values, **changed})


@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_every_analysis_declares_its_columns_in_sentences(name: str) -> None:
    declared = ANALYSES[name].columns

    assert declared
    assert [c.name for c in declared if not SENTENCE.fullmatch(c.doc) or "\n" in c.doc or "TODO" in c.doc] == []
    assert [c.name for c in declared if c.moment and c.unit != "ns"] == []
    assert [c.name for c in declared if c.values and c.dtype != "string"] == []


@pytest.mark.parametrize("name", sorted(name for name, one in ANALYSES.items() if one.scope == "rank"))
def test_the_answers_about_ranks_say_of_which(name: str) -> None:
    first = ANALYSES[name].columns[0]

    assert (first.name, first.dtype, first.nullable) == ("rank", "int32", False)


def test_each_shared_column_is_used_with_its_own_meaning() -> None:
    used = {column.doc for one in ANALYSES.values() for column in one.columns if column.name in SHARED}

    assert [name for name, column in SHARED.items() if column.doc not in used] == []


@pytest.mark.parametrize("form", FORMATS)
def test_answers_are_as_declared(tmp_path: Path, form: str) -> None:
    FORMATS[form](tmp_path)
    run = open_run(tmp_path, use_store=False)

    assert {name: wrong for name in ANALYSES if (wrong := _undeclared(run, name))} == {}


def _undeclared(run: Run, name: str) -> list[str]:
    """What an answer has that is not declared: types, nulls, texts."""
    try:
        answer = run.analyse(name)
    except Unavailable:
        return []
    declared = ANALYSES[name].columns
    nulls = [c.name for c in declared if not c.nullable and answer[c.name].null_count()]
    texts = [c.name for c in declared if c.values and not {*answer[c.name].drop_nulls()} <= {*c.values}]
    return nulls + texts + ([] if answer.schema == ANALYSES[name].schema else ["types"])


def test_a_column_is_declared_by_name_or_by_itself() -> None:
    own = Column("own_ns", "int64", "Time of its own.")

    found = columns("rank wait_ns", own, meaning("steps", "Steps that count."), nulls="own_ns", keep="steps own_ns")

    assert [c.name for c in found] == ["rank", "wait_ns", "own_ns", "steps"]
    assert [c.nullable for c in found] == [False, False, True, False]
    assert [c.importance for c in found] == [ORDINARY, ORDINARY, 2 * ORDINARY - 1, 2 * ORDINARY]
    assert (found[3].doc, found[3].dtype) == ("Steps that count.", SHARED["steps"].dtype)
    assert columns("wait_ns", titles={"wait_ns": "waiting"})[0].title == "waiting"


@pytest.mark.parametrize("declared", [("nonsense",), ("rank", {"keep": "steps"}), ("rank", {"nulls": "steps"})])
def test_a_name_that_no_column_has_is_refused(declared: tuple[Any, ...]) -> None:
    names = [one for one in declared if isinstance(one, str)]
    options = next((one for one in declared if isinstance(one, dict)), {})

    with pytest.raises(KeyError):
        columns(*names, **options)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("wait_ns", "ns"),
        ("sent_bytes", "bytes"),
        ("share_ratio", "0 to 1"),
        ("bandwidth_bytes_per_s", "bytes/s"),
        ("slowdown_factor", "times"),
        ("cube_flops", "FLOP"),
        ("cube_flops_per_s", "FLOP/s"),
        ("bytes", "bytes"),
        ("ratio", "0 to 1"),
        ("steps", ""),
        ("duration", ""),
    ],
)
def test_the_unit_is_the_end_of_the_name(name: str, unit: str) -> None:
    assert unit_of(name) == Column(name, "int64", "Any.").unit == unit


def test_a_result_as_declared_is_taken_as_it_is() -> None:
    result = frame()

    assert DECLARED.checked(result).equals(result)


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([0.1, 0.1 - 1.4e-17], [0.1, 0.1]),
        ([1.865, 1.8650000000000002], [1.865, 1.865]),
        ([1 / 3, -2e5 / 3], [0.333333333333, -66666.6666667]),
        ([5e-7 * (1 + 3e-16), None], [5e-7, None]),
        ([123456789012345.0, 2.0**60], [123456789012345.0, 2.0**60]),
        ([1e-300, float("inf")], [1e-300, float("inf")]),
    ],
)
def test_fractions_keep_the_digits_that_any_order_of_adding_gives(
    values: list[float | None], kept: list[float | None]
) -> None:
    assert DECLARED.checked(frame(share_ratio=values))["share_ratio"].to_list() == kept


@pytest.mark.parametrize(
    "changed",
    [
        {"own_ns": pl.Series([3, 4], dtype=pl.UInt8)},
        {"own_ns": pl.Series([None, None])},
        {"own_ns": pl.Series([3.0, 4.0])},
        {"share_ratio": pl.Series([0, 1])},
    ],
)
def test_a_type_that_differs_without_a_loss_is_made_the_declared_one(changed: dict[str, pl.Series]) -> None:
    ((name, given),) = changed.items()

    checked = DECLARED.checked(frame(**changed))

    assert checked.schema == DECLARED.schema
    assert checked[name].to_list() == given.to_list()


def test_lists_without_elements_have_the_declared_type() -> None:
    outliers = Analysis("outliers", lambda: None, "job", (Column("outlier_steps", "list[int32]", "Their numbers."),))

    checked = outliers.checked(pl.DataFrame({"outlier_steps": [[], []]}))

    assert checked.schema == {"outlier_steps": pl.List(pl.Int32)}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (frame().drop("steps"), r"times lacks \['steps'\]"),
        (frame().with_columns(more=1), r"times has \['more'\] as well"),
        (frame().select("own_ns", "rank", "steps", "share_ratio"), "times is in another order"),
        (frame(own_ns=["3", "4"]), "`own_ns` as String; declared is Int64"),
        (frame(own_ns=[0.5, 4.0]), "`own_ns` as Float64; declared is Int64"),
        (frame(own_ns=[True, False]), "`own_ns` as Boolean; declared is Int64"),
        (frame().with_columns(rank=pl.Series([0, 2**40])), "`rank` as Int64; declared is Int32"),
        ([3, 4], "times returned a list, not a frame"),
    ],
)
def test_another_result_is_a_fault_of_the_analysis(result: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        DECLARED.checked(result)


def test_the_engine_checks_what_an_analysis_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ANALYSES", dict(ANALYSES))
    run = Run.from_frames({0: {"ranks": pl.DataFrame({"host": ["a"]})}})

    @analysis("job", columns("rank steps"))
    def small(ranks: pl.LazyFrame) -> pl.LazyFrame:
        return ranks.select("rank", steps=pl.lit(3, pl.Int8))

    @analysis("job", columns("rank steps"))
    def wrong(ranks: pl.LazyFrame) -> pl.LazyFrame:
        return ranks.select("rank", step=pl.lit(3))

    assert run.analyse(small).schema == {"rank": pl.Int32, "steps": pl.Int64}
    with pytest.raises(TypeError, match=r"the result of analysis wrong lacks \['steps'\]"):
        run.analyse(wrong)
    assert run.analyse(lambda ranks: 3) == 3
