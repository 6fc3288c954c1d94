"""How evenly the stages of a pipeline work, how long they wait for one another, and what they send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.errors import Unavailable
from stepscope.pages.base import Derived, Page, Section
from stepscope.pages.layout import LAYOUT
from stepscope.pages.replayed import other_pages
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_BY = {
    "pairs": "Waiting is counted where a rank of another stage enters a call later and the rank computes nothing.",
    "receives": "Waiting is the time in receives, with transmission: some sends and receives have no pair.",
    "recorded": "Waiting is as the source states it: all time in receives, with transmission.",
    "mixed": "How waiting is known differs between ranks and steps: see «--table pipeline_bubbles».",
}

_PAIRS = (
    Column("stage_a", "int32", "", title="from stage", importance=90),
    Column("stage_b", "int32", "", title="to stage", importance=89),
    Column("direction", "string", "", importance=60),
    Column("ranks", "string", "", title="from rank > to rank", importance=70),
    Column("count", "int64", "", title="transfers", importance=80),
    Column("size_bytes", "int64", "", title="size", importance=65),
    Column("receiver_wait_ns", "int64", "", title="receiver waits", importance=85),
    Column("sender_wait_ns", "int64", "", title="sender waits", importance=75),
    Column("transmit_ns", "int64", "", title="transmission", importance=72),
    Column("unpaired", "int64", "", importance=78),
)


_COUNTED = {
    "operations": "",
    "marks": " (by marks of forward and backward)",
    "transfers": " (by what each stage sends to the next)",
}


def _schedule(run: Run, stages: pl.DataFrame) -> Iterator[str]:
    """The pipeline in sentences: how many micro-batches, and how much waiting that costs at best."""
    known = run.analyse("pipeline_schedule").row(0, named=True)
    batches = known["micro_batches"]
    what, why = f"{known['stages']} stages", ""
    if batches is not None:
        by = _COUNTED[known["micro_batches_by"]]
        what += f", {batches} micro-batch{'es' * (batches != 1)} a {{step}}{by}"
        what += f", {known['model_chunks']} model chunks a rank" if (known["model_chunks"] or 1) > 1 else ""
    elif known["most_micro_batches"] is not None:
        what += f", at most {known['most_micro_batches']} micro-batches a {{step}}"
        why = " (they are fewer if each rank has several model chunks)"
    if known["bubble_ratio"] is not None:
        what += f": ranks wait {known['bubble_ratio']:.1%} of {{a_step}} for other stages"
    if known["ideal_ratio"] is not None:
        what += f". Even stages that do nothing else would wait {known['ideal_ratio']:.1%}"
    yield f"{what}."
    if known["waits_less"]:
        yield (
            "That is less than even stages have to wait where a backward pass is one piece: the schedule splits it "
            "(zero bubble) or is another one."
        )
    if batches is None:
        yield f"How many micro-batches a {{step}} has is unknown{why}, and so is how long stages have to wait at best."
    if known["uneven_stage"] is not None:
        yield (
            f"Stages are uneven: stage {known['uneven_stage']} works {known['largest_work_factor']:.2f} times as long "
            "as the mean stage."
        )
    yield from (text for by, text in _BY.items() if (stages["bubble_by"] == by).any())
    if known["exchanges"]:
        yield f"{known['exchanges']} calls send and receive at once: how many transfers these are is unknown."
    if (run.analyse("pipeline_places")["stage_by"] == "communication").any():
        yield "Which stage a rank is was not recorded: it is guessed from who sends to whom."
    if stages["bubble_by"].null_count():
        yield "Of stages without a figure, neither calls nor waiting were recorded."
    missing = [str(stage) for stage, count in stages.select("stage", "missing").iter_rows() if count]
    if missing:
        yield f"Not all ranks were recorded of stage{'s' * (len(missing) > 1)} {', '.join(missing)}."
    if left_out := int(stages["left_out"].sum()):
        yield (
            f"{left_out} first {{steps}} of ranks are left out, here and in means of transfers: start-up of some rank, "
            "or not measured whole."
        )


def _counted(run: Run, transfers: pl.DataFrame) -> pl.DataFrame:
    """The transfers of steps that count, if there are any."""
    try:
        left_out = run.analyse("left_out_steps")
    except Unavailable:
        return transfers
    kept = transfers.join(left_out.select("step").unique(), on="step", how="anti", maintain_order="left")
    return kept if kept.height else transfers


def _pairs(run: Run, transfers: pl.DataFrame) -> Derived:
    """Transfers by pair of ranks, in the steps that count."""
    import polars as pl

    from stepscope.text_columns import filled_in

    ends = pl.col("rank_a", "rank_b").cast(pl.String).fill_null("?")
    named = _counted(run, transfers).with_columns(ends.name.suffix("_text"))
    rows = named.with_columns(ranks=filled_in("{} > {}", "rank_a_text", "rank_b_text"))
    waits = ("receiver_wait_ns", "sender_wait_ns", "transmit_ns")
    found = rows.group_by("stage_a", "stage_b", "direction", "ranks").agg(
        count=pl.len().cast(pl.Int64),
        size_bytes=pl.col("size_bytes").max(),
        **{name: pl.col(name).mean().round().cast(pl.Int64) for name in waits},
        unpaired=pl.col("paired_by").is_null().sum().cast(pl.Int64),
    )
    ordered = found.sort("stage_a", "stage_b", "ranks", "direction", nulls_last=True)
    return Derived(ordered.select([column.name for column in _PAIRS]), ", means", columns=_PAIRS)


def _problems(transfers: pl.DataFrame) -> Iterator[str]:
    """What has no pair, and what in pairs is a guess."""
    counts = transfers["problem"].drop_nulls().value_counts().sort("count", "problem", descending=[True, False])
    if counts.height:
        told = ", ".join(f"{count} {problem}" for problem, count in counts.iter_rows())
        yield (
            f"Not in order, of {transfers.height}: {told}. To see them: «--table transfers --filter» \"problem <> ''\"."
        )
    if guessed := transfers.filter(transfers["paired_by"] == "place").height:
        yield (
            f"{guessed} pairs are guessed: the other side is not recorded, but with two stages it is the rank at the "
            "same place of the other one, and numbers and times of all calls fit."
        )


def _no_stages(run: Run, timeline: pl.DataFrame) -> Iterator[str]:  # noqa: ARG001 - one signature for all
    """What stage 0 is in a job without a pipeline."""
    try:
        run.analyse("pipeline_places")
    except Unavailable:
        yield "No pipeline stages are known: stage 0 stands for all ranks."


CELLS = 56
"""Blocks in a row of passes."""

_SHADES = {"forward": "▒", "backward": "█"}
_LANES = (
    Column("stage", "int32", "", importance=90),
    Column("rank", "int32", "", importance=89),
    Column("by_time", "string", "", title="in time", importance=95),
)


def _lanes(run: Run, blocks: pl.DataFrame) -> Derived:
    """A row for each rank with its passes in one step; of a pass of which one end is known, that end."""
    import polars as pl

    from stepscope.pages.answering import per_of

    steps = blocks["step"].unique().sort().to_list()
    rows = blocks.filter(pl.col("step") == steps[min(1, len(steps) - 1)])
    first, last = rows.select(
        pl.min_horizontal("start_ns", "end_ns").min(), end=pl.max_horizontal("start_ns", "end_ns").max()
    ).row(0)
    if first is None:
        return Derived(rows.select("stage", "rank").clear().with_columns(by_time=pl.lit("")), columns=_LANES)
    width = max(last - first, 1)
    found = []
    for (stage, rank), passes in rows.sort("stage", "rank").group_by("stage", "rank", maintain_order=True):
        cells = ["·"] * CELLS
        for way, start, end in passes.select("direction", "start_ns", "end_ns").iter_rows():
            ends = [one for one in (start, end) if one is not None]
            if ends:
                since, until = (min(int((one - first) * CELLS / width), CELLS - 1) for one in (ends[0], ends[-1]))
                cells[since : until + 1] = _SHADES[way] * (until + 1 - since)
        found.append((stage, rank, "".join(cells)))
    drawn = pl.DataFrame(found, schema={"stage": pl.Int32, "rank": pl.Int32, "by_time": pl.String}, orient="row")
    return Derived(drawn, f", {per_of(run)} {rows['step'][0]}: ▒ forward, █ backward", columns=_LANES)


_KNOWN = {
    "operations": "The recording states the micro-batch of each operation.",
    "marks": "From ranges of forward and backward, with the waiting in them.",
}


def _blocks(blocks: pl.DataFrame) -> Iterator[str]:
    """How the passes are known."""
    by = blocks["known_by"][0]
    yield _KNOWN.get(
        by, f"A guess: sends and receives of all {{steps}} fit the schedule {by}. Ends that no call shows are unknown."
    )


PAGE = Page(
    "pipeline",
    "Show how evenly pipeline stages work, how long they wait for one another, and what passes between them.",
    [
        Section(
            "pipeline_stages",
            "Pipeline stages, mean of the {steps}",
            name="stages",
            notes=_schedule,
            hidden=("bubble_by", "capacity_bytes", "steps", "left_out", "missing", "flops_per_s"),
        ),
        Section("pipeline_schedule", name="schedule"),
        Section("pipeline_steps", "Stages {by_step}", name="steps", hidden=("bubble_by", "ranks")),
        Section(
            "pipeline_bubbles",
            "Waiting of each rank {by_step}",
            name="waiting",
            hidden=("computing_ns", "unmatched", "bubble_by"),
            rows=16,
        ),
        Section(
            "pipeline_transfers",
            "Transfers between stages",
            name="pairs",
            derived=_pairs,
            sentences=_problems,
            rows=16,
        ),
        Section(
            "pipeline_transfers",
            "Sends and receives",
            name="transfers",
            hidden=(
                *("group", "name", "received_bytes", "model_chunk", "send_end_ns", "receive_end_ns"),
                *("send_start_ns", "receive_start_ns"),
            ),
            rows=8,
        ),
        Section(
            "pipeline_blocks",
            "Passes of each rank in time",
            name="lanes",
            derived=_lanes,
            drawn="by_time",
            sentences=_blocks,
            rows=32,
        ),
        Section(
            "pipeline_blocks",
            "Forward and backward of each micro-batch",
            name="blocks",
            hidden=("model_chunk",),
            rows=12,
        ),
        Section(
            "stage_timeline",
            "Operators of {a_step} on the ranks of each stage",
            name="timeline",
            hidden=("last_start_ns", "first_end_ns", "mean_end_ns", "kind", "mean_start_ns"),
            notes=_no_stages,
            rows=12,
        ),
        Section("stage_operators", "Operators of each stage, by type", name="operators", hidden=("ranks",)),
    ],
    options=[LAYOUT],
    more="Waiting for other stages is the bubble of the pipeline. With p even stages and m micro-batches it is "
    "(p - 1) / (m + p - 1) of a step without other work; uneven stages, slow ranks and slow links make it longer. "
    "Sends and receives are paired by the position in their group, or by their order from one rank to the other.",
    scope="job",
    instead=other_pages,
)
