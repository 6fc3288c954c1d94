"""What a user wants to change in a job, as words: `rank=6`, `op=FlashAttention,0.7`, `link=0-4`, `2x`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stepscope.errors import StepscopeError

WHERE: Mapping[str, str] = {
    "rank": "ranks, e.g. 0,3-5",
    "host": "name of a host",
    "group": "key or name of a process group, or ranks that form a parallel group, e.g. 0-3",
    "stage": "number of a pipeline stage",
    "step": "steps, e.g. 10-12",
    "kind": "kind of work",
    "op": "part of the name of a kernel, a call, or an operator that launched it",
    "link": "two ranks or two hosts, e.g. 0-4: the calls that both take part in",
    "nic": "ranks, or a host: their calls with other hosts, or all of them if there is one host",
    "transport": "what calls move data over, e.g. RDMA",
    "size": "bytes of a call, e.g. 1MB-64MB, 4MB-, -1MB",
}
"""What a change can be limited to."""

OF_CALLS = ("link", "nic", "transport", "size")
"""Words that name communication only."""

PLACES = ("rank", "host", "group", "stage", "link", "nic", "transport")
"""Words that name a part of the job; the rest of it shows what is typical."""

_UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


@dataclass(frozen=True)
class Change:
    """A change of some work.

    Args:
        text: The words of it, for messages.
        where: Which work, by what of `WHERE` it names; all of them must hold.
        factor: Its duration times this; None: without what it takes longer than the same on comparable ranks.
    """

    text: str
    where: Mapping[str, str]
    factor: float | None = None

    @property
    def names_calls(self) -> bool:
        """Whether it is about communication."""
        words = ("group", "op", *OF_CALLS)
        kind = self.where.get("kind")
        return kind == "communication" or (kind is None and any(name in self.where for name in words))

    @property
    def must_be_calls(self) -> bool:
        """Whether it is about nothing but communication."""
        return self.where.get("kind") == "communication" or any(name in self.where for name in OF_CALLS)


def without(text: str) -> list[Change]:
    """Changes that take away an excess, e.g. `rank=6` or `rank=0,3-5,kind=dispatch; host=node3`.

    Raises:
        StepscopeError: If a part is not understood.
    """
    return [Change(f"«--without» {part}", _where(part, f"«--without» {part}")) for part in _parts(text, "«--without»")]


def scaled(text: str) -> list[Change]:
    """Changes of durations by a factor, e.g. `op=FlashAttention,0.7` or `rank=3,kind=computing,0.9`.

    Raises:
        StepscopeError: If a part is not understood.
    """
    found = []
    for part in _parts(text, "«--scale»"):
        named = f"«--scale» {part}"
        where, comma, factor = part.rpartition(",")
        wanted = f"{named}: give which work and a factor, e.g. op=FlashAttention,0.7"
        if not comma:
            raise StepscopeError(wanted)
        found.append(Change(named, _where(where, named), factor_of(factor, wanted, or_none=True)))
    return _each_once(found)


def faster(text: str) -> list[Change]:
    """Changes of how fast communication moves data, e.g. `2x` or `transport=RDMA,2x`.

    Raises:
        StepscopeError: If a part is not understood.
    """
    found = []
    for part in _parts(text, "«--bandwidth»"):
        named = f"«--bandwidth» {part}"
        where, comma, factor = part.rpartition(",")
        value = factor_of(factor, f"{named}: give a factor, e.g. 2x, or which communication as well: transport=RDMA,2x")
        words = _where(where, named) if comma else {}
        if words.get("kind", "communication") != "communication":
            raise StepscopeError(f"{named}: only communication has a bandwidth. For other work, use «--scale»")
        found.append(Change(named, {**words, "kind": "communication"}, 1 / value))
    return _each_once(found)


def _each_once(changes: list[Change]) -> list[Change]:
    """The changes, of which no two may be about the same work: which factor is meant would be unclear."""
    for number, change in enumerate(changes):
        if any(change.where == other.where for other in changes[:number]):
            raise StepscopeError(f"{change.text}: the same work has a factor already. Give it one factor")
    return changes


def factor_of(text: str, problem: str, *, or_none: bool = False) -> float:
    """The factor that a text such as `0.7`, `2x` or `70%` stands for, above 0 and finite; `or_none`: or 0.

    Raises:
        StepscopeError: With this text, if it is none.
    """
    word = text.strip().lower()
    try:
        value = float(word[:-1]) / 100 if word.endswith("%") else float(word.removesuffix("x"))
    except ValueError:
        raise StepscopeError(problem) from None
    if not (1e-6 < value < 1e6 or (or_none and value == 0)):
        raise StepscopeError(f"{problem}; the factor must be {'0 or more' if or_none else 'above 0'}, up to a million")
    return value


def sizes_of(text: str, option: str) -> tuple[float, float]:
    """The least and the greatest size that a text stands for; a single size stands for all within 1 %.

    Raises:
        StepscopeError: If it is not understood.

    Examples:
        >>> sizes_of("1MB-64MB", ""), sizes_of("-2kB", "")
        ((1000000.0, 64000000.0), (0.0, 2000.0))
    """
    low, dash, high = text.partition("-")
    if not dash:
        exact = _bytes(low, text, option)
        return 0.99 * exact, 1.01 * exact
    least = _bytes(low, text, option) if low.strip() else 0.0
    most = _bytes(high, text, option) if high.strip() else float("inf")
    if most < least or not text.strip("- "):
        raise _bad_size(text, option)
    return least, most


def _bytes(text: str, whole: str, option: str) -> float:
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[2].lower() not in _UNITS:
        raise _bad_size(whole, option)
    return float(found[1]) * _UNITS[found[2].lower()]


def _bad_size(text: str, option: str) -> StepscopeError:
    return StepscopeError(f"{option}: size `{text}` is not understood. Give e.g. 4MB, 1MB-64MB, 64MB- or -1MB")


def _parts(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if not parts:
        raise StepscopeError(f"{option} {text!r}: {_known()}")
    return parts


def _where(text: str, option: str) -> dict[str, str]:
    """The words of a change; a word without a name goes on with the value before it, as in `rank=0,3-5`."""
    found: dict[str, str] = {}
    last = ""
    for word in text.split(","):
        name, equals, value = (one.strip() for one in word.partition("="))
        if not equals and last and name:
            found[last] += f",{name}"
            continue
        if not equals or name not in WHERE or not value:
            raise StepscopeError(f"{option}: `{word.strip()}` is not understood. {_known()}")
        if name in found:
            raise StepscopeError(f"{option}: {name}= stands there twice. Separate changes by `;`")
        found[name] = value
        last = name
    return found


def _known() -> str:
    return "Give one or several of " + ", ".join(f"{name}=..." for name in WHERE)
