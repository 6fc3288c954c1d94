"""What is not in a timeline, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from stepscope import present


@dataclass
class _Subject:
    rows: int = 0
    reasons: list[str] = field(default_factory=list)
    failed: bool = False

    def __str__(self) -> str:
        why = "; ".join(self.reasons)
        return f"{present.plural(self.rows, 'row')}: {why}" if self.rows else why


class LeftOut:
    """Rows that are not in the file, by family."""

    def __init__(self) -> None:
        self._subjects: dict[str, _Subject] = {}
        self.is_limited = False
        """Whether anything is left out so that the file stays small."""

    def add(self, title: str, rows: int, why: str = "", *, failed: bool = False, limited: bool = False) -> None:
        """Note rows of a family, and a reason that holds for some of them.

        Args:
            title: The family's.
            rows: How many.
            why: The reason; empty if it was given.
            failed: Whether nobody knows how many more are missing.
            limited: Whether the reason is the size of the file.
        """
        subject = self._subjects.setdefault(title, _Subject())
        subject.rows += rows
        subject.failed |= failed
        self.is_limited |= limited
        if why and why not in subject.reasons:
            subject.reasons.append(why)

    def said(self) -> dict[str, str]:
        """What is left out, by the title of the family."""
        return {title: str(each) for title, each in self._subjects.items() if each.rows or each.failed}
