"""Which rows of a table an answer has: choosing them by a query, and the links to the rows before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from stepscope.pages.base import FILTER, PAGE_NUMBER, SEARCH, SORT
from stepscope.pages.listing import LONGEST_FILTER, Listing
from stepscope.web.api.calls import Call
from stepscope.web.api.parameters import Parameter

TOP_ROWS = 100
"""Rows of an answer in JSON, unless others are asked for."""

MOST_ROWS = 10_000
"""Rows that an answer in JSON may have; CSV and Parquet have all."""

TOP = Parameter(
    "top",
    "integer",
    f"Rows of a table. Default: {TOP_ROWS} in JSON, all in CSV and Parquet.",
    minimum=1,
    maximum=MOST_ROWS,
)
PAGE = Parameter("page", "integer", PAGE_NUMBER.help, 1, minimum=1, maximum=1 << 31)

LISTING = (
    Parameter("search", "text", SEARCH.help, longest=500),
    Parameter("filter", "text", FILTER.help, longest=LONGEST_FILTER),
    Parameter("sort", "text", SORT.help, longest=500),
    TOP,
    PAGE,
)
"""Parameters that choose rows."""


def listing_of(values: Mapping[str, Any], *, whole: bool = False) -> Listing:
    """The rows that a query chooses.

    Args:
        whole: All of them, unless the query says how many.
    """
    top = values["top"] or (None if whole else TOP_ROWS)
    return Listing(values["search"] or None, values["filter"], values["sort"] or None, top, values["page"])


def paging(call: Call, total: int) -> dict[str, Any]:
    """Which rows of how many an answer has, and the addresses of the others.

    Args:
        total: Rows in all, as far as they were looked for.
    """
    top, page = call.values["top"] or TOP_ROWS, call.values["page"]
    last = max(1, -(-total // top))
    near = {"first": 1, "prev": page - 1 if page > 1 else None, "next": page + 1 if page < last else None, "last": last}
    links = {name: None if number is None else _address(call, number) for name, number in near.items()}
    return {"top": top, "page": page, "pages": last, "total": total, "links": {"self": _address(call, page), **links}}


def _address(call: Call, page: int) -> str:
    pairs = [(name, value) for name, value in call.request.query_params.multi_items() if name != "page"]
    return f"{call.request.url.path}?{urlencode([*pairs, ('page', page)])}"
