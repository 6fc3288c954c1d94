"""How far the replay that found a saving is off."""

from __future__ import annotations

from typing import Any

from stepscope.advice.messages import Text
from stepscope.analysis.methods.saving_range import TRUSTED_RATIO

OFF = Text(
    "[; the replay is {error_ratio:percent} off the recording, so this is uncertain]",
    "[；重放与记录相差 {error_ratio:percent}，因此不确定]",
)
"""End of a basis; parameter `error_ratio`, as `replay_error` gives it."""


def replay_error(row: dict[str, Any]) -> float | None:
    """How far the replay is off (`error_ratio`), if that is too far to be certain."""
    error = abs(row["error_ratio"] or 0.0)
    return error if error > TRUSTED_RATIO else None
