"""What a report says, whatever surface shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from builders import MS, make_run
from stepscope.advice import RULES, Finding
from stepscope.advice.finding import Related
from stepscope.figures import FIGURES
from stepscope.pages import PAGES
from stepscope.pages.job import PAGE
from stepscope.report.answers import answers
from stepscope.report.contents import Contents, Part, contents, part_of
from stepscope.report.html import to_html
from stepscope.report.markdown_report import to_markdown
from stepscope.report.outline import MODULES
from stepscope.report.problems import related
from stepscope.run import Run, open_run
from tests.report.reports import hostile_run, report_of, slow_run
from tests.traces import EPOCH_NS, RankTrace, Span, write_kineto


def part(found: Contents, key: str) -> Part:
    return next(part for module in found.modules for part in module.parts if part.key == key)


def test_a_slow_rank_is_a_problem_with_all_its_words() -> None:
    found = report_of(slow_run())

    problem = found.problems[0]
    assert (problem.number, problem.finding.rule, problem.category) == (1, "slow-rank", "Overall")
    assert problem.words.summary.startswith("Rank 2 computes slowly")
    assert [(fact.name, fact.text) for fact in problem.places] == [
        ("Ranks", "2"),
        ("When it costs most", "0 us to 130.00 ms after the start of the recording"),
    ]
    assert part(found, "slow-ranks").problems == [problem]


def test_each_finding_is_in_exactly_one_part() -> None:
    found = report_of(slow_run())

    shown = [problem.number for module in found.modules for part in module.parts for problem in part.problems]
    assert sorted(shown) == [problem.number for problem in found.problems]


@pytest.mark.parametrize("rule", sorted(RULES))
def test_each_rule_has_a_part(rule: str) -> None:
    assert part_of(Finding(rule, "any")) in {part.key for module in MODULES for part in module.parts}


def test_each_table_of_the_outline_is_a_section_of_a_page() -> None:
    names = [name for module in MODULES for part in module.parts for name in part.tables]

    there = {f"{page.name}/{key}" for page in (PAGE, *PAGES) for key in page.keys}
    assert [name for name in names if not name.startswith("/") and name not in there] == []
    assert len(set(names)) == len(names)


def test_a_part_without_data_says_what_is_missing_and_how_to_record_it() -> None:
    memory = part(report_of(make_run()), "memory")

    assert memory.items == []
    assert any("Peak memory of each rank" in sentence for sentence in memory.missing)
    assert "profile_memory=True" in memory.record


def test_a_workbook_gets_each_answer_once_and_whole() -> None:
    found = report_of(hostile_run())

    questions = [item.question for item in found.items]
    assert len(set(questions)) == len(questions)
    kernels = next(item for item in found.items if item.question == "kernel_totals")
    assert kernels.rows["name"].n_unique() == 10


def test_findings_without_modules_have_the_same_evidence() -> None:
    run = slow_run()
    whole, without = (contents(run, answers(run), modules=modules) for modules in (True, False))

    shown = [
        [
            (item.key, item.heading, item.notes, [table.rows.to_dicts() for table in item.tables])
            for item in one.evidence
        ]
        for found in (whole, without)
        for one in found.problems
    ]
    assert any(shown)
    assert shown[: len(whole.problems)] == shown[len(whole.problems) :]
    assert list(without.items) == []


def test_the_words_of_a_chinese_report_are_chinese() -> None:
    found = report_of(slow_run(), "zh")

    assert [module.heading for module in found.modules] == ["总体性能", "快慢 rank 比对", "性能问题分析"]
    assert found.verdict[0].startswith("rank 2 计算慢")
    assert found.problems[0].priority == "高优先级"


def test_a_chinese_report_has_no_english_sentences_and_coded_values() -> None:
    found = report_of(slow_run(), "zh")
    notes = [note for module in found.modules for part in module.parts for note in part.notes]
    (slow,) = [item for item in found.items if item.question == "slow_ranks"]
    shown = slow.tables[0].rows

    assert notes
    assert all("一" <= note[0] <= "鿿" for note in notes)
    assert (shown["kind"].to_list(), shown["pattern"].to_list()) == (["计算"], ["始终"])
    assert slow.rows["kind"].to_list() == ["computing"]  # as JSON has it


def test_the_split_of_the_average_step_adds_up() -> None:
    shares = report_of(slow_run()).facts.shares

    assert shares[0].key == "computing_ns"
    assert sum(share.ratio for share in shares) == pytest.approx(1)


def test_facts_say_how_many_steps_were_recorded_and_how_many_count() -> None:
    def facts(steps: int, **columns: pl.Expr) -> dict[str, str]:
        made, frames = make_run(ranks=2, steps=steps), {}
        for rank in range(2):
            of = {name: made.select(ranks=[rank]).table(name).collect() for name in ("ranks", "steps", "kernels")}
            frames[rank] = {**of, "steps": of["steps"].with_columns(**columns)}
        run = Run.from_frames(frames)
        return {fact.name: fact.text for fact in report_of(run).facts.facts} | {"listed": str(run.step_count)}

    start = pl.col("window_start_ns") - pl.when(pl.col("step") == 1).then(900 * MS).otherwise(0)
    plain, warming = facts(6), facts(6, window_start_ns=start)
    whole = facts(1, window=pl.lit("recording"), step=pl.lit(0, pl.Int32))

    assert (plain["Steps"], plain["listed"], plain["Mean step"]) == ("6", "6", "100.00 ms")
    assert (warming["Steps"], warming["listed"]) == ("6 recorded, 5 averaged", "6")
    assert warming["Mean step"] == "100.00 ms"
    assert whole["Whole recording"] == "100.00 ms"
    assert not whole.keys() & {"Steps", "Mean step"}
    assert whole["listed"] == "None"


def test_the_slowest_rank_is_compared_with_a_typical_one() -> None:
    compared = part(report_of(slow_run()), "compared")

    assert compared.items[0].question == "time_differences"
    assert compared.notes[0].startswith("Own work of rank 2 (slow) takes")
    assert [column.title for column in compared.items[0].columns if column.name == "new_ns"] == ["rank 2 (slow)"]


def test_a_run_is_compared_with_another() -> None:
    run, bench = make_run(ranks=2, compute_ns=70 * MS), make_run(ranks=2)

    compared = part(contents(run, answers(run), bench=bench), "compared")

    (row,) = compared.items[0].rows.filter(pl.col("part") == "computing").to_dicts()
    assert row["difference_ns"] == 10 * MS


def test_one_rank_alone_cannot_be_compared() -> None:
    compared = part(report_of(make_run(ranks=1)), "compared")

    assert [item.question for item in compared.items] == ["rank_means"]
    assert any("Time of a step by part" in sentence for sentence in compared.missing)


def test_each_figure_has_a_part() -> None:
    placed = [name for module in MODULES for each in module.parts for name in each.figures]

    elsewhere = {figure.name for figure in FIGURES if figure.of_rank or figure.of_pair or figure.for_pages}
    assert {figure.name for figure in FIGURES} - elsewhere == {*placed}
    assert len({*placed}) == len(placed)


def test_problems_name_those_that_they_explain() -> None:
    root = Finding("a", "x", where={"rank": 1}, effects=(Related("b", "y"),))
    effect = Finding("b", "y", explained_by=(Related("a", "x", (1,)),))
    first = report_of(slow_run()).problems[0]

    found = related([replace(first, number=n, finding=each) for n, each in ((1, root), (2, effect))])

    assert [(each.effects, each.roots) for each in found] == [([2], []), ([], [1])]


def test_a_figure_that_fails_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("no such colour")

    monkeypatch.setattr(type(FIGURES[0]), "drawn", fail)
    monkeypatch.delenv("STEPSCOPE_DEBUG", raising=False)

    found = contents(run := slow_run(), answers(run), figures=True)

    assert [each.figures for module in found.modules for each in module.parts if each.figures] == []
    assert "the figure job-time failed, so it is missing: ValueError: no such colour" in found.unread.warnings


def test_a_report_that_rests_on_part_of_the_data_says_so_first(tmp_path: Path) -> None:
    for rank in range(2):
        write_kineto(tmp_path, RankTrace(rank, 2, [(1, Span("ProfilerStep#1", EPOCH_NS, 10 * MS))]))
    first, second = sorted(tmp_path.iterdir())
    whole = first.read_text()
    first.write_text(whole[: len(whole) * 2 // 3])
    second.write_text("{ no trace")

    found = report_of(open_run(tmp_path))

    assert found.alert == (
        "This report rests on part of the data: 1 file was not read; 1 other file has lost data. See About the data."
    )
    second.unlink()
    assert report_of(open_run(tmp_path)).alert == (
        "This report rests on part of the data: 1 file has lost data. See About the data."
    )
    assert f'<a href="#data">{found.alert}</a>' in to_html(found).decode()
    assert f"⚠️ {found.alert}" in to_markdown(found)
    assert report_of(slow_run()).alert == ""
