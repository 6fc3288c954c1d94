"""What decides how long a step takes, over all ranks, hosts and devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.replayed import replay_notes
from stepscope.present import duration, listed, plural

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

LINKS, LEAST = 6, 0.02
"""Parts of a chain that are put into words at most, and the least share of the step of each."""

KINDS_NAMED = 3
"""Kinds of work that are named of a rank's part of the chain."""

LITTLE = 0.005
"""Share of a part of the chain up to which what is not named does not count."""

GAP = "without recorded work"
"""What is between two pieces of work."""


def _totals(run: Run, path: pl.DataFrame) -> Derived:
    """What lies on the path, most expensive first: means over the steps."""
    import polars as pl

    from stepscope.analysis.methods.names import unnumbered

    keys = ["rank", "lane", "kind", "name"]
    steps = path["step"].n_unique()
    time = pl.col("duration_ns") + pl.col("gap_ns")
    total = _of_all_ranks(run, path).select(time.sum()).item()
    path = path.with_columns(unnumbered())
    summed = path.group_by(keys).agg(pl.col("pieces", "duration_ns", "gap_ns").sum())
    shared = summed.with_columns(share_ratio=time / max(total, 1))
    dearest = shared.sort("share_ratio", *keys, descending=[True, *[False] * 4], nulls_last=True)
    means = dearest.with_columns((pl.col("pieces", "duration_ns", "gap_ns") / steps).ceil().cast(pl.Int64))
    return Derived(means.select("share_ratio", *keys, "duration_ns", "gap_ns", "pieces"), _mean_of(run, path, total))


def _of_all_ranks(run: Run, path: pl.DataFrame) -> pl.DataFrame:
    """The path in its steps on all ranks, also if some were chosen."""
    whole = run.whole.analyse("critical_path")
    return whole.filter(whole["step"].is_in(path["step"].unique().implode()))


def _ranks(run: Run, slack: pl.DataFrame) -> Derived:
    """Each rank's mean over the steps, those on the path first."""
    import polars as pl

    # Shares of all steps together, as in the table of what lies on the path.
    lengths = (
        slack.filter(pl.col("path_ratio") > 0)
        .group_by("step")
        .agg(length=(pl.col("path_ns") / pl.col("path_ratio")).first())
    )
    whole = lengths["length"].sum()
    means = slack.group_by("rank").agg(
        pl.col("path_ns").mean().round(),
        path_ratio=pl.col("path_ns").sum() / whole if whole else pl.lit(0.0),
        slack_ns=pl.col("slack_ns").min(),
    )
    return Derived(means.sort(-pl.col("path_ns"), "slack_ns", "rank"), _mean_of(run, slack))


def _mean_of(run: Run, rows: pl.DataFrame, total_ns: float | None = None) -> str:
    """Of how many steps, or what else they are, the figures are means, and how long these take."""
    from stepscope.pages.answering import per_of

    count, per = rows["step"].n_unique(), per_of(run)
    length = "" if total_ns is None or not count else f" ({duration(total_ns / count)})"
    if per == "recording":
        return f", whole recording{length}"
    if not count:
        return ""
    return f", {per} {rows['step'][0]}{length}" if count == 1 else f", mean of {plural(count, per)}{length}"


def _about_slack(slack: pl.DataFrame) -> Iterator[str]:
    """What slack is."""
    if slack["rank"].n_unique() > 1:
        which = "the {step}" if slack["step"].n_unique() == 1 else "any of the {steps}"
        yield (
            "Slack is by how much a rank could be later with its own work (communication apart) without making "
            f"{which} longer. With 0 us, any delay of the rank is one of the job."
        )


def _chain(run: Run, path: pl.DataFrame) -> Iterator[str]:
    """The chain of the step of median length in words: which rank, how long, with what."""
    import polars as pl

    if path.is_empty():  # no part of it is on the ranks that are chosen
        return
    path = _of_all_ranks(run, path)
    time = pl.col("duration_ns") + pl.col("gap_ns")
    lengths = path.group_by("step").agg(length=time.sum()).sort("length", "step")
    step, length = lengths.row((lengths.height - 1) // 2)
    rows = path.filter(pl.col("step") == step)
    parts = _parts(rows, length)
    said = "; then ".join(_said(part) for part in parts)
    which = "" if lengths.height == 1 else f" of {{step}} {step}, the median"
    left = length - sum(part["time"] for part in parts)
    rest = f" The other {duration(left)} are shorter pieces in between." if left > LEAST * length else ""
    yield f"The chain{which} ({duration(length)}): {said}.{rest}"


def _parts(rows: pl.DataFrame, length: int) -> list[dict[str, Any]]:
    """Parts of a chain on one rank each, in order of time, without short ones."""
    parts: list[dict[str, Any]] = []
    for rank, kind, work, gap in rows.select("rank", "kind", "duration_ns", "gap_ns").iter_rows():
        if not parts or parts[-1]["rank"] != rank:
            parts.append({"rank": rank, "time": 0, "gap": 0, "kinds": {}})
        part = parts[-1]
        part["time"] += work + gap
        part["gap"] += gap
        part["kinds"][kind] = part["kinds"].get(kind, 0) + work
    longest = sorted((part["time"] for part in parts if part["time"] >= LEAST * length), reverse=True)[:LINKS]
    least = longest[-1] if longest else 0
    kept: list[dict[str, Any]] = []
    for part in (part for part in parts if part["time"] >= least):
        if kept and kept[-1]["rank"] == part["rank"]:
            kept[-1]["time"] += part["time"]
            kept[-1]["gap"] += part["gap"]
            for kind, work in part["kinds"].items():
                kept[-1]["kinds"][kind] = kept[-1]["kinds"].get(kind, 0) + work
        else:
            kept.append(part)
    return kept


def _said(part: dict[str, Any]) -> str:
    """A part of a chain in words; what is named sums to all of it."""
    works = {**part["kinds"], GAP: part["gap"]}
    ordered = sorted(works.items(), key=lambda work: (-work[1], work[0]))
    named = [(kind.replace("_", " "), time) for kind, time in ordered[:KINDS_NAMED] if time >= 0.05 * part["time"]]
    rest = part["time"] - sum(time for _, time in named)
    if rest >= LITTLE * part["time"]:
        named.append(("other work", rest))
    if len(named) == 1:
        return f"rank {part['rank']} for {duration(part['time'])} ({named[0][0]})"
    words = [f"{duration(time)} {kind}" for kind, time in named]
    return f"rank {part['rank']} for {duration(part['time'])} ({listed(words)})"


def _notes(run: Run, slack: pl.DataFrame) -> Iterator[str]:
    yield from replay_notes(run, slack.unique("step", maintain_order=True)["error_ratio"].to_list())


PAGE = Page(
    "critical-path",
    "Show what decides how long a step takes, over all ranks, hosts and devices, and who has time to spare.",
    [
        Section(
            "critical_path",
            "What decides the length of {a_step}",
            derived=_totals,
            notes=_chain,
            rows=12,
            only_without=("list",),
        ),
        Section("critical_path", "The critical path, piece by piece", name="pieces", only_with=("list",), rows=40),
        Section("slack", "Ranks on the critical path", derived=_ranks, sentences=_about_slack, notes=_notes, rows=16),
    ],
    options=[Option("list", "flag", "List the pieces of the path in order of time.", "", default=False)],
    more="The critical path is the chain of work, each piece waiting for the one before it, that ends with the last "
    "work of a step. Only what lies on it can make the step shorter. Slack is by how much all of a rank's own work "
    "could end later without making the step longer: that of its tightest piece. Of waiting for others, most is no "
    "slack, since they wait for this rank as well. «--json» has all pieces of the path in order.",
    scope="job",
)
