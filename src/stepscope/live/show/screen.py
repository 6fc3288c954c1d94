"""The live screen: a status drawn with Rich, for any size of a terminal from 80 x 24 on.

A cell of the map is a step of a rank. Its character says how long the step took relative to the median, so that it can
be read without colours: `.` shorter, `-` as usual, then `+`, `*`, `#`, `@` ever longer.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from stepscope.live.messages import MOST_TEXT
from stepscope.live.show.history import median_of
from stepscope.live.show.sentences import action, circumstances, headline, short_name
from stepscope.live.show.status import RankStatus, Status, VerdictStatus
from stepscope.live.show.status_lines import calm, summary_of
from stepscope.live.show.view import worst_first
from stepscope.live.show.words import KINDS
from stepscope.present import Language, duration, plural

MEASURES = ("step", "data wait", "forward")
"""What the map shows; a key changes it."""
LEVELS: tuple[tuple[float, str, str], ...] = (
    (0.9, ".", "cyan"),
    (1.1, "-", "green"),
    (1.3, "+", "yellow"),
    (1.6, "*", "dark_orange"),
    (2.0, "#", "red"),
    (float("inf"), "@", "bold bright_red"),
)
"""Up to which ratio to the median a step has a character and a colour."""
UNKNOWN = (" ", "")
NARROWEST_MAP = 24
MOST_VERDICTS = 3
SMALLEST_NS = 1_000_000
"""Shorter medians, e.g. of data waits, are taken to be this long: a ratio to almost nothing says nothing."""
_LEFT, _RIGHT = 29, 16
"""Characters beside the map: rank, host and state; time and ratio."""
_STATES = {"alive": ("ok", "green"), "late": ("late", "yellow"), "lost": ("lost", "red")}


@dataclass(frozen=True)
class Screen:
    """One picture.

    Args:
        status: What it shows; None while nothing is known.
        problem: Why it is not up to date; empty if it is.
        measure: Index into `MEASURES`.
        language: Of the verdicts.
    """

    status: Status | None
    problem: str = ""
    measure: int = 0
    language: Language = "en"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """See Rich."""
        height = (options.height or console.height) - 1
        yield from self.lines(options.max_width, max(height, 10))

    def lines(self, width: int, height: int) -> list[Text]:
        """The picture in at most `height` lines of at most `width` cells."""
        foot = [_cut(Text(f"q quit   m measure: {MEASURES[self.measure]}   {_legend()}", "dim"), width)]
        if self.problem:
            foot.insert(0, _cut(Text(short_name(self.problem, 200), "bold red"), width))
        if self.status is None:
            return [_cut(Text("waiting for the manager"), width), *foot]
        head = [*_head(self.status), *self._verdicts(self.status, width, height)]
        head = [_cut(line, width) for line in head][: max(height - len(foot) - 3, 2)]
        room = height - len(head) - len(foot)
        return [*head, *self._map(self.status, width, room), *foot]

    def _verdicts(self, status: Status, width: int, height: int) -> list[Text]:
        if not status.open:
            lines = [Text(calm(status, self.language), "green")]
            if status.over:
                last = status.over[0].verdict
                over = f"over: {headline(last, self.language)} ({circumstances(last, self.language)})"
                lines.append(Text(over, "dim"))
            return lines
        lines = []
        for one in status.open[:MOST_VERDICTS]:
            lines += self._verdict(one, status, width, height)
        if (more := len(status.open) - MOST_VERDICTS) > 0:
            lines.append(Text(f"and {plural(more, 'more verdict')}: see stepscope live status", "dim"))
        return lines

    def _verdict(self, one: VerdictStatus, status: Status, width: int, height: int) -> list[Text]:
        """What is found, and why; of a single verdict also what to do. An explanation takes a sixth of the screen
        at most, so that ranks stay visible."""
        verdict, is_alone = one.verdict, len(status.open) == 1
        lines = [
            Text(f"! {headline(verdict, self.language)}", "bold red"),
            Text(f"  {circumstances(verdict, self.language)}", "red"),
        ]
        if verdict.explanation:
            most = max(height // 6, 2) if is_alone else 1
            lines += _wrapped(short_name(verdict.explanation, MOST_TEXT), width, most)
        if is_alone:
            told = action(verdict, one.framework, one.device, self.language)
            lines += _wrapped(told, width if self.language == "en" else width // 2)
        return lines

    def _map(self, status: Status, width: int, room: int) -> list[Text]:
        """Heading, one line for each of the worst ranks, and a line for the rest."""
        if not status.ranks or room < 2:
            return []
        blamed = status.blamed
        worst = worst_first(status.ranks, blamed)
        fits = len(worst) <= room - 1
        shown = worst if fits else worst[: max(room - 2, 0)]
        if fits:
            shown = sorted(shown, key=lambda one: one.rank)
        steps = _columns(shown, max(width - _LEFT - _RIGHT, NARROWEST_MAP))
        median = median_of(value for one in shown for value in self._values(one).values())
        lines = [_cut(_heading(steps, self.measure, median), width)]
        lines += [_cut(self._row(one, steps, median, one.rank in blamed), width) for one in shown]
        if not fits:
            lines.append(_cut(_rest(worst[len(shown) :]), width))
        return lines

    def _values(self, one: RankStatus) -> dict[int, int | None]:
        return {recent[0]: recent[1 + self.measure] for recent in one.recent}

    def _row(self, one: RankStatus, steps: Sequence[int], median: int | None, blamed: bool) -> Text:
        state, colour = ("idle", "yellow") if one.is_idle else _STATES.get(one.state, (one.state, ""))
        row = Text(f"{'!' if blamed else ' '}{one.rank:>6} ", "bold red" if blamed else "")
        host = one.host if len(one.host) <= 14 else f"{one.host[:13]}~"
        row.append(f"{host:<14} ").append(f"{state:<5} ", colour)
        values = self._values(one)
        for step in steps:
            character, style = _level(values.get(step), median)
            row.append(character, style)
        row.append(" " * (NARROWEST_MAP - len(steps)))
        times = (one.step_ns, one.data_ns, one.forward_ns)[self.measure]
        ratio = "" if one.own_ratio is None else f"{min(one.own_ratio, 99.9):.2f}x"
        row.append(f" {'-' if times is None else duration(times):>9} {ratio:>5}")
        return row


def _wrapped(text: str, width: int, most: int | None = None) -> list[Text]:
    """A text in lines that are indented like those of a verdict."""
    lines = textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ", max_lines=most, placeholder=" ...")
    return [Text(line) for line in lines]


def _head(status: Status) -> list[Text]:
    at = time.strftime("%H:%M:%S", time.localtime(status.at_ns / 1e9))
    switches = status.switches
    on = " ".join(KINDS[kind].en.replace(" ", "-") for kind in switches.on) or "nothing"
    line = Text(f"recording {on}")
    if switches.pending:
        line.append(f"; {plural(len(switches.pending), 'rank')} not yet", "yellow")
    if switches.failed:
        line.append(f"; {plural(len(switches.failed), 'rank')} cannot", "red")
    problems = len(status.storage.problems)
    if problems:
        line.append(f"; no records from {plural(problems, 'rank')}: {status.storage.problems[0].problem}", "red")
    return [Text(f"{summary_of(status)}   {at}", "bold"), line]


def _columns(shown: Sequence[RankStatus], room: int) -> list[int]:
    """The last steps that any of the ranks has, oldest first."""
    return sorted({recent[0] for one in shown for recent in one.recent})[-room:]


def _heading(steps: Sequence[int], measure: int, median: int | None) -> Text:
    span = f"steps {steps[0]:,} to {steps[-1]:,}" if steps else "no steps yet"
    if steps and median is None:
        span = f"no {MEASURES[measure]} was recorded"
    title = f"{'rank':>7} {'host':<14} {'state':<5} "
    place = max(len(steps), NARROWEST_MAP)
    return Text(f"{title}{span[:place]:<{place}} {MEASURES[measure]:>9} {'own':>5}", "bold")


def _rest(ranks: Sequence[RankStatus]) -> Text:
    states = {state: sum(one.state == state for one in ranks) for state in _STATES}
    typical = median_of(one.step_ns for one in ranks)
    told = ", ".join(f"{count} {_STATES[state][0]}" for state, count in states.items() if count)
    step = "" if typical is None else f"; median step {duration(typical)}"
    return Text(f"        and {plural(len(ranks), 'rank')} more, none worse: {told}{step}", "dim")


def _level(value: int | None, median: int | None) -> tuple[str, str]:
    if value is None or median is None:
        return UNKNOWN
    ratio = value / max(median, SMALLEST_NS)
    return next((character, style) for bound, character, style in LEVELS if ratio <= bound)


def _legend() -> str:
    bounds = [bound for bound, _, _ in LEVELS]
    parts = [f"{LEVELS[0][1]}<{bounds[0]:g}x", f"{LEVELS[1][1]}usual"]
    parts += [f"{LEVELS[place][1]}>{bounds[place - 1]:g}x" for place in range(2, len(LEVELS))]
    return " ".join(parts)


def _cut(line: Text, width: int) -> Text:
    line.no_wrap = True
    line.truncate(width, overflow="ellipsis")
    return line
