"""What a report says, as data: facts of the run, verdict, findings, tables, what is missing. Surfaces lay it out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stepscope.advice import RULES
from stepscope.advice.messages import fill
from stepscope.compare import Pair
from stepscope.errors import StepscopeError, Unavailable
from stepscope.figures import FIGURES, Drawn
from stepscope.pages.answering import answer, opening_of
from stepscope.pages.compare import PAGE as COMPARE
from stepscope.pages.reasons import missing_words
from stepscope.pages.words import sentence
from stepscope.present import Language
from stepscope.report.facts import Facts, about_run
from stepscope.report.items import Absent, Asked, Item, Items
from stepscope.report.outline import MODULES, WITH_BENCH, ModuleOutline, PartOutline
from stepscope.report.problems import Problem, problem_of, related
from stepscope.report.report_words import WORDS
from stepscope.report.sentences import spoken
from stepscope.report.unread import Unread, unread_of
from stepscope.report.verdict import sentences

if TYPE_CHECKING:
    from stepscope.advice import Finding
    from stepscope.advice.daily import Prices
    from stepscope.report.answers import Answers
    from stepscope.run import Run


@dataclass(frozen=True)
class Part:
    """A part of a report, see `PartOutline`.

    Args:
        items: Its tables that have rows.
        missing: Why it lacks others, as sentences.
        figures: Its figures, if they were asked for.
        notes: Sentences that come before the tables.
    """

    key: str
    heading: str
    about: str
    problems: Sequence[Problem]
    items: Sequence[Item]
    missing: Sequence[str]
    record: str = ""
    figures: Sequence[Drawn] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Module:
    """A module of a report."""

    key: str
    heading: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Contents:
    """A whole report."""

    language: Language
    title: str
    facts: Facts
    verdict: Sequence[str]
    problems: Sequence[Problem]
    modules: Sequence[Module]
    items: Sequence[Item]
    unread: Unread
    missing_data: Sequence[str] = field(default_factory=list)

    @property
    def alert(self) -> str:
        """That data was lost while reading, so that the report rests on less than was recorded; empty if none was."""
        lost = self.unread.lost
        return fill(WORDS["alert"], lost, self.language) if any(lost.values()) else ""

    @property
    def has_costs(self) -> bool:
        """Whether a finding has a cost of which nothing is known to be saved."""
        return any(problem.costs for problem in self.problems)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many findings there are of each severity."""
        found = [problem.finding.severity for problem in self.problems]
        return {severity: found.count(severity) for severity in ("high", "medium", "low")}


def contents(
    run: Run,
    answers: Answers,
    language: Language = "en",
    *,
    bench: Run | None = None,
    figures: bool = False,
    prices: Prices | None = None,
    modules: bool = True,
    marked: bool = False,
) -> Contents:
    """Collect all that a report shows.

    Args:
        bench: Another run, to compare with; by default, the slowest rank is compared with a typical one.
        figures: Draw the figures as well.
        prices: What an hour of the job is, to state savings in a day.
        modules: Collect the tables of its modules as well, beside facts, verdict, findings and what was not read.
        marked: Leave the marks of references in what findings say, for a surface that names them in other words.
    """
    items = Items(run, answers, language, marked=marked, whole=modules)
    outlines = [WITH_BENCH if bench and outline.key == WITH_BENCH.key else outline for outline in MODULES]
    told = [_module(outline, items, bench, figures=figures) for outline in outlines] if modules else []
    problems = related([problem_of(number, each, items, prices) for number, each in enumerate(answers.findings, 1)])
    return Contents(
        language,
        run.name,
        about_run(run, answers, language, bench),
        [spoken(line, language) for line in sentences(answers)],
        problems,
        [module for each in told if (module := _with_problems(each, problems)).parts],
        items.all,
        unread_of(run, language),
        missing_words(run, language),
    )


def _module(outline: ModuleOutline, items: Items, bench: Run | None, *, figures: bool) -> Module:
    parts = [_part(part, items, bench, figures=figures) for part in outline.parts]
    return Module(outline.key, outline.heading.of(items.language), parts)


def _with_problems(module: Module, problems: Sequence[Problem]) -> Module:
    """The module with the problems of its parts, without parts that have nothing to say."""
    parts = [
        replace(part, problems=[problem for problem in problems if part_of(problem.finding) == part.key])
        for part in module.parts
    ]
    return replace(module, parts=[part for part in parts if part.problems or part.items or part.missing])


def _part(outline: PartOutline, items: Items, bench: Run | None, *, figures: bool) -> Part:
    language = items.language
    compared = _compared(items, bench) if outline.compares else Compared()
    answers = {name: one for name in outline.tables if (one := items.asked(name)) is not None}
    asked = [*compared.items, *answers.values()]
    found = [one for one in asked if isinstance(one, Item) and one.tables]
    optional = [one for name, one in answers.items() if name in outline.optional and isinstance(one, Absent)]
    missed = [one for one in asked if one not in optional] if found else asked
    return Part(
        outline.key,
        outline.heading.of(language),
        outline.about.of(language),
        [],
        found,
        list(_missing(missed, language)),
        items.platform.pick(outline.record).of(language) if outline.record and not found else "",
        list(_drawn(outline, items.run, language)) if figures else [],
        compared.notes,
    )


def _drawn(outline: PartOutline, run: Run, language: Language) -> Iterator[Drawn]:
    """The figures of a part that the run has answers for; why others are missing is said by its tables."""
    for figure in FIGURES:
        if figure.name not in outline.figures:
            continue
        try:
            yield figure.drawn(run, language=language)
        except Unavailable:
            continue
        except Exception as error:
            if os.environ.get("STEPSCOPE_DEBUG"):
                raise
            run.warnings.append(f"the figure {figure.name} failed, so it is missing: {type(error).__name__}: {error}")


@dataclass(frozen=True)
class Compared:
    """What a comparison says: sentences and tables."""

    notes: Sequence[str] = ()
    items: Sequence[Asked] = ()


def _compared(items: Items, bench: Run | None) -> Compared:
    """The run against another one, or the slowest rank against a typical one; nothing if there are no two sides."""
    try:
        answered = answer(Pair(bench or items.run, items.run), COMPARE)
    except StepscopeError as reason:
        if bench is not None:
            raise
        why = str(reason).partition(". ")[0].rstrip(".")  # what follows names options of another command
        return Compared(items=[Absent(items.heading(COMPARE.sections[0]), why)])
    said = [sentence(text, items.language) for text in opening_of(answered)]
    return Compared(said, items.of(answered))


def _missing(asked: Sequence[Asked], language: Language) -> Iterator[str]:
    """Why tables are missing, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for one in asked:
        if not isinstance(one, Item):
            reasons.setdefault(one.reason, []).append(one.heading)
    for reason, headings in reasons.items():
        listed = "、".join(headings) if language == "zh" else ", ".join(headings)
        why = sentence(reason, language)
        yield f"{listed}：{why}。" if language == "zh" else f"{listed}: {why}."


def part_of(finding: Finding) -> str:
    """The part that shows a finding: that which names its rule, else that of its rule's dimension."""
    parts = [part for module in MODULES for part in module.parts]
    named = next((part.key for part in parts if finding.rule in part.rules), None)
    dimension = RULES[finding.rule].dimension
    return named or next(part.key for part in parts if part.dimension == dimension)
