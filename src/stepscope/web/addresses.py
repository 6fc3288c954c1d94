"""Where programs ask, and where the pages and answers of a run are."""

from __future__ import annotations

from urllib.parse import quote

API = "/api/"
"""Below this, clients are programs."""

PREFIX = API + "v1"
"""Path of this version of the REST interface."""


def run_path(run: str, page: str = "") -> str:
    """The path of a page of a run; below `PREFIX`, that of its answers for programs."""
    return f"/runs/{quote(run, safe='')}" + (f"/{quote(page, safe='')}" if page else "")
