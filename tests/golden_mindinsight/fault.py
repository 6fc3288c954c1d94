"""What a fault of MindInsight is, and how a difference is known to be of that kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asked import Asked
from differing import Difference, differences

from stepscope.run import Run


@dataclass(frozen=True)
class Fault:
    """One fault.

    Args:
        name: A short name.
        kinds: Pages on which it shows, as a regular expression.
        places: Where on them, likewise.
        reason: Why ours is right, in one line.
        check: Whether a difference is of this kind.
        right: What ours has to be; None if the check itself leaves only one value.
    """

    name: str
    kinds: str
    places: str
    reason: str
    check: Callable[[Asked, Difference, Run | None], bool]
    right: Callable[[Run, Asked, Difference], Any] | None = None

    def explains(self, asked: Asked, difference: Difference, run: Run | None) -> bool:
        """Whether it is behind a difference."""
        return (
            re.fullmatch(self.kinds, asked.kind) is not None
            and re.fullmatch(self.places, difference.place) is not None
            and self.check(asked, difference, run)
            and (self.right is None or run is None or self._is_right(asked, difference, run))
        )

    def _is_right(self, asked: Asked, difference: Difference, run: Run) -> bool:
        assert self.right is not None
        return not list(differences(self.right(run, asked, difference), difference.ours))
