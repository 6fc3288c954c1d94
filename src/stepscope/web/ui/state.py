"""The state of a page, all of which is in its URL: what is shown can be kept, sent, opened again, and gone back to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

if TYPE_CHECKING:
    from stepscope.pages.listing import Listing

LONGEST_VALUE = 4_000
"""Characters of a value in a URL; more is cut, and no question needs it."""

CARRIED = ("lang", "theme")
"""What every link takes along, to whatever page."""

CHOSEN = ("rank", "ranks", "steps", "stage", "host", "group", "limits")
"""What a link to another page of the same run takes along as well."""


@dataclass(frozen=True)
class State:
    """A page and what is chosen on it.

    Args:
        path: The path of its URL, still quoted.
        params: What follows `?`; each name once.
    """

    path: str
    params: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, url: str) -> State:
        """The state that a URL names; its host and what follows `#` do not count."""
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=False, max_num_fields=200)
        return cls(parts.path, {name: value[:LONGEST_VALUE] for name, value in pairs})

    def get(self, name: str, default: str = "") -> str:
        """The value of a parameter."""
        return self.params.get(name, default)

    def number(self, name: str, default: int | None = None) -> int | None:
        """The value of a parameter that is a whole number of at most nine digits; the default if it is none."""
        text = self.get(name).strip()
        return int(text) if text.removeprefix("-").isdecimal() and len(text) <= 10 else default

    def changed(self, changes: Mapping[str, object] | None = None, /, **values: object) -> State:
        """The same page with other values; None, False and an empty text remove one, True is `1`."""
        params = dict(self.params)
        for name, value in {**(changes or {}), **values}.items():
            if value is None or value is False or value == "":
                params.pop(name, None)
            else:
                params[name] = "1" if value is True else str(value)
        return State(self.path, params)

    def at(self, path: str, **values: object) -> State:
        """Another page of the same run: language, theme, ranks and steps stay."""
        kept = {name: value for name, value in self.params.items() if name in (*CARRIED, *CHOSEN)}
        return State(path, kept).changed(values)

    def elsewhere(self, path: str, **values: object) -> State:
        """A page about something else: only language and theme stay."""
        kept = {name: value for name, value in self.params.items() if name in CARRIED}
        return State(path, kept).changed(values)

    def others(self, names: Collection[str]) -> list[tuple[str, str]]:
        """Names and values of all parameters but some: what a form keeps that sets these."""
        return [(name, value) for name, value in self.params.items() if name not in names]

    def differs(self, other: State) -> set[str]:
        """The names of parameters that have another value there."""
        return {name for name in {*self.params, *other.params} if self.get(name) != other.get(name)}

    @property
    def url(self) -> str:
        """The URL, without host."""
        return f"{self.path}?{urlencode(self.params)}" if self.params else self.path

    def listing(self, section: str, rows: int | None = None) -> Listing:
        """Which rows of a section are shown: its search, filter, order and page."""
        from stepscope.pages.listing import Listing

        page, top = self.number(f"{section}.page", 1) or 1, self.number(f"{section}.rows", rows)
        return Listing(
            search=self.get(f"{section}.search") or None,
            where=self.get(f"{section}.filter") or None,
            sort=self.get(f"{section}.sort") or None,
            top=None if top is None else min(max(top, 1), 1000),
            page=max(page, 1),
        )
