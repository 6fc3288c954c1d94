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
from stepscope.tables.base import Column, schema_of

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
        "Rows of the first input of its grouped matrix products, summed over calls in the steps that the ranks of its "
        "group share; null if shapes were not recorded.",
        importance=66,
    ),
    Column(
        "received",
        "int64",
        "Elements that all-to-all calls bring to its experts, summed over the calls that as many ranks as possible "
        "recorded; null if splits were not recorded.",
        importance=58,
    ),
    Column("expert_ns", "int64", "Time of its kernels that compute experts, in these steps; null if none is known."),
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
    Column(
        "call_imbalance_ratio",
        "float64",
        "Most load of a rank in each call, whichever it is, over the mean of the group, both summed over calls; null "
        "if calls cannot be compared.",
        title="in each call",
    ),
    Column("calls", "int64", "Number of these calls; null if there are none."),
    Column("max_ranks", "int32", "How many ranks have most load in some call.", title="most on"),
    Column("missing_ranks", "int32", "Members of the group whose load is unknown.", title="missing"),
    nulls="group group_name call_imbalance_ratio calls max_ranks missing_ranks",
    keep="group_name ranks imbalance_ratio call_imbalance_ratio max_rank max_load min_rank min_load load_by",
)

CALLS = columns(
    "group",
    Column("ranks", "string", "Its ranks that compute experts, e.g. `0, 1`."),
    "step",
    Column("call", "int64", "Number of the expert kernel in its step, from 0; of `received` that of the call."),
    Column("load_by", "string", "What the load is measured by.", values=BASES),
    Column("imbalance_ratio", "float64", "Load of the rank with most over the mean of the group; 1 if even."),
    Column("max_rank", "int32", "Rank with most load; of several, the lowest."),
    Column("max_load", "int64", "Its load: tokens, elements or ns."),
    Column("mean_load", "float64", "Mean of the group."),
    nulls="group step",
)

WORK = columns(
    "rank step",
    meaning("calls", "Number of kernels that compute experts, or of operators if no kernels were recorded."),
    Column("tokens", "int64", "Rows of the first input, summed over calls; null if not recorded."),
    Column("expert_ns", "int64", "Time of the kernels; null if none were recorded."),
    Column("call_tokens", "list[int64]", "Rows of the first input of each call, by stream and time; null if unknown."),
    Column("call_ns", "list[int64]", "Time of each kernel, in the same order; null if none were recorded."),
    nulls="step tokens expert_ns call_tokens call_ns",
)

NO_EXPERTS = "no kernels of experts (grouped matrix products) and no uneven all-to-all calls were recorded"

NO_SHARED_STEPS = "the ranks that compute experts recorded no step that all of a group have"

_LOAD = {"tokens": "tokens", "received": "received", "time": "expert_ns"}
"""What the load is measured by, and the column that has it."""


@analysis("rank", WORK, together=True)
def expert_work(
    steps: pl.LazyFrame, kernels: pl.LazyFrame | None = None, operators: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Sum up the kernels of each rank that compute experts and the tokens that they work on: one row per rank and step.

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
    cell = ["rank", "step"]
    own = (
        device.filter(pl.col("name").is_in(experts["name"].implode()))
        .select(*cell, "stream", "start_ns", "duration_ns", rows=rows)
        .collect(engine="streaming")
        .sort(*cell, "stream", "start_ns", nulls_last=True)
        .group_by(cell, maintain_order=True)
        .agg(
            calls=pl.len().cast(pl.Int64),
            expert_ns=pl.col("duration_ns").sum(),
            call_ns="duration_ns",
            call_tokens=_if_all_known("rows"),
        )
        .pipe(_with_tokens)
    )
    host = OPERATORS.or_empty(operators)
    called = named(host, expert=pl.col("name").str.contains(EXPERTS))["expert"]
    of_names = host.filter(called).select(*cell, "name", "start_ns", rows=rows).collect(engine="streaming")
    counts = of_names.group_by("rank", "name").agg(n=pl.len()).sort("rank", -pl.col("n").cast(pl.Int64), "name")
    most = counts.unique("rank", keep="first", maintain_order=True)
    on_host = (
        of_names.join(most, on=["rank", "name"], how="semi")
        .sort(*cell, "start_ns", nulls_last=True)
        .group_by(cell, maintain_order=True)
        .agg(host_calls=pl.len().cast(pl.Int64), call_tokens=_if_all_known("rows"))
        .pipe(_with_tokens)
    )
    found = own.join(on_host, on=cell, how="full", coalesce=True, nulls_equal=True, suffix="_host").with_columns(
        calls=pl.coalesce("calls", "host_calls"),
        tokens=pl.coalesce("tokens", "tokens_host"),
        call_tokens=pl.coalesce("call_tokens", "call_tokens_host"),
    )
    if unknown := without_rows(ranks_of(steps), found):
        raise Unavailable(NO_EXPERTS, of=unknown)
    return found.select(names(WORK)).sort("rank", "step", nulls_last=True)


def _if_all_known(column: str) -> pl.Expr:
    """The list of values of a group; null if one is unknown."""
    known = pl.col(column).is_not_null().all()
    return pl.when(known).then(pl.col(column).implode())


def _with_tokens(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(tokens=pl.col("call_tokens").list.sum())


def first_dimension() -> pl.Expr:
    """The first dimension of the first input, e.g. of `4096,512;512,64` or `[[4096, 512], []]`; null if unknown."""
    return pl.col("input_shapes").str.extract(r'^["\[\s]*(\d+)').cast(pl.Int64, strict=False)


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
    received = received_calls(arrival, collective_splits).group_by("group", "rank").agg(pl.col("received").sum())
    work = pl.DataFrame(schema=schema_of(WORK)) if expert_work is None else expert_work
    members = _members(process_groups, received.sort("group", "rank"), work.unique("rank").sort("rank"))
    shared = shared_steps(members, work)
    sums = shared.group_by("group", "rank").agg(
        pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()) for name in ("tokens", "expert_ns")
    )
    own = members
    for rows in (sums, received):
        own = own.join(rows, on=["group", "rank"], how="left", nulls_equal=True)
    whole = [pl.when(pl.col(name).is_not_null().all().over("group")).then(pl.lit(by)) for by, name in _LOAD.items()]
    measured = own.with_columns(load_by=pl.coalesce(*whole)).drop_nulls("load_by").with_columns(load=load_of())
    mean = pl.col("load").mean().over("group")
    rows = measured.filter((pl.len().over("group") > 1) & (mean > 0))
    if rows.is_empty():
        raise Unavailable(NO_EXPERTS if shared.height or work.is_empty() else NO_SHARED_STEPS)
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


def shared_steps(members: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """The rows of `expert_work` of ranks of a group (`group`, `rank`), with `group`, in the steps that can be compared.

    These are the steps that all ranks recorded, or, if there are none, all of the group; none in which a rank has less
    than half of the calls that others of the group have, as at the ends of a recording. What lies outside of steps
    counts only if there are none.
    """
    rows = members.select("group", "rank").join(work, on="rank")
    ranks = pl.col("rank").n_unique()
    rows = rows.filter(pl.col("step").is_not_null() | pl.col("step").is_null().all().over("group"))
    most = pl.col("calls").max().over("group", "step")
    rows = rows.with_columns(
        all=ranks.over("group"), here=ranks.over("group", "step"), is_whole=2 * pl.col("calls") >= most
    )
    whole = pl.col("is_whole").all().over("group", "step")
    shared = rows.filter((pl.col("here") == pl.col("all")) & whole).drop("all", "here", "is_whole")
    return _in_common_steps(shared)


def _in_common_steps(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of steps that all groups have, so that ranks of different groups can be compared; all if there are
    none."""
    common = rows.filter(pl.col("group").n_unique().over("step") == rows["group"].n_unique())
    return rows if common.is_empty() else common


def received_calls(arrival: pl.DataFrame | None, collective_splits: pl.LazyFrame | None) -> pl.DataFrame:
    """What each all-to-all call brings to the experts of each rank: `group`, `sequence`, `step`, `rank`, `received`
    (elements). Of each group the calls that as many ranks as possible recorded, so that sums can be compared.

    Tokens travel to the experts in one call and back in another, so of each call the side counts of which ranks differ
    most: what they receive, or what they send back.
    """
    schema = {"group": pl.String, "sequence": pl.Int64, "step": pl.Int32, "rank": pl.Int32, "received": pl.Int64}
    splits = COLLECTIVE_SPLITS.or_empty(collective_splits)
    if arrival is None:
        return pl.DataFrame(schema=schema)
    sides = {side: listed(f"{side}_splits").list.sum() for side in ("input", "output")}
    calls = arrival.filter((pl.col("operation") == "all_to_all") & pl.col("group").is_not_null())
    known = split_calls(calls, splits.drop_nulls(["input_splits", "output_splits"]))
    spread = {side: (pl.col(side).max() - pl.col(side).min()).over(CALL) for side in sides}
    found = known.select("rank", "step", *CALL, **sides).collect()
    counted = found.with_columns(
        received=pl.when(spread["input"] > spread["output"]).then("input").otherwise("output"),
        step=pl.col("step").min().over(CALL),
        here=pl.len().over(CALL),
    )
    shared = counted.filter(pl.col("here") == pl.col("here").max().over("group"))
    return _in_common_steps(shared).select(list(schema)).sort(*CALL, "rank")


@analysis("job", CALLS, whole_job=True)
def expert_calls(
    expert_load: pl.DataFrame,
    expert_work: pl.DataFrame | None = None,
    arrival: pl.DataFrame | None = None,
    collective_splits: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Compare the load of the ranks of each group in each call, as `expert_load` measures it: one row per call, in
    order. Calls of steps in which ranks have another number of them are left out.
    """
    groups = expert_load.select("group", "ranks", "load_by").unique(maintain_order=True).with_row_index("number")
    members = expert_load.join(groups, on=["group", "ranks", "load_by"], nulls_equal=True)
    place = ["number", "step", "call"]
    parts = []
    for by, column in (("tokens", "call_tokens"), ("time", "call_ns")):
        own = members.filter(load_by=by).select("number", "rank", group="number")
        if expert_work is None or own.is_empty():
            continue
        shared = shared_steps(own, expert_work).select("rank", "step", load=column, number="group")
        sizes = pl.col("load").list.len().n_unique().over("number", "step")
        numbered = shared.filter(sizes == 1).with_columns(call=pl.int_ranges(0, pl.col("load").list.len()))
        parts.append(numbered.explode("load", "call").select(*place, "rank", "load"))
    of_calls = members.filter(load_by="received").select("number", "rank", "group")
    brought = of_calls.join(received_calls(arrival, collective_splits), on=["group", "rank"])
    parts.append(
        brought.select("number", "step", "rank", call="sequence", load="received").select(*place, "rank", "load")
    )
    load = pl.col("load")
    return (
        pl.concat(parts)
        .sort(*place, "rank", nulls_last=True)
        .group_by(place, maintain_order=True)
        .agg(max_rank=pl.col("rank").get(load.arg_max()), max_load=load.max(), mean_load=load.mean())
        .filter(pl.col("mean_load") > 0)
        .with_columns(imbalance_ratio=pl.col("max_load") / pl.col("mean_load"))
        .join(groups, on="number", maintain_order="left")
        .select(names(CALLS))
    )


@analysis("job", GROUPS, whole_job=True)
def expert_groups(
    expert_load: pl.DataFrame, expert_calls: pl.DataFrame, process_groups: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Sum up `expert_load` and `expert_calls` by group: one row each, most uneven first."""
    rows = expert_load.with_columns(load=load_of()).sort("rank")
    named_so: list[str] = []
    if process_groups is not None:
        named_so = process_groups.filter(pl.col("parallelism") == KINDS[EXPERT])["group"].to_list()
    sizes: dict[str, int] = {}
    if process_groups is not None:
        listed = process_groups.drop_nulls("members").select("group", pl.col("members").list.n_unique())
        sizes = dict(listed.iter_rows())
    by_call = expert_calls.group_by("group", "ranks").agg(
        call_imbalance_ratio=pl.col("max_load").sum() / pl.col("mean_load").sum(),
        calls=pl.len().cast(pl.Int64),
        max_ranks=pl.col("max_rank").n_unique().cast(pl.Int32),
    )
    members = pl.col("group").replace_strict(sizes, default=None, return_dtype=pl.Int64)
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
            missing_ranks=(members.first() - pl.len()).cast(pl.Int32),
        )
        .join(by_call, on=["group", "ranks"], how="left", nulls_equal=True, maintain_order="left")
        .with_columns(
            imbalance_ratio=pl.col("max_load") / pl.col("mean_load"),
            group_by=pl.coalesce(by, pl.when(pl.col("group").is_not_null()).then(pl.lit("calls")), pl.lit("none")),
        )
        .sort(-pl.col("imbalance_ratio"), "group", nulls_last=True)
        .select(names(GROUPS))
    )
