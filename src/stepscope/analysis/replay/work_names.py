"""What the work of a job can be named by, for changing it in a replay."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.methods.named_work import NamedWork
from stepscope.analysis.methods.scenario import WHERE
from stepscope.analysis.methods.work_index import WorkIndex
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.replay import NO_STEPS
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

COLUMNS = columns(
    Column("word", "string", "Word of a change, e.g. `rank`.", values=tuple(WHERE)),
    Column("names", "string", "What it can name in this job; of many, the first, or those that take longest."),
    Column("count", "int64", "Number of such names."),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def work_names(
    work_graph: Prepared[JobGraph],
    work_index: Prepared[WorkIndex],
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    links: pl.LazyFrame | None,
    transports: pl.LazyFrame | None,
    parallel_layout: pl.DataFrame,
) -> pl.DataFrame:
    """List what `what_if` can name in this job: one row per word of which something was recorded.

    Raises:
        Unavailable: If no work lies in a step.
    """
    graph = work_graph()
    if not graph.steps:
        raise Unavailable(NO_STEPS)
    named = NamedWork(graph, work_index(), ranks.collect(), groups, operators, links, transports, parallel_layout)
    known = named.known()
    rows = [(word, *known[word]) for word in WHERE if word in known]
    return pl.DataFrame(rows, schema=names(COLUMNS), orient="row")
