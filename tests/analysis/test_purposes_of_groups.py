"""What process groups are for."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.methods.parallelism import parallelism_of
from stepscope.tables import TABLES


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["default_pg", "EXPERT_MODEL_PARALLEL_GROUP"], ["other", "expert"]),
        (["default_pg", "mesh_dp"], ["other", "data"]),
        ([None, "dp_cp"], ["other", "data"]),
    ],
)
def test_a_group_without_a_name_is_not_what_a_named_one_of_the_same_ranks_is_for(
    names: list[str | None], expected: list[str]
) -> None:
    groups = pl.DataFrame({"name": names, "members": [[0, 1, 2, 3]] * 2})
    ranks = TABLES["ranks"].frame(rank=[0, 1, 2, 3], world_size=[4] * 4)

    assert parallelism_of(groups, ranks, None) == expected
