"""The HTML file: complete, closed to the network, and harmless whatever names a recording has."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

pytest.importorskip("jinja2")

from stepscope.report.answers import answers
from stepscope.report.contents import contents
from stepscope.report.html import LONGEST_CELL, cleaned, to_html
from stepscope.report.problems import related
from stepscope.report.targets import MARK
from tests.report.reports import costly, first_problem, hostile_run, report_of, slow_run

VOID = {"meta", "img", "input", "br", "link"}


class Page(HTMLParser):
    """The elements of a page; `open` has those that were not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def text() -> str:
    return to_html(report_of(slow_run())).decode()


def test_every_element_is_closed(text: str) -> None:
    assert Page(text).open == []


def test_nothing_is_loaded(text: str) -> None:
    page = Page(text)

    assert [link for link in page.all("a") if not str(link["href"]).startswith("#")] == []
    assert not {tag for tag, attributes in page.found if {"src", "srcset"} & {*attributes} or tag == "link"}
    assert "url(" not in text
    assert "@import" not in text


def test_only_own_scripts_may_run(text: str) -> None:
    page = Page(text)
    policy = next(str(meta["content"]) for meta in page.all("meta") if "http-equiv" in meta)
    scripts = [script for script in page.all("script") if script.get("type") is None]

    assert policy.startswith("default-src 'none'")
    assert {f"script-src 'nonce-{script['nonce']}'" in policy for script in scripts} == {True}
    assert "NONCE" not in text
    assert "connect-src" not in policy


def test_figures_are_in_the_page_with_their_tables() -> None:
    pytest.importorskip("plotly")
    text = to_html(contents(run := slow_run(), answers(run), figures=True)).decode()

    page = Page(text)
    figures = [figure["id"] for figure in page.all("figure") if figure.get("class") == "ss-figure"]
    assert {"figure-job-time", "figure-time-by-rank"} <= {*figures}
    assert page.open == []
    assert len({script["nonce"] for script in page.all("script") if script.get("type") is None}) == 1
    assert len(text) < 4e6


def test_each_link_leads_to_one_place(text: str) -> None:
    page = Page(text)
    places = [str(attributes["id"]) for _, attributes in page.found if "id" in attributes]

    assert len(set(places)) == len(places)
    assert {str(link["href"])[1:] for link in page.all("a")} <= {*places}


def test_words_of_scripts_are_words(text: str) -> None:
    words = next(attributes for tag, attributes in Page(text).found if attributes.get("id") == "words")

    assert (words["data-copy"], words["data-copied"], words["data-of"]) == ("Copy", "Copied", "of")
    assert "built-in method" not in text


def test_long_names_take_several_lines_and_code_is_marked() -> None:
    found = first_problem(report_of(hostile_run()), code=())
    text = to_html(found).decode()

    assert "<td class=t>nnn" in text
    assert "<code>" in text


def test_a_finding_names_those_that_claim_its_time() -> None:
    run = slow_run()
    found = contents(run, answers(run))
    first, *_ = found.problems
    other = replace(
        first.finding, rule="memory-calls", message="stops", saving_ns=0, evidence={"claimed_by": [first.finding.rule]}
    )

    told = related([first, replace(first, number=2, finding=other)])

    assert [list(one.counted_in) for one in told] == [[], [first.number]]
    assert "in #1" in to_html(replace(found, problems=[told[0], replace(told[1], saving_known=False)])).decode()


def test_a_cost_is_a_column_of_its_own_beside_the_savings() -> None:
    found = report_of(slow_run())
    assert ">Costs</th>" not in to_html(found).decode()

    text = to_html(costly(found)).decode()

    assert ">Costs</th>" in text
    saving, share, cost = re.findall("<td[^>]*>([^<]*)</td>", text.partition("<tbody>")[2].partition("</tr>")[0])[-3:]
    assert (saving, share) == ("-", "-")
    assert re.fullmatch(r"\d+\.\d+ ms \(\d+\.\d%\)", cost)


def test_where_nothing_was_recorded_no_problem_is_denied() -> None:
    found = report_of(slow_run())
    problems = next(module for module in found.modules if module.key == "problems")
    assert any(not part.problems and not part.items for part in problems.parts)

    text = to_html(found).decode()

    for part in problems.parts:
        shown = text.partition(f'<section class="part" id="{part.key}">')[2].partition("</section>")[0]
        assert ("Too little was recorded to find problems here." in shown) == (not part.problems and not part.items)
        assert ("No problem was found here." in shown) == (not part.problems and bool(part.items))


def test_priorities_are_words_as_well_as_colours(text: str) -> None:
    assert '<span class="badge high">High priority</span>' in text


def test_hostile_names_stay_texts() -> None:
    text = to_html(report_of(hostile_run())).decode()

    page = Page(text)
    assert page.open == []
    assert len(page.all("script")) == 1
    assert page.all("img") == page.all("i") == [] or "onerror" not in str(page.all("img"))
    assert "\x1b" not in text
    assert "{{ 7 * 7 }}" in text
    assert "n" * LONGEST_CELL not in text
    assert "&lt;script&gt;alert(" in text


def test_hostile_words_of_a_finding_stay_texts() -> None:
    found = first_problem(report_of(slow_run()), code=("<img src=x>\x07.py(1): f",), where={"operators": ["</dd><b>"]})

    assert "<img" not in to_html(found).decode()


def test_long_tables_say_that_they_are_cut() -> None:
    found = report_of(slow_run())
    table = next(table for item in found.items for table in item.tables)

    assert table.found == table.rows.height
    assert '<span class="count">4 rows</span>' in to_html(found).decode()


def test_numbers_keep_their_value_for_sorting(text: str) -> None:
    assert re.search(r'<td class="?n[^>]*data-v=130000000[^>]*>130\.00 ms</td>', text)


def test_a_report_is_known_by_its_mark_and_its_language() -> None:
    text = to_html(report_of(slow_run(), "zh")).decode()

    assert MARK in text[:1000]
    assert '<html lang="zh-CN">' in text
    assert "总体性能" in text


@pytest.mark.parametrize(("name", "shown"), [("a\x00b", "a\\x00b"), ("\u202egnp", "\\u202egnp"), ("abc", "abc")])
def test_characters_that_are_obeyed_become_escapes(name: str, shown: str) -> None:
    assert cleaned(name, 100) == shown


def test_long_names_are_cut_in_the_middle() -> None:
    assert cleaned("a" * 90 + "z" * 90, 30) == "a" * 20 + " … " + "z" * 10
