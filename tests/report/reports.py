"""Reports of small runs, for tests of every surface."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from builders import MS, make_run
from stepscope.advice import worded
from stepscope.present import Language
from stepscope.report.answers import answers
from stepscope.report.contents import Contents, contents
from stepscope.run import Run

HOSTILE = (
    '<script>alert("x")</script>',
    "</script><img src=x onerror=alert(1)>",
    '=cmd|"/c calc"!A1',
    "+1",
    "@SUM(1)",
    "-2+3",
    "\x1b[31mred\x1b]0;title\x07",
    "{{ 7 * 7 }}{% raw %}",
    "[link](javascript:alert(1)) | `code` <b>",
    "n" * 100_000,
)
"""Names that must do no harm anywhere."""


def slow_run() -> Run:
    """Four ranks, the third of which computes longer in each step."""
    return make_run(ranks=4, steps=4, late={2: 30 * MS})


def hostile_run() -> Run:
    """A run whose kernels have hostile names."""
    run = make_run(ranks=2, steps=5)
    frames = {}
    for rank in run.ranks:
        tables = {name: run.select(ranks=[rank.rank]).table(name).collect() for name in ("ranks", "steps", "kernels")}
        kernels = tables["kernels"].with_columns(name=pl.Series(HOSTILE[: tables["kernels"].height]))
        frames[rank.rank] = {**tables, "kernels": kernels}
    return Run.from_frames(frames, name="<i>run</i>")


def report_of(run: Run, language: Language = "en") -> Contents:
    return contents(run, answers(run, strict=True), language)


def first_problem(found: Contents, **changes: object) -> Contents:
    """The report with its first finding changed."""
    first, *others = found.problems
    changed = replace(first, finding=replace(first.finding, **changes))
    return replace(found, problems=[changed, *others])


def costly(found: Contents) -> Contents:
    """The report with its first finding as one of which no replay shows what it saves."""
    first, *others = found.problems
    finding = replace(first.finding, replayed=False)
    changed = replace(first, finding=finding, words=worded(finding, found.language), saving_known=False)
    return replace(found, problems=[changed, *others])
