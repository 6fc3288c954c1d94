"""In what two sides differ besides their times: the work, the conditions, and which ranks and steps are compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.compare.registry import Sides, comparison
from stepscope.selection import describe_numbers
from stepscope.tables.base import Column, schema_of

WORK, CONDITIONS, RECORDING = "work", "conditions", "recording"
MATTERS = (WORK, CONDITIONS, RECORDING)
"""The work itself may differ, so times are not comparable one to one; what may make the same work take another time;
how it was recorded, which may cost time itself."""

COLUMNS = columns(
    Column("setting", "string", "What differs."),
    Column("base", "string", "On the base; null if not recorded."),
    Column("new", "string", "On the new side; null if not recorded."),
    Column("matters", "string", "What it may change.", values=MATTERS),
    nulls="base new",
)

FACTS: Mapping[str, tuple[str, str]] = {
    "framework": ("framework", WORK),
    "mode": ("execution mode", WORK),
    "world_size": ("ranks of the job", WORK),
    "parallelism": ("parallelism", WORK),
    "device_kind": ("kind of device", WORK),
    "device_name": ("device", CONDITIONS),
    "ai_cores": ("AI cores", CONDITIONS),
    "nominal_clock_mhz": ("nominal clock (MHz)", CONDITIONS),
    "framework_version": ("framework version", CONDITIONS),
    "backend": ("communication backend", CONDITIONS),
    "host": ("hosts", CONDITIONS),
    "environment": ("environment", CONDITIONS),
    "format": ("format", RECORDING),
    "options": ("profiler option", RECORDING),
}
"""Columns of `ranks` that are compared: what they are called, and what they may change."""

OBJECTS = ("parallelism", "environment", "options")
"""Columns whose texts are JSON objects: each of their keys is a setting."""

_OWN = re.compile(r"(?i)(^|[._])(rank|device|master_addr|master_port|hostname|pid)(_?id)?$")
"""Keys of what each rank has of its own, whatever the job."""

LISTED = 4
"""Different values of the ranks of one side that are listed."""


@comparison(COLUMNS)
def setting_differences(side_facts: Sides) -> pl.DataFrame:
    """List what differs between the sides apart from times, what matters most first: one row each."""
    base, new = (dict(_facts(facts)) for facts in side_facts)
    rows = [
        (setting, base.get((setting, matters)), new.get((setting, matters)), matters)
        for setting, matters in dict.fromkeys([*base, *new])
        if base.get((setting, matters)) != new.get((setting, matters))
    ]
    order = {matters: place for place, matters in enumerate(MATTERS)}
    found = pl.DataFrame(rows, schema=schema_of(COLUMNS), orient="row")
    return found.sort(pl.col("matters").replace_strict(order, return_dtype=pl.Int64), "setting", maintain_order=True)


def _facts(facts: pl.DataFrame) -> Iterator[tuple[tuple[str, str], str]]:
    """Each setting of a side, with all the values that its ranks have."""
    for column, (name, matters) in FACTS.items():
        values = facts[column].drop_nulls().to_list() if column in facts.columns else []
        if column not in OBJECTS:
            if values:
                yield (name, matters), _listed(map(_text, values))
            continue
        of_key: dict[str, list[str]] = {}
        for value in values:
            for key, one in _members(value):
                if _OWN.search(key):
                    continue
                of_key.setdefault(key, []).append(one)
        for key in sorted(of_key):
            yield (f"{name} {key}", matters), _listed(of_key[key])


def _members(text: str) -> Iterator[tuple[str, str]]:
    """The members of a JSON object, objects in it by their own keys."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        held = text
    if not isinstance(held, dict):
        yield "", _text(held)
        return
    for key, value in held.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", _text(one)) for name, one in value.items())
        else:
            yield str(key), _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _listed(values: Any) -> str:
    different = sorted(set(values))
    more = len(different) - LISTED
    return ", ".join(different[:LISTED]) + (f", and {more} more" if more > 0 else "")


SIDES = columns(
    Column("side", "string", "Base or new side.", values=("base", "new")),
    Column("ranks", "string", "Its ranks, e.g. `0-7`."),
    meaning("steps", "Number of steps that count."),
    Column("counted_steps", "string", "These steps, e.g. `10-14`.", title="counted"),
    Column("left_out_steps", "string", "First steps, far longer, that do not count; null if none.", title="left out"),
    Column("outlier_steps", "string", "Counted steps far longer than others; null if none.", title="stand out"),
    nulls="left_out_steps outlier_steps",
)


@comparison(SIDES)
def compared_sides(side_steps: Sides) -> pl.DataFrame:
    """Say which ranks and steps of each side are compared: one row a side."""
    rows = []
    for side, steps in zip(("base", "new"), side_steps, strict=True):
        counted = steps.filter(pl.col("left_out").is_null())
        apart = [steps.filter(pl.col("left_out").is_not_null()), steps.filter("outlier")]
        rows.append(
            (
                *(side, _numbers(steps, "rank"), counted["step"].n_unique(), _numbers(counted, "step")),
                *(_numbers(rows_apart, "step") or None for rows_apart in apart),
            )
        )
    return pl.DataFrame(rows, schema=schema_of(SIDES), orient="row")


def _numbers(rows: pl.DataFrame, column: str) -> str:
    return describe_numbers(rows[column].unique().sort().to_list())
