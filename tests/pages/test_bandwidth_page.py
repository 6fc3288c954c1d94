"""What the bandwidth page says about chosen ranks."""

from __future__ import annotations

import pytest

from tests.cli.calling import EXAMPLE, printed

NOTE = "all groups are listed"


def test_chosen_ranks_do_not_choose_groups_and_the_page_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert NOTE not in printed(capsys, "bandwidth", EXAMPLE)
    assert NOTE in printed(capsys, "bandwidth", EXAMPLE, "--ranks", "1")
