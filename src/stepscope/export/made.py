"""What writing files for another tool came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

NO_PLACE = "the format has no place for them"
"""Why rows of a table are left out."""


@dataclass
class Made:
    """The result of an export.

    Args:
        files: All files written.
        left_out: What could not be made, or not completely, by file or subject, and why.
        notes: What a user should know of the files otherwise, each a sentence.
    """

    files: list[Path] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
