"""Groups in tables for people: by name, and by ranks or key if several have that name."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.pages import job as job_page
from stepscope.pages.job import groups
from stepscope.run import Run
from stepscope.tables import GROUPS
from tests.analysis.jobs import job


def shown(members: dict[str, list[int]], names: list[str | None]) -> list[str]:
    listed = GROUPS.conform(pl.DataFrame({"group": [*members], "name": "pp", "members": [*members.values()]}))
    rank = job(ranks=1, steps=1).ranks[0]
    frames = {name: rank.table(name).drop("rank").collect() for name in rank.rows}
    run = Run.from_frames({0: {**frames, "groups": listed}})
    found = pl.DataFrame({"group": [*members], "group_name": names}, schema_overrides={"group_name": pl.String})
    return groups(run, found).rows["group_name"].to_list()


def test_groups_of_one_name_are_told_apart() -> None:
    two = {"a": [0, 1], "b": [2, 3]}

    assert shown(two, ["tp", "dp"]) == ["tp", "dp"]
    assert shown(two, ["dp", "dp"]) == ["dp 0-1", "dp 2-3"]
    assert shown({"up": [0, 1], "down": [0, 1]}, ["pp", "pp"]) == ["pp up", "pp down"]
    assert shown(two, [None, None]) == ["a", "b"]


def test_the_names_of_calls_stay() -> None:
    found = pl.DataFrame({"name": ["allReduce_0"], "group": ["a"], "group_name": ["dp"]})

    rows = groups(job(ranks=1, steps=1), found).rows

    assert rows.to_dicts() == [{"name": "allReduce_0", "group_name": "dp"}]


def test_members_are_read_of_groups_of_one_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    read = job_page._members
    monkeypatch.setattr(job_page, "_members", lambda run, keys: asked.append([*keys]) or read(run, keys))
    members = {"a": [0, 1], "b": [2, 3], "c": [0, 2]}

    assert shown(members, ["dp", "dp", "tp"]) == ["dp 0-1", "dp 2-3", "tp"]
    assert shown(members, ["x", "y", "z"]) == ["x", "y", "z"]
    assert asked == [["a", "b"], []]
