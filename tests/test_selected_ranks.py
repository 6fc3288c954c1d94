"""What is said of a rank is the same whether the user selects some ranks or none."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import advise, worded
from stepscope.analysis import ANALYSES, breakdown
from stepscope.analysis.registry import Analysis
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from stepscope.run import Run
from stepscope.run import run as run_module
from stepscope.tables import LINKS
from tests.analysis.jobs import MS, job


def slow_job() -> Run:
    """Eight ranks, of which 2 computes far longer and 5 somewhat longer."""
    return job(compute={2: 1.5, 5: 1.2})


def with_slow_link() -> Run:
    """Eight ranks in a ring of links, of which that from 3 to 4 is slow."""
    healthy = job()
    frames = {}
    for rank in healthy.ranks:
        tables = {name: rank.table(name).collect() for name in ("steps", "kernels", "collectives", "slices")}
        link = {
            "source": rank.rank,
            "destination": (rank.rank + 1) % 8,
            "duration_ns": MS * (5 if rank.rank == 3 else 1),
        }
        rows = [{**link, "step": 1, "operation": "all_reduce", "transport": "HCCS", "size_bytes": 10**6}]
        frames[rank.rank] = {**tables, "links": LINKS.conform(pl.DataFrame(rows))}
    return Run.from_frames(frames)


@pytest.mark.parametrize("ranks", ["2", "0,2", "0,5", "2,5", "0-1", "0-7"])
def test_what_a_slow_rank_costs_does_not_depend_on_the_selected_ranks(ranks: str) -> None:
    run = slow_job()
    chosen = run.select(ranks=ranks)
    numbers = [rank.rank for rank in chosen.ranks]

    assert chosen.analyse("slow_ranks").equals(run.analyse("slow_ranks").filter(pl.col("rank").is_in(numbers)))
    of_these = [finding for finding in advise(run) if finding.rule == "slow-rank" and finding.ranks[0] in numbers]
    assert [finding for finding in advise(chosen) if finding.rule == "slow-rank"] == of_these


def test_a_selection_in_two_steps_is_one_of_the_whole_job() -> None:
    run = slow_job()

    for chosen in (
        run.select(ranks="2,5").select(steps="2-4"),
        run.select(steps="2-4").select(ranks="2,5"),
        run.select(ranks="0-5").select(ranks="2,5", steps="2-4"),
        run.select(ranks="2,5").with_options({}).select(steps="2-4"),
    ):
        assert chosen.analyse("slow_ranks").equals(run.select(steps="2-4").analyse("slow_ranks"))


def test_a_link_belongs_to_both_of_its_ends() -> None:
    run = with_slow_link()

    for ranks, found in (("3", 1), ("4", 1), ("3-4", 1), ("0-2", 0)):
        chosen = run.select(ranks=ranks)
        assert chosen.analyse("slow_links").height == found
        links = [(one.where, one.saving_ns) for one in advise(chosen) if one.rule == "slow-link"]
        assert links == [(one.where, one.saving_ns) for one in advise(run) if one.rule == "slow-link"][:found]


def test_a_group_belongs_to_each_of_its_members() -> None:
    groups = pl.DataFrame({"group": ["a", "b", "c"], "ranks": ["0, 1", "2, 3", "4, 12"], "source": [None, 3, None]})
    of_ranks = ANALYSES["slow_groups"].of_ranks

    assert of_ranks(groups, [1, 2])["group"].to_list() == ["a", "b"]
    assert of_ranks(groups, [3, 12, 13])["group"].to_list() == ["b", "c"]
    assert of_ranks(groups, [5])["group"].to_list() == []


def test_nothing_is_said_of_the_job_if_nothing_stands_out_on_the_selected_ranks() -> None:
    run = job(compute={2: 1.5}, calls=1)

    assert verdict(answers(run.select(ranks="0-1"))).startswith("Nothing stands out on ranks 0-1. ")
    assert verdict(answers(run.select(ranks="1")), "zh").startswith("rank 1 上没有突出的问题。")
    assert verdict(answers(run.select(ranks="1-2"))).startswith("Rank 2 computes slowly")
    assert verdict(answers(job(calls=1))).startswith("No rank, link or stage stands out. ")


def test_what_is_known_of_all_ranks_is_not_computed_again_for_some(monkeypatch: pytest.MonkeyPatch) -> None:
    run, asked = slow_job(), []
    whole = run.analyse("breakdown")
    call = run_module.Supplier._call

    def counted(self: object, analysis: Analysis, *arguments: object) -> object:
        asked.append(analysis.name)
        return call(self, analysis, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(run_module.Supplier, "_call", counted)
    chosen = run.select(ranks="2,5").analyse(breakdown)

    assert asked == []
    assert chosen.equals(whole.filter(pl.col("rank").is_in([2, 5])))


def test_a_finding_about_some_ranks_of_a_job_says_so() -> None:
    frames = {
        rank.rank: {name: rank.table(name).collect() for name in ("steps", "kernels", "collectives", "slices")}
        for rank in slow_job().ranks
        if rank.rank != 7
    }
    calls = {
        rank: tables["collectives"].with_columns(group_size=pl.lit(8, pl.Int32)) for rank, tables in frames.items()
    }
    run = Run.from_frames({rank: {**tables, "collectives": calls[rank]} for rank, tables in frames.items()})

    found = [finding for finding in advise(run) if finding.rule == "slow-rank"]

    assert [finding.ranks for finding in found] == [[2], [5]]
    for finding in found:
        assert finding.saving_low_ns == 0 < finding.saving_ns
        assert worded(finding).summary.endswith(". Only recorded ranks are compared: 1 rank is missing.")
        assert "nothing if the missing rank is as late" in worded(finding).saving_basis
        assert worded(finding, "zh").summary.endswith("。仅比较了已记录的 rank：缺少 1 个。")
    assert run.analyse("segments")["transmit_ns"].sum() == run.analyse("segments")["wait_ns"].sum() == 0
