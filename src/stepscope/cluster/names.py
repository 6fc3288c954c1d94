"""Names of files as hosts state them: any host may be hostile, so only plain names are taken."""

from __future__ import annotations

import re
from collections.abc import Collection

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
