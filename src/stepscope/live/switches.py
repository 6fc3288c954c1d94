"""The state of the five switches: parsed, validated and written; the same for every way to switch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from stepscope.errors import StepscopeError
from stepscope.live.kinds import NAMES, Kind

INITIAL_VARIABLE = "STEPSCOPE_LIVE_SWITCHES"
"""Kinds that a worker records until a manager or a switch file says otherwise: names separated by commas, `all` or
`none`. Default: all but communication."""
MOST_BYTES = 65_536
"""Larger switch contents are refused."""

_BY_NAME: dict[str, Kind] = {
    **{kind.value: kind for kind in Kind},
    **{names.switch.lower(): kind for kind, names in NAMES.items()},
    "forward": Kind.FORWARD,
    "savecheckpoint": Kind.CHECKPOINT,
    "comm": Kind.COMMUNICATION,
}
_STATES = {"on": True, "off": False}


class InvalidSwitch(StepscopeError):
    """A switch or value that does not exist; the message names it. The state stays as it was."""


@dataclass(frozen=True)
class Switches:
    """Which kinds of range are recorded. Any combination is valid."""

    on: frozenset[Kind] = frozenset()

    def with_changes(self, changes: Mapping[Kind, bool]) -> Switches:
        """The state after some switches were set."""
        wanted = {kind for kind, state in changes.items() if state}
        return replace(self, on=frozenset((self.on - changes.keys()) | wanted))

    def as_names(self) -> list[str]:
        """The kinds that are on, in the order of `Kind`."""
        return [kind.value for kind in Kind if kind in self.on]

    @classmethod
    def of_names(cls, names: Iterable[str]) -> Switches:
        """From the names of the kinds that are on.

        Raises:
            InvalidSwitch: For an unknown name.
        """
        return cls(frozenset(kind_of(name) for name in names))

    def as_guide(self) -> dict[str, str]:
        """As in MindCluster's `profilingSwitch`: five keys, each `on` or `off`."""
        return {names.switch: "on" if kind in self.on else "off" for kind, names in NAMES.items()}


ALL = Switches(frozenset(Kind))
DEFAULT = Switches(frozenset(Kind) - {Kind.COMMUNICATION})
"""Communication is off by default: it has the most ranges, and is only needed once something is slow."""
NONE = Switches()


def kind_of(name: str) -> Kind:
    """The kind of a name, in any case: ours (`fp`) or MindCluster's (`FP`, `CommunicationOperator`).

    Raises:
        InvalidSwitch: For an unknown name.
    """
    kind = _BY_NAME.get(name.strip().lower())
    if kind is None:
        raise InvalidSwitch(f"{_short(name)} is not a switch. Switches: {', '.join(kind.value for kind in Kind)}")
    return kind


def parse_words(words: Iterable[str]) -> dict[Kind, bool]:
    """Changes from words like `step=on`; `all=off` sets all others.

    Raises:
        InvalidSwitch: For an unknown switch, a value other than on and off, or two values for one switch.
    """
    return changes_of(_pair(word) for word in words)


def parse_guide(text: str | bytes) -> dict[Kind, bool]:
    """Changes from the JSON text of MindCluster's `profilingSwitch`. Keys that are missing change nothing.

    Raises:
        InvalidSwitch: If it is not a JSON object of switches that are on or off.
    """
    if len(text) > MOST_BYTES:
        raise InvalidSwitch(f"the switches are {len(text):,} bytes long; at most {MOST_BYTES:,} are read")
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs)
        if isinstance(pairs, _Pairs):
            return changes_of(pairs)
    except (ValueError, RecursionError) as error:
        raise InvalidSwitch(f'the switches are not valid JSON ({error}). Example: {{"Step": "on"}}') from error
    raise InvalidSwitch('the switches are not a JSON object. Example: {"Step": "on"}')


def changes_of(pairs: Iterable[tuple[str, object]]) -> dict[Kind, bool]:
    """Changes from names and the words `on` and `off`. `all` sets those that are not named.

    Raises:
        InvalidSwitch: For an unknown switch, a value other than on and off, or two values for one switch.
    """
    given: dict[Kind | None, bool] = {}
    for name, value in pairs:
        state = _STATES.get(value) if isinstance(value, str) else None
        if state is None:
            raise InvalidSwitch(f"{_short(name)} is {_short(value)}; it must be on or off")
        kind = None if name.strip().lower() == "all" else kind_of(name)
        if given.setdefault(kind, state) is not state:
            raise InvalidSwitch(f"{kind.value if kind else 'all'} is given both on and off")
    others = dict.fromkeys(Kind, given[None]) if None in given else {}
    return {**others, **{kind: state for kind, state in given.items() if kind is not None}}


def initial() -> Switches:
    """The state of a worker that nobody has switched yet, from the environment.

    Raises:
        InvalidSwitch: For an unknown name in the variable.
    """
    text = os.environ.get(INITIAL_VARIABLE, "").strip()
    if not text:
        return DEFAULT
    if text.lower() in ("all", "none"):
        return ALL if text.lower() == "all" else NONE
    return Switches.of_names(text.split(","))


class _Pairs(list[tuple[str, object]]):
    """Members of a JSON object, with those that are given twice, which a dictionary would hide."""


def _pair(word: str) -> tuple[str, str]:
    name, separator, value = word.partition("=")
    if not separator:
        raise InvalidSwitch(f"{_short(word)} is not a switch and its state. Example: step=on communication=off")
    return name, value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
