"""How a pipeline is run: stages, micro-batches and model chunks, and how much waiting that costs at best."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.job.rank_steps import without_start_up
from stepscope.analysis.methods.pipeline_places import BACKWARD, FORWARD, marked_passes
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables import COLLECTIVES, KERNELS, STEPS
from stepscope.tables.base import Column, schema_of

OPERATIONS, TRANSFERS, MARKS = "operations", "transfers", "marks"


@dataclass(frozen=True)
class Limits:
    """Which transfers carry no micro-batch, and which stages are uneven."""

    small_ratio: float = limit(0.01, "of the largest transfer", "chosen by us: below, it carries shapes or flags")
    uneven_factor: float = limit(
        1.1,
        "times the mean stage, of the stage that computes longest",
        "chosen by us: less costs less than what is worth a finding",
    )
    refuted_ratio: float = limit(
        0.6,
        "of the waiting of even stages, below which the schedule cannot be the one of the formula",
        "stages that end early and do not wait for the end of the step hide 0.33 to 0.38 of it in 1F1B",
    )


COLUMNS = columns(
    Column("stages", "int32", "Number of stages.", nullable=False, importance=90),
    Column("recorded_stages", "int32", "Those with recorded ranks.", nullable=False),
    Column(
        "micro_batches", "int32", "Micro-batches of a step; null if unknown, or not the same in all.", importance=88
    ),
    Column(
        "most_micro_batches",
        "int32",
        "Micro-batches at most, where they are unknown: transfers between two stages leave open how many model chunks "
        "each rank has. Null if they are known, or nothing is.",
        title="at most",
    ),
    Column("model_chunks", "int32", "Virtual stages of each rank (interleaving); null if unknown.", importance=80),
    Column(
        "micro_batches_by",
        "string",
        "`operations`: the recording states them; `transfers`: by what each stage sends to the next; `marks`: of "
        "several numbers that fit the transfers of two stages, the one that ranges of forward and backward show.",
        values=(OPERATIONS, TRANSFERS, MARKS),
        importance=60,
    ),
    Column(
        "ideal_ratio",
        "float64",
        "Share of a step that even stages wait: (stages - 1) / (micro-batches x chunks + stages - 1). Null if unknown, "
        "or if they wait less than that.",
        title="even bubble",
        importance=86,
    ),
    Column(
        "waits_less",
        "bool",
        "Whether stages wait for clearly less than even ones have to in a schedule with whole backward passes: the "
        "schedule is another one, such as zero bubble, and how long they have to wait in it is unknown.",
        nullable=False,
    ),
    Column("bubble_ratio", "float64", "Share that they wait, mean of all recorded ranks and steps.", importance=87),
    Column("bubble_ns", "int64", "The same in the mean step.", importance=84),
    Column("step_ns", "int64", "Mean length of a step.", importance=70),
    Column("largest_work_factor", "float64", "Work of the stage that works longest over that of the mean stage."),
    Column("longest_stage", "int32", "That stage; null with one recorded stage."),
    Column("uneven_stage", "int32", "The same if stages are uneven (`uneven_factor`); else null."),
    Column("transfers", "int64", "Sends and receives between stages, pairs and single ones."),
    Column("unpaired", "int64", "Those without a pair."),
    Column(
        "exchanges",
        "int64",
        "Calls that send and receive at once, which are in no pair: how many transfers they are is unknown.",
    ),
    nulls="micro_batches most_micro_batches model_chunks micro_batches_by ideal_ratio bubble_ratio bubble_ns step_ns "
    "largest_work_factor longest_stage uneven_stage",
)


@analysis("job", COLUMNS, whole_job=True)
def pipeline_schedule(
    pipeline_places: pl.DataFrame,
    pipeline_bubbles: pl.DataFrame | None = None,
    pipeline_stages: pl.DataFrame | None = None,
    pipeline_transfers: pl.DataFrame | None = None,
    kernels: pl.LazyFrame | None = None,
    collectives: pl.LazyFrame | None = None,
    left_out_steps: pl.DataFrame | None = None,
    phase_ranges: pl.DataFrame | None = None,
    steps: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Sum up the pipeline of a job: one row.

    Micro-batches are those that the recording states, else counted: on each pair of ranks of neighbouring stages, in
    each step, as many transfers go forward as backward. Transfers from the last stage to the first one show how many
    model chunks each rank has. Of two stages, these look like what goes back: m micro-batches in v chunks are
    m (2 v - 1) transfers each way.
    """
    stages = pipeline_places["stages"][0]
    count, chunks, by = _stated(kernels)
    most = None
    exchanges = _exchanges(collectives)
    if by is None and pipeline_transfers is not None and not exchanges:
        count, chunks = _counted(pipeline_transfers, stages, limits)
        by = None if count is None else TRANSFERS
        if stages == 2 and count is not None and _has_odd_divisor(count):
            most = count
            count, chunks = _of_passes(most, phase_ranges, STEPS.or_empty(steps))
            by, most = (None, most) if count is None else (MARKS, None)
    work = pipeline_stages
    longest = None
    if work is not None and work["work_factor"].count() > 1:
        longest = (
            work.drop_nulls("work_factor").sort("work_factor", "stage", descending=[True, False]).row(0, named=True)
        )
    kept = (
        None if pipeline_bubbles is None else without_start_up(pipeline_bubbles, left_out_steps).drop_nulls("bubble_ns")
    )
    waited, lasted = (
        (None, None) if kept is None or kept.is_empty() else kept.select("bubble_ns", "window_ns").mean().row(0)
    )
    passes = None if count is None else count * (chunks or 1)
    ideal = None if passes is None else (stages - 1) / (passes + stages - 1)
    waits_less = _waits_less(ideal, waited, work, limits)
    row = {
        "stages": stages,
        "recorded_stages": pipeline_places.filter("recorded")["stage"].n_unique(),
        "micro_batches": count,
        "most_micro_batches": most,
        "model_chunks": chunks,
        "micro_batches_by": by,
        "ideal_ratio": None if waits_less else ideal,
        "waits_less": waits_less,
        "bubble_ratio": waited / lasted if waited is not None and lasted else None,
        "bubble_ns": None if waited is None else round(waited),
        "step_ns": None if lasted is None else round(lasted),
        "largest_work_factor": longest and longest["work_factor"],
        "longest_stage": longest and longest["stage"],
        "uneven_stage": longest["stage"] if longest and longest["work_factor"] >= limits.uneven_factor else None,
        "transfers": 0 if pipeline_transfers is None else pipeline_transfers.height,
        "unpaired": 0
        if pipeline_transfers is None
        else pipeline_transfers.filter(pl.col("paired_by").is_null()).height,
        "exchanges": exchanges,
    }
    return pl.DataFrame([row], schema=schema_of(COLUMNS))


def _waits_less(ideal: float | None, waited: float | None, work: pl.DataFrame | None, limits: Limits) -> bool:
    """Whether the waiting of a mean step refutes the formula for even stages that work as long as these."""
    mean = None if work is None else work["work_ns"].mean()
    if ideal is None or waited is None or not isinstance(mean, float):
        return False
    return waited < limits.refuted_ratio * mean * ideal / (1 - ideal)


def _stated(kernels: pl.LazyFrame | None) -> tuple[int | None, int | None, str | None]:
    """Micro-batches and chunks of a step as the recording states them, if they are the same in all."""
    marked = KERNELS.or_empty(kernels).filter(pl.col("micro_batch").is_not_null() & pl.col("step").is_not_null())
    counted = marked.group_by("rank", "step").agg(
        pl.col("micro_batch").n_unique(), pl.col("model_chunk").drop_nulls().n_unique().clip(lower_bound=1)
    )
    seen = counted.select("micro_batch", "model_chunk").unique().collect()
    if seen.is_empty():
        return None, None, None
    count, chunks = (column[0] if column.n_unique() == 1 else None for column in seen)
    return count, chunks, OPERATIONS


def _exchanges(collectives: pl.LazyFrame | None) -> int:
    """How many calls send and receive at once."""
    calls = COLLECTIVES.or_empty(collectives).filter(pl.col("operation") == "send_recv")
    return int(calls.select(pl.len()).collect().item())


def _has_odd_divisor(count: int) -> bool:
    """Whether it is a multiple of an odd number above 1: only then can transfers be of several model chunks."""
    return count & (count - 1) != 0


def _of_passes(transfers: int, phases: pl.DataFrame | None, steps: pl.LazyFrame) -> tuple[int | None, int | None]:
    """Micro-batches m and chunks v of two stages: m (2 v - 1) `transfers`, and m v passes, if these are marked."""
    if phases is None:
        return None, None
    marked = marked_passes(phases, steps).group_by("rank", "step", "direction").len("passes")
    ways = marked.group_by("rank", "step").len()["len"]
    if marked["passes"].n_unique() != 1 or set(ways) != {2}:
        return None, None
    passes = int(marked["passes"][0])
    count = 2 * passes - transfers
    return (None, None) if count < 1 or passes % count else (count, passes // count)


def _counted(transfers: pl.DataFrame, stages: int, limits: Limits) -> tuple[int | None, int | None]:
    """Micro-batches and chunks by the number of transfers; of two stages, if each rank has one chunk."""
    whole = transfers.filter(pl.all_horizontal(pl.col("rank_a", "rank_b", "step").is_not_null()))
    large = pl.col("size_bytes").is_null() | (pl.col("size_bytes") >= limits.small_ratio * pl.col("size_bytes").max())
    pairs = whole.filter(large).group_by("step", "rank_a", "rank_b", "stage_a", "stage_b").agg(count=pl.len())
    apart = pl.col("stage_b") - pl.col("stage_a")
    ways = {FORWARD: pairs.filter(apart == 1), BACKWARD: pairs.filter(apart == -1)}
    counts = {way: rows["count"].unique().to_list() for way, rows in ways.items()}
    if any(len(found) != 1 for found in counts.values()) or counts[FORWARD] != counts[BACKWARD]:
        return None, None
    passes = int(counts[FORWARD][0])
    around = pairs.filter(apart == 1 - stages) if stages > 2 else pairs.clear()
    more = around["count"].unique().to_list()
    if len(more) > 1:
        return None, None
    count = passes - (int(more[0]) if more else 0)
    if count < 1 or passes % count:
        return None, None
    return count, passes // count
