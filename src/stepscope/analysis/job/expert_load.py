"""How evenly the work of experts is spread over the ranks of each expert-parallel group: by tokens, else by what ranks
receive for their experts, else by time."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.names import named
from stepscope.analysis.methods.parallel_layout import named_kinds
from stepscope.analysis.methods.parallel_sizes import CONTEXT, EXPERT, PIPELINE, TENSOR
from stepscope.analysis.methods.parallelism import KINDS
from stepscope.analysis.methods.split_calls import listed, split_calls
from stepscope.analysis.rank_lists import as_rank_list
from stepscope.analysis.registry import analysis, ranks_of, without_rows
from stepscope.errors import Unavailable
from stepscope.tables import COLLECTIVE_SPLITS, KERNELS, OPERATORS
from stepscope.tables.base import Column

EXPERTS = (
    r"(?i)grouped_?_?mat_?mul|grouped_?_?gemm|grouped_?_?mm|group_gemm|GroupProblemVisitor|moe_?gemm|fused_?moe|"
    r"moe_?(align|expert|mlp|ffn)|expert_?(gemm|mlp|ffn|matmul)"
)
"""Names of kernels and operators that compute experts: grouped matrix products of CANN, CUTLASS, Triton and PyTorch."""

BASES = ("tokens", "received", "time")

COLUMNS = columns(
    "group",
    meaning("group_name", "Name of the group; null if it has none or none is known."),
    Column("ranks", "string", "Its ranks that compute experts, e.g. `0, 1`."),
    "rank",
    Column("load_by", "string", "What the load is measured by.", values=BASES),
    Column(
        "tokens",
        "int64",
        "Rows of the first input of its grouped matrix products, summed over calls; null if shapes were not recorded.",
        importance=66,
    ),
    Column(
        "received",
        "int64",
        "Elements that all-to-all calls bring to its experts, summed over calls; null if splits were not recorded.",
        importance=58,
    ),
    Column("expert_ns", "int64", "Time of the kernels that compute experts; null if none were recorded."),
    Column("load_ratio", "float64", "Its load over the mean of the group.", importance=70),
    nulls="group group_name tokens received expert_ns",
    keep="rank load_ratio group_name tokens expert_ns",
)

GROUPS = columns(
    "group",
    meaning("group_name", "Name of the group; null if it has none or none is known."),
    Column("ranks", "string", "Its ranks that compute experts, e.g. `0, 1`."),
    Column("group_by", "string", "How the group is known.", values=("name", "calls", "none")),
    Column("load_by", "string", "What the load is measured by.", values=BASES),
    Column("imbalance_ratio", "float64", "Load of the rank with most over the mean of the group; 1 if even."),
    Column("max_rank", "int32", "Rank with most load; of several, the lowest."),
    Column("max_load", "int64", "Its load: tokens, elements or ns."),
    Column("min_rank", "int32", "Rank with least load; of several, the lowest."),
    Column("min_load", "int64", "Its load."),
    Column("mean_load", "float64", "Mean of the group."),
    nulls="group group_name",
    keep="group_name ranks imbalance_ratio max_rank max_load min_rank min_load load_by",
)

WORK = columns(
    "rank",
    meaning("calls", "Number of kernels that compute experts, or of operators if no kernels were recorded."),
    Column("tokens", "int64", "Rows of the first input, summed over calls; null if not recorded."),
    Column("expert_ns", "int64", "Time of the kernels; null if none were recorded."),
    nulls="tokens expert_ns",
)

NO_EXPERTS = "no kernels of experts (grouped matrix products) and no uneven all-to-all calls were recorded"

_LOAD = {"tokens": "tokens", "received": "received", "time": "expert_ns"}
"""What the load is measured by, and the column that has it."""


@analysis("rank", WORK, together=True)
def expert_work(
    steps: pl.LazyFrame, kernels: pl.LazyFrame | None = None, operators: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Sum up the kernels of each rank that compute experts, and the tokens that they work on: one row per rank.

    Tokens are the first dimension of a kernel's first input. If kernels have no shapes, those of the operator that is
    called most count.

    Raises:
        Unavailable: If a rank computes no experts.
    """
    device = KERNELS.or_empty(kernels).filter(pl.col("kind") == "compute")
    # names are few, rows may be millions
    kinds = device.select("name", "type").unique().collect(engine="streaming")
    experts = kinds.filter(pl.any_horizontal(pl.col("name", "type").str.contains(EXPERTS).fill_null(value=False)))
    rows = first_dimension()
    own = (
        device.filter(pl.col("name").is_in(experts["name"].implode()))
        .group_by("rank")
        .agg(
            calls=pl.len().cast(pl.Int64),
            tokens=pl.when(rows.is_not_null().all()).then(rows.sum()),
            expert_ns=pl.col("duration_ns").sum(),
        )
        .collect(engine="streaming")
    )
    host = OPERATORS.or_empty(operators)
    called = named(host, expert=pl.col("name").str.contains(EXPERTS))["expert"]
    by_name = (
        host.filter(called)
        .group_by("rank", "name")
        .agg(host_calls=pl.len().cast(pl.Int64), host_tokens=pl.when(rows.is_not_null().all()).then(rows.sum()))
        .collect(engine="streaming")
    )
    most = by_name.sort("rank", -pl.col("host_calls"), "name").unique("rank", keep="first", maintain_order=True)
    found = own.join(most.drop("name"), on="rank", how="full", coalesce=True).with_columns(
        calls=pl.coalesce("calls", "host_calls"), tokens=pl.coalesce("tokens", "host_tokens")
    )
    if unknown := without_rows(ranks_of(steps), found):
        raise Unavailable(NO_EXPERTS, of=unknown)
    return found.select(names(WORK)).sort("rank")


def first_dimension() -> pl.Expr:
    """The first dimension of the first input, e.g. of `4096,512;512,64` or `[[4096, 512], []]`; null if unknown."""
    return pl.col("input_shapes").str.extract(r'^["\[\s]*(\d+)').cast(pl.Int64)


@analysis("job", COLUMNS, whole_job=True)
def expert_load(
    expert_work: pl.DataFrame | None = None,
    arrival: pl.DataFrame | None = None,
    collective_splits: pl.LazyFrame | None = None,
    process_groups: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Compare the load of the experts of each rank within its group: one row per group and rank, most load first.

    Groups are those for experts by name; else, of ranks that compute experts, those of all-to-all calls with recorded
    splits; else all of these ranks count as one.

    Raises:
        Unavailable: If no experts were recorded.
    """
    received = _received(arrival, COLLECTIVE_SPLITS.or_empty(collective_splits))
    work = pl.DataFrame(schema={"rank": pl.Int32, "tokens": pl.Int64, "expert_ns": pl.Int64})
    if expert_work is not None:
        work = expert_work.select(work.columns)
    members = _members(process_groups, received, work)
    own = members.join(work, on="rank", how="left").join(received, on=["group", "rank"], how="left", nulls_equal=True)
    whole = [pl.when(pl.col(name).is_not_null().all().over("group")).then(pl.lit(by)) for by, name in _LOAD.items()]
    measured = own.with_columns(load_by=pl.coalesce(*whole)).drop_nulls("load_by").with_columns(load=load_of())
    mean = pl.col("load").mean().over("group")
    rows = measured.filter((pl.len().over("group") > 1) & (mean > 0))
    if rows.is_empty():
        raise Unavailable(NO_EXPERTS)
    return (
        rows.with_columns(
            load_ratio=pl.col("load") / mean,
            ranks=as_rank_list(pl.col("rank")).over("group"),
            first=pl.col("rank").min().over("group"),
        )
        .sort("first", "group", -pl.col("load"), "rank", nulls_last=True)
        .select(names(COLUMNS))
    )


def load_of() -> pl.Expr:
    """The load of each row, by what it is measured."""
    return pl.coalesce(*(pl.when(pl.col("load_by") == by).then(name) for by, name in _LOAD.items()))


def _members(groups: pl.DataFrame | None, received: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """The ranks of each group of experts: `group`, `group_name`, `rank`."""
    schema = {"group": pl.String, "group_name": pl.String, "rank": pl.Int32}
    known = pl.DataFrame(schema=schema)
    if groups is not None:
        listed = groups.filter(pl.col("parallelism") == KINDS[EXPERT]).drop_nulls("members")
        # of groups that hold tensor-parallel ranks too, whose ranks share experts, only if there are no others
        alone = [named_kinds(name) <= {EXPERT} for name in listed["group_name"]]
        listed = listed.filter(pl.Series(alone, dtype=pl.Boolean)) if any(alone) else listed
        measured = pl.concat([work["rank"], received["rank"]])
        known = listed.select("group", "group_name", rank="members").explode("rank")
        known = known.filter(pl.col("rank").is_in(measured.implode()))
    if known.height:
        return known
    called = received.filter(pl.col("rank").is_in(work["rank"].implode()), ~pl.col("group").is_in(_for_others(groups)))
    rows = called if called.height else work.with_columns(group=pl.lit(None, pl.String))
    named_so = pl.lit(None, pl.String).alias("group_name")
    found = rows.select("group", named_so, "rank")
    if groups is None:
        return found
    known_names = groups.select("group", "group_name")
    return found.drop("group_name").join(known_names, on="group", how="left").select(list(schema))


def _for_others(groups: pl.DataFrame | None) -> list[str]:
    """Groups whose all-to-all calls are no experts' by name, e.g. of sequence parallelism."""
    if groups is None:
        return []
    kinds = [(group, named_kinds(name)) for group, name in groups.select("group", "group_name").iter_rows()]
    return [group for group, kind in kinds if kind & {CONTEXT, TENSOR, PIPELINE} and EXPERT not in kind]


def _received(arrival: pl.DataFrame | None, splits: pl.LazyFrame) -> pl.DataFrame:
    """What all-to-all calls bring to the experts of each rank: `group`, `rank`, `received` (elements).

    Tokens travel to the experts in one call and back in another, so of each call the side counts of which ranks differ
    most: what they receive, or what they send back.
    """
    schema = {"group": pl.String, "rank": pl.Int32, "received": pl.Int64}
    if arrival is None:
        return pl.DataFrame(schema=schema)
    sides = {side: listed(f"{side}_splits").list.sum() for side in ("input", "output")}
    calls = arrival.filter((pl.col("operation") == "all_to_all") & pl.col("group").is_not_null())
    known = split_calls(calls, splits.drop_nulls(["input_splits", "output_splits"]))
    spread = {side: (pl.col(side).max() - pl.col(side).min()).over(CALL) for side in sides}
    found = known.select("rank", *CALL, **sides).collect()
    return (
        found.with_columns(received=pl.when(spread["input"] > spread["output"]).then("input").otherwise("output"))
        .group_by("group", "rank")
        .agg(pl.col("received").sum())
        .select(list(schema))
        .sort("group", "rank")
    )


@analysis("job", GROUPS, whole_job=True)
def expert_groups(expert_load: pl.DataFrame, process_groups: pl.DataFrame | None = None) -> pl.DataFrame:
    """Sum up `expert_load` by group: one row each, most uneven first."""
    rows = expert_load.with_columns(load=load_of()).sort("rank")
    named_so: list[str] = []
    if process_groups is not None:
        named_so = process_groups.filter(pl.col("parallelism") == KINDS[EXPERT])["group"].to_list()
    most, least = pl.col("load").arg_max(), pl.col("load").arg_min()
    by = pl.when(pl.col("group").is_in(named_so)).then(pl.lit("name"))
    return (
        rows.group_by("group", "group_name", "ranks", "load_by", maintain_order=True)
        .agg(
            max_rank=pl.col("rank").get(most),
            max_load=pl.col("load").max(),
            min_rank=pl.col("rank").get(least),
            min_load=pl.col("load").min(),
            mean_load=pl.col("load").mean(),
        )
        .with_columns(
            imbalance_ratio=pl.col("max_load") / pl.col("mean_load"),
            group_by=pl.coalesce(by, pl.when(pl.col("group").is_not_null()).then(pl.lit("calls")), pl.lit("none")),
        )
        .sort(-pl.col("imbalance_ratio"), "group", nulls_last=True)
        .select(names(GROUPS))
    )
