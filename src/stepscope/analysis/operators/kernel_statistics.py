"""How long kernels and framework operators take, by type, and by name and shapes: on each rank, and over all ranks.

Communication is left out: its kernels wait for other ranks, and some sources give each call a name of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.distributions import (
    OVER_RANKS,
    STATISTICS,
    distributions,
    distributions_over_ranks,
)
from stepscope.analysis.methods.statistics import share, share_of
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

_TYPE = Column("type", "string", "Operator type; null if not recorded.", importance=64)
_NAME = meaning("name", "Name of the kernel or memory operation.")
_SHAPES = meaning("input_shapes", "Shapes of the inputs, as recorded; null if not recorded.")
_OF_RANK = meaning("share_ratio", "Share of the rank's device work without communication.")
_OF_ALL = meaning("share_ratio", "Share of the device work of all ranks without communication.")

BY_TYPE = columns(
    "rank kind",
    _TYPE,
    "core",
    *STATISTICS,
    _OF_RANK,
    nulls="type core std_ns",
    keep="type total_ns share_ratio count mean_ns max_ns",
)
BY_SHAPE = columns(
    "rank kind",
    _NAME,
    "type core",
    _SHAPES,
    *STATISTICS,
    _OF_RANK,
    nulls="type core input_shapes std_ns",
    keep="name total_ns input_shapes share_ratio count mean_ns max_ns",
)
TYPES = columns(
    "kind",
    _TYPE,
    "core",
    *STATISTICS,
    *OVER_RANKS,
    _OF_ALL,
    nulls="type core std_ns",
    keep="type total_ns share_ratio count mean_ns max_ns max_rank",
)
SHAPES = columns(
    "kind",
    _NAME,
    "type core",
    _SHAPES,
    *STATISTICS,
    *OVER_RANKS,
    _OF_ALL,
    nulls="type core input_shapes std_ns",
    keep="name total_ns input_shapes share_ratio count mean_ns max_ns max_rank",
)
OPERATORS_OVER_RANKS = columns(
    meaning("name", "Name of the operator."),
    *STATISTICS,
    *OVER_RANKS,
    meaning("share_ratio", "Share of the time of all operators of all ranks, those inside others included."),
    nulls="std_ns",
    keep="name total_ns share_ratio count mean_ns max_ns max_rank",
)

OTHERS = pl.col("kind") != "communication"

_KIND = ["kind", "type", "core"]
_SHAPE = ["kind", "name", "type", "core", "input_shapes"]

NO_TYPES = "kernels were recorded by name, without operator types"


@analysis("rank", BY_TYPE, together=True)
def kernel_type_totals(kernels: pl.LazyFrame) -> pl.DataFrame:
    """Sum up kernels and memory operations of each rank by operator type and core, longest total first.

    Raises:
        Unavailable: If no kernel of a rank has a type.
    """
    others = kernels.filter(OTHERS)
    if untyped := set(ranks_of(kernels)) - set(ranks_of(others.filter(pl.col("type").is_not_null()))):
        raise Unavailable(NO_TYPES, of=sorted(untyped))
    return _by_rank(others, _KIND, names(BY_TYPE))


@analysis("rank", BY_SHAPE, together=True)
def kernel_shape_totals(kernels: pl.LazyFrame) -> pl.DataFrame:
    """Sum up kernels and memory operations of each rank by name, type, core and input shapes, longest first."""
    return _by_rank(kernels.filter(OTHERS), _SHAPE, names(BY_SHAPE))


@analysis("job", TYPES)
def kernel_type_statistics(kernels: pl.LazyFrame) -> pl.DataFrame:
    """Sum up kernels and memory operations of all ranks by operator type and core, longest total first.

    Raises:
        Unavailable: If no kernel has a type.
    """
    others = kernels.filter(OTHERS)
    if not ranks_of(others.filter(pl.col("type").is_not_null())):
        raise Unavailable(NO_TYPES)
    return _over_ranks(others, _KIND, names(TYPES))


@analysis("job", SHAPES)
def kernel_statistics(kernels: pl.LazyFrame) -> pl.DataFrame:
    """Sum up kernels and memory operations of all ranks by name, type, core and input shapes, longest first."""
    return _over_ranks(kernels.filter(OTHERS), _SHAPE, names(SHAPES))


@analysis("job", OPERATORS_OVER_RANKS)
def operator_statistics(operators: pl.LazyFrame) -> pl.DataFrame:
    """Sum up framework operators of all ranks by name, longest total first."""
    return _over_ranks(operators, ["name"], names(OPERATORS_OVER_RANKS))


def _by_rank(rows: pl.LazyFrame, keys: Sequence[str], wanted: Sequence[str]) -> pl.DataFrame:
    found = distributions(rows, ["rank", *keys]).with_columns(share())
    return found.select(wanted).sort("rank", -pl.col("total_ns"), *keys, nulls_last=True)


def _over_ranks(rows: pl.LazyFrame, keys: Sequence[str], wanted: Sequence[str]) -> pl.DataFrame:
    found = distributions_over_ranks(rows, keys)
    shares = found.with_columns(all=pl.lit(0)).with_columns(share_ratio=share_of(pl.col("total_ns"), "all"))
    return shares.select(wanted).sort(-pl.col("total_ns"), *keys, nulls_last=True)
