"""Decoded events of one class -> one frame of columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from math import isfinite, isnan
from typing import Any

import msgspec
import polars as pl

from stepscope.sources.trace_events.base import Arg, Problem

_MAX_WHOLE_US = 9_000_000_000_000_000  # x 1000 still fits int64
_PLAIN_US = r"^-?[0-9]{1,16}(?:\.[0-9]*)?$"
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,6})?")
_MAX_DURATION_US = 7 * 24 * 3600 * 1e6  # no range in a training trace lasts a week; damaged counters give more


def times_ns(raw: Sequence[bytes]) -> pl.Series:
    """JSON numbers (or numbers in strings) in us -> exact int64 ns; null if there is none.

    They are parsed as text, because a float64 holds only a quarter of a us at today's epoch.
    """
    text = _decoded("text", raw).str.strip_chars('" ')
    both = pl.col("text").str.split_exact(".", 1).struct
    whole = both.field("field_0").cast(pl.Int64, strict=False)
    part = both.field("field_1").fill_null("").str.slice(0, 3).str.pad_end(3, "0").cast(pl.Int64, strict=False)
    signed = pl.when(pl.col("text").str.starts_with("-")).then(-part).otherwise(part)
    plain = pl.col("text").str.contains(_PLAIN_US) & whole.is_between(-_MAX_WHOLE_US, _MAX_WHOLE_US)
    ns: pl.Series = text.to_frame().select(start_ns=pl.when(plain).then(whole * 1000 + signed)).to_series()
    if not ns.null_count():
        return ns
    odd = (ns.is_null() & (text != "") & (text != "null")).arg_true()  # exponents and the like
    if odd.len():
        ns = ns.scatter(odd, [_exact_ns(text[i]) for i in odd.to_list()])
    return ns


def _exact_ns(text: str) -> int | None:
    number = Decimal(text) if _NUMBER.fullmatch(text) else None
    if number is None or number.adjusted() > 16:  # also keeps 1e999999 from becoming an integer
        return None
    ns = int(number * 1000)
    return ns if abs(ns) <= _MAX_WHOLE_US * 1000 else None


def texts(name: str, values: list[Any]) -> pl.Series:
    """Names and labels as strings; numbers become their decimal text."""
    if set(map(type, values)) - {type(None)} == {int}:
        with suppress(TypeError, OverflowError):  # a number beyond 64 bits
            numbers: pl.Series = pl.Series(name, values, dtype=pl.Int64).cast(pl.String)
            return numbers
    return _column(name, values, {str}, pl.String, _text)


def integers(name: str, values: list[Any]) -> pl.Series:
    """Arguments that are whole numbers, also as text; null for anything else."""
    return _column(name, values, {int}, pl.Int64, _integer)


def small_integers(name: str, values: list[Any]) -> pl.Series:
    """Like `integers`, null also for what does not fit 32 bits."""
    small: pl.Series = integers(name, values).cast(pl.Int32, strict=False)
    return small


def floats(name: str, values: list[Any]) -> pl.Series:
    """Arguments that are numbers, also as text; null for anything else."""
    return _column(name, values, {int, float}, pl.Float64, _number)


def _column(
    name: str, values: list[Any], fitting: set[type], dtype: type[pl.DataType], convert: Callable[[Any], object]
) -> pl.Series:
    """Values as a column: at once if all are null or of fitting types, else one by one."""
    if set(map(type, values)) <= {*fitting, type(None)}:
        with suppress(TypeError, OverflowError):  # a number that the column cannot hold
            return pl.Series(name, values, dtype=dtype)
    return pl.Series(name, [convert(value) for value in values], dtype=dtype)


def json_texts(name: str, values: list[Any]) -> pl.Series:
    """Arguments kept as their JSON text; a JSON string gives its content, absent and null give null."""
    known = pl.when(~pl.col(name).is_in(["", "null"])).then(pl.col(name)).alias(name)
    kept: pl.Series = _decoded(name, list(map(bytes, values))).to_frame().select(known).to_series()
    quoted = kept.str.starts_with('"').arg_true()
    if quoted.len():
        kept = kept.scatter(quoted, [_unquoted(kept[i]) for i in quoted.to_list()])
    return kept


def _decoded(name: str, raw: Sequence[bytes]) -> pl.Series:
    """JSON texts as strings; bytes that are not UTF-8 become replacement characters."""
    try:
        text: pl.Series = pl.Series(name, raw, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.PolarsError:
        text = pl.Series(name, [value.decode("utf-8", "replace") for value in raw], dtype=pl.String)
    return text


def arguments(made: Mapping[str, pl.Series], wanted: Iterable[Arg]) -> list[pl.Series]:
    """Columns of arguments, without those of rare ones that have no value; rare ones come last."""
    rare = {arg.column for arg in wanted if arg.rare}
    found = [column for name, column in made.items() if name in rare and column.null_count() < len(column)]
    return [*(column for name, column in made.items() if name not in rare), *found]


def usable(frame: pl.DataFrame, phases: frozenset[str], problems: dict[str, Problem]) -> pl.DataFrame:
    """Leave out complete events that cannot be used, and give the others whole nanoseconds.

    A frame that has these already (`duration_ns` in place of `duration_us`) is returned as it is.
    """
    if "duration_us" not in frame.columns:
        return frame
    if phases == {"X"}:
        frame = _complete_only(frame, problems)
    duration_ns = (frame["duration_us"] * 1000).round().cast(pl.Int64, strict=False).alias("duration_ns")
    return pl.DataFrame([duration_ns if column.name == "duration_us" else column for column in frame.get_columns()])


def _complete_only(frame: pl.DataFrame, problems: dict[str, Problem]) -> pl.DataFrame:
    """Drop complete events (phase X) without a usable start or duration, and count them by reason."""
    if _is_clean(frame["start_ns"], frame["duration_us"]):
        return frame
    us = pl.col("duration_us")
    reasons = {
        "no readable time": pl.col("start_ns").is_null(),
        "unfinished (no duration)": us.is_null() | (us == -1),
        "a negative duration": (us < 0) & (us != -1),
        "longer than a week": us.is_nan() | (us > _MAX_DURATION_US),
    }
    tests = {problem: test.fill_null(False) for problem, test in reasons.items()}
    counts = frame.select(**{problem: test.sum() for problem, test in tests.items()}).row(0)
    if not any(counts):
        return frame
    for (problem, test), count in zip(tests.items(), counts, strict=True):
        if count:
            name = frame.filter(test)["name"][0]
            problems.setdefault(problem, Problem(place=f"first: {name!r}")).count += count
    return frame.filter(~pl.any_horizontal(*tests.values()))


def _is_clean(start_ns: pl.Series, duration_us: pl.Series) -> bool:
    """Whether every event has a start and a duration that can be true, by a few looks at whole columns."""
    if start_ns.null_count() or duration_us.null_count() or duration_us.is_empty():
        return False
    shortest, longest, total = duration_us.min(), duration_us.max(), duration_us.sum()
    assert isinstance(shortest, float) and isinstance(longest, float)
    # minimum and maximum ignore NaN, a sum does not
    return shortest >= 0 and longest <= _MAX_DURATION_US and not isnan(total)


def _number(value: Any) -> float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if isfinite(value) else None
    except OverflowError:
        return None


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        return None
    return value


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return str(value)
    return msgspec.json.encode(value).decode()


def _unquoted(text: str) -> str:
    try:
        return str(msgspec.json.decode(text))
    except (msgspec.DecodeError, ValueError):
        return text
