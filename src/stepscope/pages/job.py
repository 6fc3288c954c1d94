"""What `analyze` shows of a whole job: its questions in order, each shortened to fit a screen."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Page, Section
from stepscope.pages.sources import TIMELINE, differing, together, unknown_waits
from stepscope.present import plural
from stepscope.tables.base import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from stepscope.run import Run

CALL_COLUMNS = (
    "group_name",
    "operation",
    "size_bytes",
    "ranks",
    "count",
    "total_ns",
    "median_ns",
    "wait_ns",
    "transmit_ns",
    "wait_ratio",
    "bandwidth_bytes_per_s",
)

SLOW_RANKS_HIDDEN = (
    *("rank", "unit_kind", "unit", "unrecorded_ranks", "saving_low_ns", "saving_high_ns", "alone_ns"),
    *("slow_steps", "period", "score", "error_ratio"),
)


def time_by_rank(run: Run, breakdown: pl.DataFrame) -> Derived:
    """Averages of the steps of each rank."""
    from stepscope.advice.finding import per_of
    from stepscope.analysis.job.time_by_rank import PARTS

    averages, timed_steps = run.analyse("time_by_rank"), run.analyse("timed_steps")
    per = per_of(breakdown)
    steps = plural(max(averages["steps"].to_list()), per)
    left = averages["left_out_step"].drop_nulls()
    without = f" without {per} {left[0]}" if left.len() else ""
    which = " with operators" if timed_steps["by_phases"].any() else ""
    of = ", whole recording" if per == "recording" else f", mean of {steps}{which}{without}"
    return Derived(averages.select("rank", *PARTS), TIMELINE + of)


def idle_by_cause(run: Run, idle: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Idle time of all ranks and steps."""
    import polars as pl

    causes = idle.group_by("cause").agg(pl.col("idle_ns", "gaps").sum()).sort("idle_ns", descending=True)
    return Derived(causes.with_columns(share_ratio=_share("idle_ns")), columns=_shares_of("Share of all idle time."))


def groups(run: Run, found: pl.DataFrame) -> Derived:
    """Groups by their name for people, if they have one; those of one name with their ranks, or else their keys."""
    import polars as pl

    named = found.select("group", name=pl.coalesce("group_name", "group")).unique(maintain_order=True)
    keys, plain = named["group"].to_list(), named["name"].to_list()
    names, alike = plain, Counter(plain)
    members = _members(run, [key for key, name in zip(keys, plain, strict=True) if key and alike[name] > 1])
    for words in (members, dict(zip(keys, keys, strict=True))):
        names = [
            f"{name} {words[key]}" if alike[shown] > 1 and words.get(key, name) != name else shown
            for key, name, shown in zip(keys, plain, names, strict=True)
        ]
        alike = Counter(names)
    named = named.select("group", shown_name=pl.Series(names, dtype=pl.String))  # answers may have a `name`
    shown = found.join(named, on="group", how="left", maintain_order="left", nulls_equal=True)
    return Derived(shown.with_columns(group_name="shown_name").drop("group", "shown_name"))


def _members(run: Run, groups: Sequence[str]) -> dict[str, str]:
    """The ranks of some groups, by their keys; each of a group's ranks may list all of them."""
    import polars as pl

    from stepscope.selection import describe_numbers

    if not groups or not run.has("groups"):
        return {}
    wanted = pl.col("group").is_in(list(groups)) & (pl.col("members").list.len() > 0)
    listed = run.table("groups").select("group", "members").filter(wanted).collect()
    each = listed.unique("group", keep="last", maintain_order=True)
    return {key: describe_numbers(sorted(set(ranks))) for key, ranks in each.iter_rows()}


def calls(run: Run, found: pl.DataFrame) -> Derived:
    """The columns of calls that fit a screen."""
    return Derived(groups(run, found).rows.select(CALL_COLUMNS), TIMELINE)


def kernels(run: Run, found: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Kernels other than communication, which has a section of its own; shares are of all device work."""
    import polars as pl

    every = _over_ranks(found, ["kind", "name", "type", "core"], "total_ns")
    others = every.filter(pl.col("kind") != "communication")
    apart = "" if others.height == every.height else " (communication kernels: see Communication)"
    own = _shares_of("Share of all device work of all ranks.")
    return Derived(others, f", all ranks, share of all device work{apart}", own)


def operators(run: Run, found: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Operators by the time of the host in themselves, without their children."""
    own = _shares_of("Share of the self time of all operators of all ranks.")
    return Derived(_over_ranks(found, ["name"], "self_ns"), ", all ranks, by host self time", own)


def _over_ranks(table: pl.DataFrame, keys: list[str], by: str) -> pl.DataFrame:
    """Sum of a per-rank table over ranks, the most expensive rows first; shares are of the sum of `by`."""
    import polars as pl

    sums = list(dict.fromkeys(["count", by, "total_ns"]))
    summed = table.group_by(keys).agg(
        pl.col(sums).sum(),
        mean_ns=(pl.col("total_ns").sum() / pl.col("count").sum()).round(),
        min_ns=pl.col("min_ns").min(),
        max_ns=pl.col("max_ns").max(),
    )
    shared = summed.with_columns(share_ratio=_share(by))
    dearest = shared.sort(by, *keys, descending=[True] + [False] * len(keys), nulls_last=True)
    return dearest.select(*keys, *sums, "share_ratio", "mean_ns", "min_ns", "max_ns")


def _shares_of(meaning: str) -> list[Column]:
    """The column of `_share`, with what it is a share of."""
    return [Column("share_ratio", "float64", meaning, title="share", importance=59)]


def _share(column: str) -> pl.Expr:
    """The share of each row; of nothing, none has any."""
    import polars as pl

    total = pl.col(column).sum()
    return pl.when(total > 0).then(pl.col(column) / total).otherwise(0.0)


PAGE = Page(
    "analyze",
    "Show where the time goes, which ranks are slow, and what to change.",
    [
        Section(
            "breakdown",
            "Time by rank",
            name="steps",
            derived=time_by_rank,
            rows=16,
            notes=differing("computing", "exposed communication"),
        ),
        Section("slow_ranks", "Slow ranks", rows=8, hidden=SLOW_RANKS_HIDDEN),
        Section("slow_links", "Slow links", rows=8),
        Section("slow_groups", "Slow groups", derived=groups, unless="slow_links", rows=8),
        Section("idle", "Idle time by cause, all ranks{and_steps}", derived=idle_by_cause),
        Section(
            "communication",
            "Communication",
            derived=calls,
            rows=8,
            notes=together(unknown_waits, differing("communication")),
        ),
        Section("kernel_totals", "Kernels", name="kernels", derived=kernels, rows=8),
        Section("operator_summary", "Operators", name="operators", derived=operators, rows=8),
        Section("arrival"),
    ],
    scope="job",
)
