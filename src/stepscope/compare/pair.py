"""A pair of runs, or of selections of runs, that is asked what differs, as a run is asked questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.advice import finding
from stepscope.advice.finding import Per
from stepscope.compare.noise import NAME
from stepscope.compare.registry import COMPARISONS, SIDE_QUESTIONS, WITH_OPTIONS, Comparison, Sides, find_comparison
from stepscope.compare.side_names import BASE, NEW, SideName, names_of
from stepscope.compare.typical import slow_and_typical
from stepscope.errors import StepscopeError, Unavailable
from stepscope.run import Rank, Run
from stepscope.run.opening import Paths, open_run
from stepscope.selection import Choice
from stepscope.tables.issues import Issue

RECORDING: Per = "recording"


class OneSide(Unavailable):
    """What a side, or both, cannot answer.

    Args:
        side: `base` or `new`; empty if neither can.
        reason: Why.
    """

    def __init__(self, side: str, reason: Unavailable) -> None:
        self.side = side
        self.reason: str = reason.reason if isinstance(reason, OneSide) else reason.marked.rstrip(".")
        tables = {cause.table for cause in reason.causes}
        table = reason.table or (tables.pop() if len(tables) == 1 else None)
        super().__init__(f"{side}: {self.reason}" if side else self.reason, table=table)


class Pair:
    """Two sides to compare: a base, and the new side that is measured against it.

    Args:
        base: The base: a run, or a selection of its ranks or steps.
        new: What is compared with it; it may be of the same run.
        chosen: Whether the user chose steps, of the base and of the new side. Chosen steps all count.
        notes: How the sides came about, as sentences for people.
        roles: What the sides are among the ranks of one run, see `SideName`.
    """

    def __init__(
        self,
        base: Run,
        new: Run,
        *,
        chosen: tuple[bool, bool] = (False, False),
        notes: Sequence[str] = (),
        roles: tuple[str, str] = ("", ""),
    ) -> None:
        self.base, self.new = base, new
        self.notes = list(notes)
        self._chosen, self._roles = chosen, roles
        self._answers: dict[Any, pl.DataFrame | Unavailable] = {}

    @property
    def name(self) -> str:
        """The names of both sides."""
        return self.base.name if self.base.name == self.new.name else f"{self.base.name} and {self.new.name}"

    @property
    def is_one_run(self) -> bool:
        """Whether both sides are of one run."""
        return self.base.original is self.new.original

    @cached_property
    def names(self) -> tuple[SideName, SideName]:
        """What people call both sides: base and new of two runs, else the ranks or steps that tell them apart."""
        if not self.is_one_run:
            return BASE, NEW
        return names_of(self.base, self.new, self._roles, self.per if any(self._chosen) else "")

    @property
    def are_ranks(self) -> bool:
        """Whether both sides are other ranks of one run in the same steps, so that they may wait for each other."""
        same_steps = not any(self._chosen) or self.base.steps == self.new.steps
        return self.is_one_run and not self._common_ranks and same_steps

    @property
    def are_apart(self) -> bool:
        """Whether no step of a rank belongs to both sides."""
        if not self.is_one_run or not self._common_ranks:
            return True
        return any(self._chosen) and set(self.base.steps).isdisjoint(self.new.steps)

    @property
    def _common_ranks(self) -> set[int]:
        return {rank.rank for rank in self.base.ranks} & {rank.rank for rank in self.new.ranks}

    @property
    def path(self) -> Path:
        """Where the new side is."""
        return self.new.path

    @property
    def sides(self) -> Sequence[Run]:
        """The runs, each once."""
        return [self.base] if self.base is self.new else [self.base, self.new]

    @property
    def ranks(self) -> Sequence[Rank]:
        """The ranks of both sides."""
        return [*self.base.ranks, *(() if self.base is self.new else self.new.ranks)]

    @property
    def unread(self) -> Sequence[Issue]:
        """Inputs of both sides that could not be read."""
        return list(dict.fromkeys(issue for side in self.sides for issue in side.unread))

    @property
    def others(self) -> Sequence[Run]:
        """Other runs beside either side."""
        return [other for side in self.sides for other in side.others]

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings about opening either side."""
        return list(dict.fromkeys(warning for side in self.sides for warning in side.warnings))

    @property
    def issues(self) -> pl.DataFrame:
        """What the import skipped or guessed, of both sides."""
        return pl.concat([side.issues for side in self.sides]).unique(maintain_order=True)

    @cached_property
    def per(self) -> Per:
        """What the windows of the new side are: steps, iterations that were found, or the whole recording."""
        found: Per = self.new.analyse(finding.per_of, otherwise="step")
        return found

    @cached_property
    def without_steps(self) -> str:
        """The side of which no steps are known, so that its whole recording stands against a step of the other one:
        `base`, `new`, or empty if both sides are alike."""
        of_base: Per = self.base.analyse(finding.per_of, otherwise="step")
        if (of_base == RECORDING) == (self.per == RECORDING):
            return ""
        return BASE.label if of_base == RECORDING else NEW.label

    def select(
        self, *, base_ranks: Choice = None, ranks: Choice = None, base_steps: Choice = None, steps: Choice = None
    ) -> Pair:
        """Compare only some ranks and steps.

        Args:
            base_ranks: Ranks of the base. Default: those of `ranks`; in one run, where `ranks` are chosen, a typical
                rank other than these.
            ranks: Ranks of the new side. Default: all; in one run all but those of the base, or if nothing is chosen,
                the slowest rank.
            base_steps: Steps of the base. Default: those of `steps`.
            steps: Steps of the new side. Default: all; in one run all but those of the base.

        Raises:
            StepscopeError: If there are no such ranks or steps, or nothing to compare in one run.
        """
        notes, roles = list(self.notes), self._roles
        both_steps = (steps if base_steps is None else base_steps, steps)
        if self.is_one_run and base_ranks is None and base_steps is None and self.base is self.new:
            found = slow_and_typical(self.new, ranks)
            base_ranks, ranks, roles = found.base, found.new, found.roles
            notes.append(found.why)
        elif base_ranks is None and ranks is not None:
            base_ranks = ranks if base_steps is not None or not self.is_one_run else base_ranks
        elif self.base is self.new:
            ranks, steps = _others(self.new, base_ranks, ranks, base_steps, steps)
            both_steps = (both_steps[0], steps)
        sides = [
            _selected(side, chosen, of)
            for side, chosen, of in zip((self.base, self.new), (base_ranks, ranks), both_steps, strict=True)
        ]
        given = tuple(before or of is not None for before, of in zip(self._chosen, both_steps, strict=True))
        return Pair(*sides, chosen=(given[0], given[1]), notes=notes, roles=roles)

    def analyse(self, question: str, /, **options: Any) -> pl.DataFrame:
        """Answer a comparison.

        Raises:
            Unavailable: If a side cannot answer, with the reason.
            StepscopeError: If there is no such comparison or option.
        """
        return self._answer(find_comparison(question), options)

    def _answer(self, asked: Comparison, options: Mapping[str, Any]) -> pl.DataFrame:
        unknown = [name for name in options if name not in asked.options]
        if unknown:
            raise StepscopeError(f"{asked.name} has no option {unknown[0]!r}")
        limits = self.new.limits.get(NAME)
        if limits is not None and "limits" in asked.options:
            options = {"limits": limits, **options}
        key = (asked.name, tuple(sorted(options.items())))
        if key not in self._answers:
            try:
                self._answers[key] = self._kept(asked, options)
            except Unavailable as reason:
                self._answers[key] = reason
        found = self._answers[key]
        if isinstance(found, Unavailable):
            raise found
        return found

    def _kept(self, asked: Comparison, options: Mapping[str, Any]) -> pl.DataFrame:
        """The answer, which of two sides of one run is kept on disk: there is one for whoever asks again."""

        def compute() -> pl.DataFrame:
            return asked.checked(asked.function(**self._supplied(asked), **options))

        if not self.is_one_run:
            return compute()
        sides = [[(rank.rank, rank.steps) for rank in side.ranks] for side in (self.base, self.new)]
        return self.new.original.keep(asked, {**asked.options, **options}, (*sides, self._chosen), compute)

    def _supplied(self, asked: Comparison) -> dict[str, Sides | pl.DataFrame | None]:
        found: dict[str, Sides | pl.DataFrame | None] = {}
        for name, required in asked.parameters.needs.items():
            try:
                found[name] = self.analyse(name) if name in COMPARISONS else self._sides(name)
            except Unavailable:
                if required:
                    raise
                found[name] = None
        return found

    def _sides(self, name: str) -> Sides:
        """What both sides answer.

        Raises:
            Unavailable: If one has no answer; the reason names it.
        """
        answers: list[pl.DataFrame] = []
        missing: list[OneSide] = []
        for place, side, chosen in zip(("base", "new"), (self.base, self.new), self._chosen, strict=True):
            try:
                question, options = WITH_OPTIONS.get(name, (SIDE_QUESTIONS.get(name, name), {}))
                more = {"with_first": chosen} if name == "side_steps" else options
                answers.append(side.analyse(question, **more))
            except Unavailable as reason:
                missing.append(OneSide(place, reason))
        if missing:
            both = len(missing) == 2 and missing[0].reason == missing[1].reason
            raise OneSide("", missing[0]) if both else missing[0]
        return Sides(*answers)


def _others(run: Run, base_ranks: Choice, ranks: Choice, base_steps: Choice, steps: Choice) -> tuple[Choice, Choice]:
    """Ranks and steps of the new side of one run: where only the base's were chosen, the others."""
    if base_ranks is not None and ranks is None and base_steps is None:
        of_base = {rank.rank for rank in run.select(ranks=base_ranks).ranks}
        ranks = [rank.rank for rank in run.ranks if rank.rank not in of_base] or None
    elif base_steps is not None and steps is None:
        of_base = set(run.select(steps=base_steps).steps)
        steps = [step for step in run.steps if step not in of_base] or None
    return ranks, steps


def _selected(run: Run, ranks: Choice, steps: Choice) -> Run:
    found = run if ranks is None else run.select(ranks=ranks)
    return found if steps is None else found.select(steps=steps)


def compare(
    base: Paths | Run,
    new: Paths | Run | None = None,
    *,
    base_ranks: Choice = None,
    ranks: Choice = None,
    base_steps: Choice = None,
    steps: Choice = None,
) -> Pair:
    """Open two runs to compare; see `Pair.analyse` for what to ask.

    Args:
        base: The base: paths, or a run that is open.
        new: What is compared with it. Default: the same run.
        base_ranks: As of `Pair.select`, like the other selections.

    Raises:
        StepscopeError: If a side cannot be opened, or lacks the chosen ranks or steps.
    """
    first = base if isinstance(base, Run) else open_run(base)
    second = first if new is None else new if isinstance(new, Run) else open_run(new)
    pair = Pair(first, second)
    if new is not None and not any(given is not None for given in (base_ranks, ranks, base_steps, steps)):
        return pair
    return pair.select(base_ranks=base_ranks, ranks=ranks, base_steps=base_steps, steps=steps)
