"""The time that a rank spends without waiting for others, as views show it."""

from __future__ import annotations

import pytest

from stepscope.live.messages import Calls, Digest
from stepscope.live.show.history import times_of

BLOCKING = Calls("all_reduce", "0", 2, 60, 20)
LAUNCHED = Calls("all_reduce", "0", 2, 60, 20, launched=True)


@pytest.mark.parametrize(
    ("digest", "own_ns"),
    [
        (Digest(0, 1, 0, 100, forward_ns=10, communication_ns=60, calls=[BLOCKING]), 40),
        (Digest(0, 1, 0, 100, forward_ns=10, communication_ns=60, calls=[BLOCKING, LAUNCHED]), 10),
        (Digest(0, 1, 0, 100, forward_ns=10, communication_ns=0), 10),
        (Digest(0, 1, 0, 100, forward_ns=10, data_ns=5, backward_own_ns=20), 35),
        (Digest(0, 1, 0, 100, communication_ns=130, calls=[BLOCKING]), 0),
        (Digest(0, 1, 0, 100, data_ns=5), 100),
    ],
)
def test_own_time_leaves_out_waits_that_are_known(digest: Digest, own_ns: int) -> None:
    assert times_of(digest).own_ns == own_ns
