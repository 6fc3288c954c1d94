"""The pages about all ranks: their steps, communication and links."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.analysis.job.cluster_advice import KINDS
from stepscope.pages import communication, links, ranks
from stepscope.pages.answering import Request, answer, document
from stepscope.pages.base import Page
from stepscope.pages.showing import shown_sections
from stepscope.pages.shown_table import ShownTable
from stepscope.run import Run
from stepscope.tables import MEMORY_CURVE
from tests.analysis.rank_tables import MS, calls, figures, job
from tests.analysis.rank_tables import links as moved

TRANSFERS = {0: moved({(0, 1): (20_000_000, MS)}), 1: moved({(1, 0): (60_000_000, MS)})}


def shown(run: Run, page: Page, **options: Any) -> dict[str, ShownTable]:
    """The tables on the screen, by heading."""
    sections = shown_sections(answer(run, page, Request(options=options)))
    return {table.heading: table for section in sections for table in section.tables}


def test_steps_are_shown_by_their_points_and_by_their_parts() -> None:
    tables = shown(job(), ranks.PAGE)

    points = tables["Mean step of each rank by phase, stated by the profile"].rows
    parts = tables["Mean step of each rank by activity, stated by the profile"].rows
    assert points.columns == ["rank", "stage", "steps", "step_ns", "interval_ns", "forward_backward_ns", "tail_ns"]
    assert "receiving_ns" in parts.columns
    assert "interval_ns" not in parts.columns
    assert "Mean step of each pipeline stage by activity, stated by the profile" in tables
    assert not any(heading.startswith("Steps of each rank") for heading in tables)
    assert "Steps of each rank by phase, stated by the profile" in shown(job(), ranks.PAGE, by_step=True)


def test_means_of_more_steps_have_tables_of_their_own() -> None:
    stated = {rank: figures(average_interval_ns=3 * MS) for rank in range(4)}

    tables = shown(job(rank_figures=stated), ranks.PAGE)

    more = tables["Mean step of each rank by phase, averages that the profile states"].rows
    assert more["interval_ns"][0] == 3 * MS


def test_advice_names_what_it_is_about() -> None:
    rows = shown(job(links=TRANSFERS), ranks.PAGE)["What is beyond simple limits"].rows

    assert ("long interval before steps", "rank 2", "2.00 ms") in rows.select("advice", "about", "figure").rows()
    assert "link 0-1 SDMA" in rows["about"].to_list()
    assert "all ranks" in rows["about"].to_list()


def test_every_kind_of_advice_has_words() -> None:
    assert tuple(ranks._ADVICE) == KINDS


@pytest.mark.parametrize("ratios", [{"utilization_ratio": [0.5, 1.2]}, {"mfu_ratio": [1.18, None]}])
def test_a_rate_above_the_peak_is_explained_wherever_it_is_shown(ratios: dict[str, list[float]]) -> None:
    (section,) = (section for section in ranks.PAGE.sections if section.key == "rank_flops")
    rows = pl.DataFrame({"utilization_ratio": [0.5, None], "mfu_ratio": [0.4, None]}).with_columns(
        pl.Series(name, values) for name, values in ratios.items()
    )

    assert section.sentences
    (text,) = section.sentences(rows)
    assert text.startswith("No device is faster than its peak. ") and "TF32" in text
    assert not list(section.sentences(rows.with_columns(pl.lit(0.9).alias(name) for name in ratios)))


def test_links_are_shown_as_a_list_and_as_a_matrix() -> None:
    tables = shown(job(links=TRANSFERS), links.PAGE)

    assert tables["Links, mean of all its steps"].rows.height == 2
    matrix = tables["Bandwidth between ranks, bytes over time"]
    assert [column.title for column in matrix.columns] == ["from", "to 0", "to 1"]
    assert matrix.rows.rows() == [(0, None, 20e9), (1, 60e9, None)]
    assert shown(job(links=TRANSFERS), links.PAGE, source="1")["Links, mean of all its steps"].rows.height == 1


def test_communication_has_ranks_operators_and_their_links() -> None:
    run = job(communication_totals={0: calls()}, links=TRANSFERS)

    tables = shown(run, communication.PAGE, source="0-1")

    assert tables["Communication of each rank, stated by the profile"].rows["wait_ns"].to_list() == [7 * MS]
    assert tables["Operators of each rank, stated by the profile"].rows.height == 2
    chosen = shown(run, communication.PAGE, source="0-1")
    assert chosen["Links of each operator, mean of all its steps"].rows.height == 2


def test_the_curve_that_peak_memory_is_of_is_named() -> None:
    curve = {"time_ns": [1, 1], "component": ["PTA", "APP"], "reserved_bytes": [5, 9], "device": [0, 0]}
    run = job(memory_curve={0: MEMORY_CURVE.frame(**curve)})

    (note,) = document(answer(run, ranks.PAGE, Request(table="rank_memory")))["notes"]
    assert "is shown: APP of rank 0." in note
