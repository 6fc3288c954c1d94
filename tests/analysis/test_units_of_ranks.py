"""Slow ranks are explained by the smallest unit that they make up."""

from __future__ import annotations

import json

import polars as pl
import pytest

from stepscope.analysis.methods import memberships as units_of_ranks
from stepscope.analysis.methods.memberships import group_kind, memberships
from stepscope.analysis.methods.patterns import patterns
from stepscope.analysis.methods.references import references
from stepscope.analysis.methods.units import UNITS, units
from tests.analysis.own_times import cells


def job(hosts: int, per_host: int, *, tp: int = 1, pp: int = 1, device_kind: str = "cuda") -> pl.DataFrame:
    """Memberships of a job whose parallel sizes were recorded."""
    world = hosts * per_host
    sizes = {"tensor_model_parallel_size": tp, "pipeline_model_parallel_size": pp}
    return memberships(
        pl.DataFrame(
            {
                "rank": range(world),
                "host": [f"h{r // per_host}" for r in range(world)],
                "device": [r % per_host for r in range(world)],
                "device_kind": [device_kind] * world,
                "world_size": [world] * world,
                "parallelism": [json.dumps(sizes)] * world,
            },
            schema_overrides={"rank": pl.Int32},
        )
    )


def accused(ranks, known: pl.DataFrame, world: int, kind: str = "computing", **columns) -> list[tuple[str, str]]:
    found = units(suspects(ranks, kind, **columns), known, range(world))
    return list(found.select("unit_kind", "unit").iter_rows())


def suspects(ranks, kind: str = "computing", **columns) -> pl.DataFrame:
    facts = {"rank": list(ranks), "kind": kind, "pattern": "steady", **columns}
    return pl.DataFrame(facts, schema_overrides={"rank": pl.Int32})


@pytest.mark.parametrize(
    ("ranks", "shape", "unit"),
    [
        (range(4, 8), {"hosts": 2, "per_host": 8, "tp": 4}, ("tensor-parallel group", "4-7")),
        (range(8, 16), {"hosts": 4, "per_host": 8, "tp": 4}, ("host", "h1")),
        (range(8, 16), {"hosts": 1, "per_host": 16, "tp": 2, "pp": 2}, ("pipeline stage", "1")),
        ([0, 1, 3], {"hosts": 1, "per_host": 4, "tp": 2}, ("ranks", "0, 1, 3")),
        ([0, 1, 3], {"hosts": 1, "per_host": 4}, ("ranks", "0, 1, 3")),
        ([5], {"hosts": 8, "per_host": 1}, ("rank", "5")),
        ([1, 5], {"hosts": 2, "per_host": 4}, ("ranks", "1, 5")),
        ([2, 3], {"hosts": 1, "per_host": 8, "device_kind": "npu"}, ("device pair", "h0: 2, 3")),
        ([8, 9, 10, 11, 12, 14, 15], {"hosts": 4, "per_host": 8, "tp": 8}, ("host", "h1")),
        ([0, 1, 4, 5], {"hosts": 1, "per_host": 8, "tp": 2, "pp": 2}, ("replica", "0")),
    ],
)
def test_smallest_unit(ranks, shape, unit) -> None:
    world = shape["hosts"] * shape["per_host"]

    assert accused(ranks, job(**shape), world)[0] == unit


def test_units_with_the_same_members_are_stated_and_the_place_is_preferred_for_own_work() -> None:
    known = job(2, 4, tp=4)

    computing = units(suspects(range(4)), known, range(8)).row(0, named=True)
    sending = units(suspects(range(4), "communication"), known, range(8)).row(0, named=True)

    assert (computing["unit_kind"], computing["also"]) == ("host", ["tensor-parallel group 0-3"])
    assert (sending["unit_kind"], sending["also"]) == ("tensor-parallel group", ["host h0"])


def test_ranks_that_differ_in_kind_pattern_or_factor_are_apart() -> None:
    known = job(2, 4)

    assert accused(range(4), known, 8, factor=[1.3, 1.29, 1.33, 1.31]) == [("host", "h0")]
    assert accused(range(4), known, 8, pattern=["steady", "steady", "since", "since"]) == [
        ("ranks", "2, 3"),
        ("ranks", "0, 1"),
    ]
    assert accused(range(5), known, 8, factor=[1.3, 1.3, 1.3, 1.3, 2.0]) == [("host", "h0"), ("rank", "4")]
    assert accused(range(4), known, 8, since_step=[5, 6, 5, 17]) == [("ranks", "0-2"), ("rank", "3")]


def test_two_slow_hosts_and_a_slow_rank() -> None:
    assert accused([*range(8), *range(16, 24), 30], job(4, 8, tp=4), 32) == [
        ("host", "h0"),
        ("host", "h2"),
        ("rank", "30"),
    ]


def test_a_member_that_seems_slow_in_another_way_belongs_to_its_unit() -> None:
    known, pattern = job(2, 8), ["since"] * 7 + ["sometimes"]

    found = units(
        suspects(range(8), pattern=pattern, factor=[1.3] * 7 + [1.25], since_step=[7] * 7 + [None]), known, range(16)
    )

    assert found.select("unit", "pattern", "since_step", "ranks").rows() == [("h0", "since", 7, list(range(8)))]
    assert accused(range(8), known, 16, pattern=["steady"] * 7 + ["once"], factor=1.3)[1] == ("rank", "7")
    assert accused(range(8), known, 16, pattern=["steady"] * 7 + ["since"], factor=[1.3] * 7 + [3.0])[1] == (
        "rank",
        "7",
    )


@pytest.mark.parametrize(
    ("world", "slow", "factor", "shape", "unit"),
    [
        (16, range(4, 8), 1.3, {"hosts": 2, "per_host": 8, "tp": 4}, ("tensor-parallel group", "4-7")),
        (32, range(8, 16), 1.2, {"hosts": 4, "per_host": 8, "tp": 4}, ("host", "h1")),
        (16, range(8, 16), 1.3, {"hosts": 1, "per_host": 16, "tp": 2, "pp": 2}, ("pipeline stage", "1")),
        (4, (0, 1, 3), 1.3, {"hosts": 1, "per_host": 4, "tp": 2}, ("ranks", "0, 1, 3")),
    ],
)
def test_slow_units_are_found_in_noisy_times(world, slow, factor, shape, unit) -> None:
    own = cells("computing", world, 10, {(rank, step): factor for rank in slow for step in range(1, 11)}, stalls=0.05)

    late = patterns(references(own), 60e6).with_columns(factor=1 + pl.col("excess_ns") / pl.col("typical_ns"))

    assert units(late, job(**shape), range(world)).select("unit_kind", "unit").rows() == [unit]


def test_the_whole_job_is_one_row_and_no_suspects_are_none() -> None:
    found = units(suspects([None], pattern="rotating"), job(1, 4), range(4))

    assert found.select("unit_kind", "unit", "pattern").row(0) == ("job", None, "rotating")
    assert units(suspects([]), job(1, 4), range(4)).schema == UNITS


def test_recorded_groups_are_known_by_their_names() -> None:
    groups = pl.DataFrame(
        {
            "name": ["tp", "tp", "TENSOR_MODEL_PARALLEL_GROUP", "mesh_pp", "mesh_pp", "default_pg", None],
            "members": [[0, 1], [2, 3], [0, 1], [0, 2], [1, 3], [0, 1, 2, 3], [0, 3]],
        }
    )

    found = memberships(pl.DataFrame({"rank": [0, 1, 2, 3], "host": "a"}), groups)

    assert found.group_by("unit_kind", "unit", maintain_order=True).agg("rank").rows() == [
        ("group", "0, 3", [0, 3]),
        ("group", "0-3", [0, 1, 2, 3]),
        ("host", "a", [0, 1, 2, 3]),
        ("pipeline stage", "0", [0, 1]),
        ("pipeline stage", "1", [2, 3]),
        ("pipeline-parallel group", "0, 2", [0, 2]),
        ("pipeline-parallel group", "1, 3", [1, 3]),
        ("tensor-parallel group", "0, 1", [0, 1]),
        ("tensor-parallel group", "2, 3", [2, 3]),
    ]


def test_a_group_is_written_out_once_and_not_for_each_of_its_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    monkeypatch.setattr(units_of_ranks, "ranks_text", lambda ranks: written.append(ranks) or str(len(ranks)))
    ranks = pl.DataFrame({"rank": range(64), "world_size": [64] * 64, "parallelism": [json.dumps({})] * 64})

    memberships(ranks, pl.DataFrame({"name": ["default_pg"], "members": [list(range(64))]}))

    assert 1 <= len(written) <= 3


def test_stages_are_known_from_pairs_of_neighbours() -> None:
    pairs = [(first, first + 2) for first in range(4)]
    groups = pl.DataFrame({"name": ["pp"] * 8, "members": [*map(list, pairs), *([b, a] for a, b in pairs)]})

    found = memberships(pl.DataFrame({"rank": list(range(6))}), groups).filter(unit_kind="pipeline stage")

    assert found.select("unit", "rank").rows() == [("0", 0), ("0", 1), ("1", 2), ("1", 3), ("2", 4), ("2", 5)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mp", "tensor-parallel group"),
        ("tp-0-1", "tensor-parallel group"),
        ("DATA_PARALLEL_GROUP", "data-parallel group"),
        ("pp_new_stream", "pipeline-parallel group"),
        ("exp", "expert-parallel group"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "group"),
        ("MODEL_PARALLEL_GROUP", "group"),
        ("dp_and_group", "data-parallel group"),
        ("dp_cp", "group"),
        (None, "group"),
    ],
)
def test_names_of_groups(name, kind) -> None:
    assert group_kind(name) == kind


@pytest.mark.parametrize("parallelism", ["{}", "not JSON", "[]", '{"tp": 3}', '{"tp": true}', None])
def test_sizes_that_do_not_fit_the_job_are_left_out(parallelism) -> None:
    ranks = pl.DataFrame({"rank": [0, 1, 2, 3], "world_size": 4, "parallelism": parallelism})

    assert memberships(ranks).is_empty()
