"""Parallel dimensions by the names that frameworks give their groups."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import polars as pl
import pytest

from stepscope.analysis.methods.layout_conflicts import Conflict
from stepscope.analysis.methods.named_dimensions import named_dimensions
from stepscope.analysis.methods.parallelism import parallelism_of
from stepscope.tables import TABLES


def grid(axes: Mapping[str, int], names: Mapping[str, str]) -> tuple[pl.DataFrame, int]:
    """The groups of a job: its axes, the one whose neighbours are far apart first, and names of groups with the axes
    that they span."""
    places = [dict(zip(axes, at, strict=True)) for at in product(*(range(size) for size in axes.values()))]
    rows = []
    for name, spanned in names.items():
        of_place: dict[tuple[int, ...], list[int]] = {}
        for rank, at in enumerate(places):
            of_place.setdefault(tuple(at[axis] for axis in axes if axis not in spanned.split()), []).append(rank)
        rows += [(name, members) for members in of_place.values()]
    return pl.DataFrame(rows, schema={"name": pl.String, "members": pl.List(pl.Int32)}, orient="row"), len(places)


def sizes(axes: Mapping[str, int], names: Mapping[str, str]) -> dict[str, int]:
    groups, world = grid(axes, names)
    conflicts: list[Conflict] = []
    found = named_dimensions(groups, world, conflicts)
    assert not conflicts
    assert all(sorted(rank for one in lists for rank in one) == list(range(world)) for lists in found.values())
    return {name: len(lists[0]) for name, lists in found.items()}


HSDP = {"pp": 2, "r": 2, "s": 2, "cp": 2, "tp": 2}
TITAN = {"mesh_pp": "pp", "mesh_dp_replicate": "r", "mesh_dp_shard": "s", "mesh_cp": "cp", "mesh_tp": "tp"}
FLAT = {"mesh_dp": "r s", "mesh_dp_shard_cp": "s cp", "mesh_dp_cp": "r s cp"}
ALL = {"tp": 2, "cp": 2, "dp": 4, "pp": 2}


@pytest.mark.parametrize(
    "names",
    [
        TITAN,
        {**TITAN, **FLAT},
        {name: axes for name, axes in {**TITAN, **FLAT}.items() if name not in ("mesh_dp", "mesh_dp_shard")},
        {"pp": "pp", "dp_replicate": "r", "fsdp": "s cp", "cp": "cp", "tp": "tp", "loss": "r s cp"},
        {"pp": "pp", "batch": "r s", "fsdp": "s cp", "cp": "cp", "tp": "tp"},
        {"pp": "pp", "hsdp_replicate": "r", "hsdp_shard": "s", "cp": "cp", "tp": "tp"},
        {"pp": "pp", "ddp": "r", "fsdp": "s", "ulysses": "cp", "tp": "tp"},
        {"pp": "pp", "dp": "r", "fsdp": "s", "cp": "cp", "tp": "tp"},
    ],
)
def test_parts_of_data_parallelism_are_put_together(names: Mapping[str, str]) -> None:
    assert sizes(HSDP, names) == ALL


def test_without_context_parallelism_what_spans_it_is_data_parallelism() -> None:
    axes = {"s": 4, "tp": 2}

    assert sizes(axes, {"mesh_dp_shard_cp": "s", "mesh_tp": "tp"}) == {"tp": 2, "dp": 4}
    assert sizes(axes, {"DATA_PARALLEL_GROUP_WITH_CP": "s", "DATA_PARALLEL_GROUP": "s"}) == {"dp": 4}
    assert sizes(axes, {"fsdp": "s"}) == {"dp": 4}


def test_groups_of_experts_are_no_factors() -> None:
    """Experts divide the ranks of data and tensor parallelism anew, by torchtitan and by Megatron."""
    titan = {"mesh_dp_shard_mod_ep": "a", "mesh_dp_shard_in_ep": "b", "mesh_dp": "a b", "mesh_tp": "tp"}
    dense = {"TENSOR_MODEL_PARALLEL_GROUP": "tp", "DATA_PARALLEL_GROUP": "a b"}
    experts = {"EXPERT_MODEL_PARALLEL_GROUP": "b tp", "EXPERT_DATA_PARALLEL_GROUP": "a"}
    more = {"EXPERT_TENSOR_PARALLEL_GROUP": "tp", "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP": "b tp", "ep_dp": "a"}
    axes = {"a": 2, "b": 2, "tp": 2}

    assert sizes(axes, {**titan, "mesh_ep": "b tp", "mesh_efsdp": "a"}) == {"tp": 2, "ep": 4, "dp": 4}
    assert sizes(axes, {**dense, **experts, **more, "etp": "tp", "edp": "a"}) == {"tp": 2, "ep": 4, "dp": 4}


def test_all_groups_of_megatron_give_its_sizes() -> None:
    axes = {"pp": 2, "d": 2, "e": 2, "cp": 2, "tp": 2}
    dense = {"TENSOR_MODEL": "tp", "PIPELINE_MODEL": "pp", "CONTEXT": "cp", "DATA": "d e", "MODEL": "pp tp"}
    joined = {"TENSOR_AND_DATA": "d e tp", "TENSOR_AND_CONTEXT": "cp tp", "EXPERT_TENSOR_AND_MODEL": "e cp tp"}
    experts = {"EXPERT_MODEL": "e cp", "EXPERT_TENSOR": "tp", "EXPERT_DATA": "d"}
    names = {f"{name}_PARALLEL_GROUP": spanned for name, spanned in {**dense, **joined, **experts}.items()}
    more = {"DATA_PARALLEL_GROUP_WITH_CP": "d e cp", "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP": "e cp"}

    found = sizes(
        axes, {**names, **more, "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP": "d e cp tp", "EMBEDDING_GROUP": "pp"}
    )

    assert found == {"tp": 2, "cp": 2, "ep": 4, "dp": 4, "pp": 2}


def test_sequence_parallelism_among_the_ranks_of_tensor_parallelism_is_none_of_its_own() -> None:
    assert sizes({"dp": 2, "tp": 2}, {"tp": "tp", "sp": "tp", "dp": "dp"}) == {"tp": 2, "dp": 2}


def test_names_whose_sizes_do_not_fit_are_not_used() -> None:
    names, _ = grid({"dp": 2, "tp": 2}, {"tp": "tp", "dp": "dp", "ep": "dp"})
    conflicts: list[Conflict] = []

    assert list(named_dimensions(names, 6, conflicts)) == ["ep"]
    assert conflicts == [Conflict("world", None, "group names", 4, 6)]


def test_dimensions_that_share_ranks_are_not_used() -> None:
    names, world = grid({"a": 2, "b": 2, "c": 2}, {"tp": "b c", "cp": "c", "dp": "a"})
    conflicts: list[Conflict] = []

    assert named_dimensions(names, world, conflicts) == {}
    assert conflicts == [Conflict("shared", "cp", "group names", ranks=(0, 1))]


@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("mesh_dp_shard_cp", "data"),
        ("mesh_hsdp_replicate", "data"),
        ("mesh_efsdp", "data"),
        ("loss_mesh", "data"),
        ("EXPERT_DATA_PARALLEL_GROUP", "data"),
        ("EXPERT_TENSOR_PARALLEL_GROUP", "tensor"),
        ("etp", "tensor"),
        ("TENSOR_AND_EXPERT_PARALLEL_GROUP", "expert"),
        ("EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP", "expert"),
        ("TENSOR_AND_DATA_PARALLEL_GROUP", "other"),
        ("mesh_world", "other"),
    ],
)
def test_what_groups_are_for(name: str, purpose: str) -> None:
    groups = pl.DataFrame({"name": [name], "members": [[0, 1]]})

    assert parallelism_of(groups, TABLES["ranks"].frame(rank=[0, 1, 2, 3], world_size=[4] * 4), None) == [purpose]
