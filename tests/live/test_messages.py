"""Messages between workers, proxies and manager: what is written is read, and what is none is refused."""

from __future__ import annotations

import pytest

from stepscope.live import messages
from stepscope.live.messages import (
    BadMessage,
    Calls,
    Digest,
    Digests,
    Group,
    Hello,
    Inside,
    from_worker,
    line_of,
    to_worker,
)

MESSAGES = [
    Hello("job", 3, 77, "host", 5, world_size=8, groups=[Group("0", [0, 1])], switches=["step"]),
    Digests([Digest(3, 9, 50, 40, forward_ns=0, calls=[Calls("all_reduce", "0", 2, 30, 10, peer=None)])], lost=1),
    messages.Pulse(3, 9, 100, [Inside("collective", 9, "all_reduce", "0", 4)]),
    messages.Applied(3, 2, ["step"], 8),
    messages.Captured(3, "c1", ["a.json"], [4, 6]),
    messages.Checked(3, "k1", {"gemm_ns": 5}),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
def test_what_a_worker_writes_is_read(message: messages.Message) -> None:
    line = line_of(message)

    assert line.count(b"\n") == 1
    assert from_worker(line) == message


def test_unknown_and_zero_stay_apart() -> None:
    read = from_worker(line_of(Digests([Digest(0, 1, 2, 3, data_ns=0)])))

    assert isinstance(read, Digests)
    assert (read.digests[0].data_ns, read.digests[0].forward_ns) == (0, None)


def test_fields_of_later_releases_are_ignored() -> None:
    assert to_worker(b'{"type":"apply","revision":3,"switches":[],"later":1}') == messages.Apply(3, [])


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"GET / HTTP/1.1",
        b'{"type":"reboot"}',
        b'{"type":"pulse","rank":"3"}',
        b'{"type":"apply","revision":1,"switches":[]}',
        b'{"type":"pulse","rank":3,"step":1e99,"idle_ns":0}',
        b"\xff\xfe",
    ],
)
def test_other_lines_are_refused(line: bytes) -> None:
    with pytest.raises(BadMessage):
        from_worker(line)


def test_a_line_that_is_too_long_is_refused_unread() -> None:
    with pytest.raises(BadMessage, match="at most 8,388,608 are read"):
        from_worker(b" " * (messages.MOST_LINE_BYTES + 1))
