"""Names of files as hosts state them: any host may be hostile, so only plain names are taken."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping

LONGEST_BYTES = 255
"""What file systems take as one name."""

_MADE = (
    re.compile(r"(?P<host>.+)(?P<rest>_\d+_\d{14,}_ascend_(?:pt|ms)(?:\.stepscope)?)"),
    re.compile(r"(?P<host>.+)(?P<rest>_\d+\.(?:\d+\.)?pt\.trace\.json(?:\.gz)?(?:\.stepscope)?)"),
)
"""Names that profilers make of the host's name, the process and the time."""


def problem_of(name: str) -> str | None:
    """Why a name is not taken; None if it is plain: one component, printable, of a length that file systems take.

    Examples:
        >>> problem_of("step_trace_raw_0_detail_time.csv"), problem_of("..")
        (None, 'is not the name of a file')
    """
    if name in ("", ".", ".."):
        return "is not the name of a file"
    if "/" in name or "\\" in name:
        return "leads to another directory"
    if not name.isprintable():
        return "has control characters, or bytes that are not UTF-8"
    if len(name.encode("utf-8", "surrogateescape")) > LONGEST_BYTES:
        return "is too long"
    return None


def is_address(text: str) -> bool:
    """Whether a text is an IP address.

    Examples:
        >>> is_address("10.0.0.1"), is_address("fd00::1"), is_address("node-a")
        (True, True, False)
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class HostNames:
    """Finds hosts in the names of directories and files that users chose, and puts their ids there.

    An address counts anywhere in a name, also written with dashes, of whichever host it is; another name only as a
    whole, of the host itself: a host may have a name that means something else in part of another one.

    Args:
        names: Names of each host, by its id.
    """

    def __init__(self, names: Mapping[int, Collection[str]]) -> None:
        self._names = {host: frozenset(name for name in own if not name.isdecimal()) for host, own in names.items()}
        self._hosts: dict[str, int] = {}
        for host, own in sorted(names.items()):
            for name in own:
                if is_address(name):
                    self._hosts.setdefault(_plain(name), host)
        every = sorted(self._hosts, key=lambda one: (-len(one), one))
        pattern = "|".join(_DIVIDERS.sub("[.:_-]", one) for one in every)
        self._address = re.compile(rf"(?<![\d.:])(?:{pattern})(?![\d:]|\.\d)", re.IGNORECASE) if every else None

    def without(self, name: str, host: int) -> tuple[str, dict[str, int]]:
        """A name of a host's file with ids in the place of hosts, and what was replaced, with the host it is of."""
        if name in self._names.get(host, ()):
            return str(host), {name: host}
        found: dict[str, int] = {}
        if self._address is None:
            return name, found

        def as_id(match: re.Match[str]) -> str:
            found[match[0]] = self._hosts[_plain(match[0])]
            return str(found[match[0]])

        return self._address.sub(as_id, name), found


_DIVIDERS = re.compile(r"[.:_-]")


def _plain(address: str) -> str:
    return _DIVIDERS.sub(".", address.lower())


def host_in(name: str) -> str | None:
    """The host that a profiler put into the name of its file or directory; None if it is no such name."""
    found = next((match for made in _MADE if (match := made.fullmatch(name))), None)
    return None if found is None else found["host"]


def anonymous(name: str, known: Collection[str], host: int) -> str:
    """A name with the id of the host where a profiler put one of the host's own names; else as it is.

    Examples:
        >>> anonymous("node-a_12_20260101000000000_ascend_pt", {"node-a"}, 3)
        '3_12_20260101000000000_ascend_pt'
    """
    for made in _MADE:
        match = made.fullmatch(name)
        if match and match["host"] in known:
            return f"{host}{match['rest']}"
    return name
