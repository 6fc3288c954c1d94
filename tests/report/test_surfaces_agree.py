"""The same quantity is the same wherever a report states it: verdict, facts, findings, tables, figures, files."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytest.importorskip("jinja2")
pytest.importorskip("openpyxl")

import openpyxl

from stepscope.errors import Unavailable
from stepscope.figures import figure_named
from stepscope.present import duration
from stepscope.report.answers import Answers, answers
from stepscope.report.contents import Contents, contents
from stepscope.report.html import to_html
from stepscope.report.json_report import to_json
from stepscope.report.markdown_report import to_markdown
from stepscope.report.sentences import Sentence
from stepscope.report.verdict import sentences
from stepscope.report.xlsx import write_workbook
from stepscope.run import Run, open_run
from tests.analysis.jobs import MS, job
from tests.every_format import FORMATS
from tests.report.reports import slow_run

SHARED = Path(__file__).parents[3] / "shared"

JOBS = {
    "late": slow_run,
    "slow": lambda: job(8, 5, compute={3: 1.5}, data_ns=dict.fromkeys(range(8), 4 * MS)),
    "even": lambda: job(4, 4),
}
RECORDED = {
    "dlrm": "data/pytorch/dlrm_8rank_v100",
    "gloo": "data/pytorch/cpu_gloo_4rank_straggler_r2",
    "ascend": "data/ascend/text_8rank",
    "mindspore": "data/mindspore/synthetic_dp4",
}
NAMES = [*JOBS, *(f"form {name}" for name in ("kineto", "ascend_text", "classic")), *RECORDED]


class Report:
    """A run with all that is said of it."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.run = run
        self.answers: Answers = answers(run, strict=True)
        self.found: Contents = contents(run, self.answers)
        self.html = Cells(to_html(self.found).decode())
        self.json: dict[str, Any] = json.loads(to_json(run, self.answers))
        self.markdown = to_markdown(self.found)
        write_workbook(self.found, folder / "report.xlsx")
        self.book = openpyxl.load_workbook(folder / "report.xlsx", read_only=True)

    def answer(self, question: str) -> pl.DataFrame:
        try:
            return self.run.analyse(question)
        except Unavailable as reason:
            pytest.skip(str(reason))

    def sheet(self, name: str) -> list[dict[str, Any]]:
        head, *rows = self.book[name].iter_rows(values_only=True)
        return [dict(zip(head, row, strict=True)) for row in rows]


class Cells(HTMLParser):
    """The numbers in the tables of a page, as they are sorted: by id of the table, then by row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[float | None]]] = {}
        self._rows: list[list[float | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag in ("figure", "section") and known.get("id"):
            self._rows = self.tables.setdefault(str(known["id"]), [])
        elif tag == "tr":
            self._rows.append([])
        elif tag == "td" and self._rows:
            self._rows[-1].append(float(str(known["data-v"])) if "data-v" in known else None)


@pytest.fixture(params=NAMES, scope="module")
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    name, folder = request.param, tmp_path_factory.mktemp("agree")
    if name in JOBS:
        return Report(JOBS[name](), folder)
    if name in RECORDED:
        if not (SHARED / RECORDED[name]).is_dir():
            pytest.skip("no shared recordings")
        return Report(open_run(SHARED / RECORDED[name]), folder)
    (folder / "run").mkdir()
    FORMATS[name.removeprefix("form ")](folder / "run")
    return Report(open_run(folder / "run"), folder)


def test_the_mean_step_is_one(report: Report) -> None:
    averages = report.answer("time_by_rank")
    mean = float((averages["window_ns"] * averages["steps"]).sum()) / averages["steps"].sum()

    facts = {fact.name: fact.text for fact in report.found.facts.facts}
    told = [line for line in sentences(report.answers) if isinstance(line, Sentence) and "mean_ns" in line.parameters]
    assert (facts["Steps"].split()[0], facts["Mean step"]) == (str(report.run.step_count), duration(mean))
    assert [duration(line.parameters["mean_ns"]) for line in told if line.key.startswith("average")] in (
        [duration(mean)],
        [],
    )
    for question in ("mean_summary", "job_parts"):
        assert report.answer(question)["mean_ns"].sum() == pytest.approx(mean, rel=1e-6, abs=20)


def test_shares_of_the_step_are_those_of_its_tables_and_figures(report: Report) -> None:
    shares = {share.key: share.ratio for share in report.found.facts.shares}
    groups = dict(report.answer("mean_summary").group_by("group").agg(pl.col("share_ratio").sum()).iter_rows())
    parts = dict(report.answer("job_parts").select("part", "share_ratio").iter_rows())

    exposed = sum(parts.get(part, 0.0) for part in ("wait", "transmit", "communication"))
    for column, group in (
        ("computing_ns", "computing"),
        ("communication_not_overlapped_ns", "communication"),
        ("memory_not_overlapped_ns", "memory"),
        ("free_ns", "idle"),
    ):
        assert shares.get(column, 0.0) == pytest.approx(groups.get(group, 0.0), abs=1e-6), group
    assert parts.get("computing", 0.0) == pytest.approx(groups.get("computing", 0.0), abs=1e-6)
    assert exposed == pytest.approx(groups.get("communication", 0.0), abs=1e-6)


def test_waiting_in_the_verdict_is_that_of_the_figure(report: Report) -> None:
    if report.answers.waits is None:
        pytest.skip("it is unknown how communication splits")
    parts = dict(report.answer("job_parts").select("part", "mean_ns").iter_rows())
    exposed = sum(parts.get(part, 0) for part in ("wait", "transmit", "communication"))

    waits = report.answers.waits
    assert waits.wait_ratio + waits.stage_ratio == pytest.approx(parts.get("wait", 0) / exposed, abs=1e-4)
    assert waits.transmit_ratio == pytest.approx(parts.get("transmit", 0) / exposed, abs=1e-4)


def test_savings_of_findings_are_the_same_in_all_files(report: Report) -> None:
    findings = report.json["findings"]
    sheet = report.sheet("Problems")
    cells = report.html.tables["problems-list"]

    assert len(findings) == len(sheet) == len(cells[1:]) == len(report.found.problems)
    for finding, row, shown in zip(findings, sheet, cells[1:], strict=True):
        saving = finding["saving_ns"]
        assert row["Saving (ms)"] == (None if saving is None else pytest.approx(saving / 1e6))
        assert row["Share"] == (None if saving is None else pytest.approx(finding["saving_ratio"]))
        assert shown[4] == (saving or None)
        if saving:
            line = next(line for line in report.markdown.splitlines() if line.startswith(f"| {row['#']} |"))
            assert f"| {duration(saving)} | {finding['saving_ratio']:.1%} |" in line


def test_a_slow_rank_costs_the_same_in_finding_table_and_figure(report: Report) -> None:
    table = {(row["ranks"], row["kind"]): row["cost_ns"] for row in report.answer("slow_ranks").to_dicts()}
    try:
        drawn = figure_named("savings").drawn(report.run)
    except Unavailable:
        drawn = None

    for finding in report.answers.findings:
        if finding.rule == "slow-rank" and finding.saving_ns > 0:
            kinds = [cost for (ranks, _), cost in table.items() if ranks == ", ".join(map(str, finding.ranks))]
            assert finding.saving_ns in kinds
    if drawn is not None:
        bars = report.answer("improvements").filter(pl.col("what") == "rank")
        for name, kind, saving in bars.select("name", "kind", "saving_ns").iter_rows():
            assert table[name, kind] == saving


def test_a_figure_that_measures_another_step_than_the_verdict_says_so(report: Report) -> None:
    try:
        drawn = figure_named("savings").drawn(report.run)
    except Unavailable as reason:
        pytest.skip(str(reason))
    averages = report.answer("time_by_rank")
    own = float((averages["window_ns"] * averages["steps"]).sum()) / averages["steps"].sum()
    recorded = drawn.table.rows["step_ns"][0]

    told = any(duration(own) in note and duration(recorded) in note for note in drawn.notes)
    assert told == (abs(own - recorded) >= 0.01 * recorded)


@pytest.mark.parametrize("figure", ["savings", "heat-map"])
def test_time_is_not_called_late_dispatch_where_nothing_is_launched(report: Report, figure: str) -> None:
    try:
        drawn = figure_named(figure).drawn(report.run)
    except Unavailable as reason:
        pytest.skip(str(reason))

    kinds = set(drawn.table.rows["kind"].drop_nulls())
    on_cpu = set(report.run.table("ranks").collect()["device_kind"]) == {"cpu"}
    assert not kinds & ({"dispatch"} if on_cpu else {"outside_operators"})


def test_tables_have_the_same_numbers_in_page_and_workbook(report: Report) -> None:
    items = [one for one in report.found.items if one.question in ("mean_summary", "bus_bandwidth", "transport_totals")]
    compared = 0
    for item in items:
        key = next(key for key in report.html.tables if key.endswith(f"-{item.key}-1"))
        shown = [row for row in report.html.tables[key] if any(cell is not None for cell in row)]
        numbers = [name for name, dtype in item.tables[0].rows.schema.items() if dtype.is_numeric()]
        sheet = report.sheet(_named(report, item.heading))
        assert len(sheet) == item.rows.height
        for name in numbers:
            place = item.tables[0].rows.columns.index(name)
            titles = [title for title in sheet[0] if title and _plain(title) == _title(item, name)]
            if name.endswith("_ns") and titles:
                pairs = [(row[place], other[titles[0]]) for row, other in zip(shown, sheet, strict=True)]
                assert [page is None for page, _ in pairs] == [cell is None for _, cell in pairs]
                compared += len(pairs)
                known = [(page, cell * 1e6) for page, cell in pairs if page is not None]
                assert [page for page, _ in known] == pytest.approx([cell for _, cell in known], rel=1e-5)
    assert compared or not items


def _named(report: Report, heading: str) -> str:
    return next(name for name in report.book.sheetnames if heading.startswith(name[:25]))


def _title(item: Any, name: str) -> str:
    return next(column.title for column in item.columns if column.name == name)


def _plain(title: str) -> str:
    return re.sub(r" \([^)]*\)$", "", title)
