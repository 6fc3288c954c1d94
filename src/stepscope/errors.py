"""The errors that stepscope raises on purpose. Each message names the thing, the place and the remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from copy import copy

from stepscope.paths import shown
from stepscope.references import as_typed


class StepscopeError(Exception):
    """Base of all errors that a user can act on; the CLI prints its text and no traceback."""

    def __str__(self) -> str:
        return as_typed(self.marked)

    @property
    def marked(self) -> str:
        """The text with its references marked (`stepscope.references`), for surfaces that name them in other words."""
        return super().__str__()


class NothingReadable(StepscopeError):
    """No input under the given paths could be read."""


class UnreadableInput(StepscopeError):
    """One input cannot be read at all; the others still can.

    Args:
        path: File or directory that failed.
        problem: What is wrong with it, with the place where known (byte, line, table).
        remedy: What the user can do about it.
    """

    def __init__(self, path: object, problem: str, remedy: str) -> None:
        self.path = shown(str(path))
        super().__init__(f"{self.path}: {problem}. {remedy}")
        self.problem = problem
        self.remedy = remedy


class NoRows(StepscopeError):
    """A choice of rows that no row meets; the text says what there is."""


class UnknownColumn(StepscopeError):
    """A column that a table does not have; the text lists those that it has."""


class Unavailable(StepscopeError):
    """An answer that this data cannot give; the text is the reason that a surface shows instead.

    Args:
        reason: The text.
        question: The analysis that cannot answer; empty if unknown.
        table: The table that it lacks, if that is the reason.
        ranks: The ranks that lack the table; empty if none of them has it.
        why: What the import reported about the missing table.
        causes: The reasons of several ranks that cannot answer, each once.
        of: Of several ranks that are asked together, those that cannot answer for this reason; empty if it is unknown
            which.
    """

    def __init__(
        self,
        reason: str,
        *,
        question: str = "",
        table: str | None = None,
        ranks: Sequence[int] = (),
        why: str = "",
        causes: Sequence[Unavailable] = (),
        of: Sequence[int] = (),
    ) -> None:
        super().__init__(reason)
        self.question = question
        self.table = table
        self.ranks = tuple(ranks)
        self.why = why
        self.causes = tuple(causes)
        self.of = tuple(of)

    def again(self, of: Sequence[int] = ()) -> Unavailable:
        """The same reason without the traceback of where it was first raised, which would keep all its frames."""
        reason = copy(self)
        reason.of = tuple(of)
        return reason


class Cancelled(StepscopeError):
    """A question was cancelled before it was answered; asked again, it starts anew."""


class ProfilerPathError(StepscopeError):
    """There is no recording where one was asked for."""


def close_matches(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests close matches of a misspelt name, or else lists all known names."""
    there = sorted(known)
    close = difflib.get_close_matches(name, there, n=3)
    return f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(there)}"


def there_are(name: str, known: Sequence[str], most: int = 8) -> str:
    """A sentence about what there is instead of a text that was asked for, near matches first.

    Examples:
        >>> there_are("hcs", ["SDMA", "HCCS"])
        'There are HCCS, SDMA'
    """
    lower = {text.lower(): text for text in reversed(known)}
    parts = {part: text for low, text in lower.items() for part in re.findall(r"\w+", low)}
    asked = name.strip().lower()
    near = [lower[low] for low in difflib.get_close_matches(asked, lower, n=3)]
    near += [parts[part] for part in difflib.get_close_matches(asked, parts, n=3)]
    first = list(dict.fromkeys([*near, *known]))
    more = f" and {len(first) - most} more" if len(first) > most else ""
    return f"There are {', '.join(_abridged(text) for text in first[:most])}{more}"


def _abridged(text: str, longest: int = 60) -> str:
    """A text of which the middle is left out if it is long: the end tells names of kernels apart."""
    half = longest // 2 - 1
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"
