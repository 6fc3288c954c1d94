"""A short run of `benchmarks/live_storage.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from live_storage import Hour, Row, full_disk


@pytest.mark.parametrize(("ranks", "cap_mib"), [(30, 8), (3, 4)])
def test_the_cap_holds_and_nothing_else_is_touched(ranks: int, cap_mib: int, tmp_path: Path) -> None:
    row = Hour(tmp_path, Row("short", ranks, cap_mib)).run(3 if ranks > 3 else 10)

    assert row.holds, row
    assert row.deleted > 0 and row.dropped == 0


def test_a_full_disk_gives_one_message_and_writing_goes_on(tmp_path: Path) -> None:
    row = full_disk(tmp_path)

    assert row.holds, row
    assert row.messages == 1 and row.dropped > 0
