"""Limits from a file, for all commands that judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.run import Run


def given_limits(file: Path | None) -> dict[str, Any]:
    """The sets of limits that a file changes; none without a file.

    Raises:
        StepscopeError: If it cannot be read, or names what there is not.
    """
    from stepscope.advice import limits_from
    from stepscope.limits import read_limits

    return {} if file is None else limits_from(read_limits(file), str(file))


def limited(run: Run, limits: dict[str, Any]) -> Run:
    """The run, judged by these limits."""
    return run.with_limits(limits) if limits else run
