"""Idle time before late launches says which share of the kernels is shorter than their launch."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice.messages import words_of
from stepscope.advice.rules.idle_time import idle_time
from stepscope.advice.rules.idle_time_words import MESSAGES
from tests.advice.examples import breakdown, lost


@pytest.mark.parametrize(("ratio", "told"), [(0.69, "69% of its kernels take less time"), (0.2, None), (None, None)])
def test_short_kernels_are_told_if_they_are_many(ratio: float | None, told: str | None) -> None:
    kinds = ["compute", "memory"]
    launches = None if ratio is None else pl.DataFrame({"rank": [0, 0], "kind": kinds, "short_ratio": [ratio, 0.9]})

    (found,) = idle_time(lost(["dispatch"]), breakdown(), None, None, launch_summary=launches)

    cause = words_of(found, MESSAGES["dispatch"]).cause
    assert cause.endswith("their launch.") == (told is not None)
    assert told is None or told in cause
