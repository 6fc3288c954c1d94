"""Whole tables as files: CSV in parts, Parquet through a file on disk; and which format a request wants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from stepscope.analysis.methods.batches import batches
from stepscope.pages.csv_text import csv_text
from stepscope.web.api.calls import ALWAYS, JSON, Call
from stepscope.web.api.parameters import Parameter
from stepscope.web.kept_files import Hold

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
FORMATS = {"json": JSON, "csv": CSV, "parquet": PARQUET}
"""Formats of a table and their media types."""

FORMAT = Parameter(
    "format",
    "text",
    "Format of the answer. CSV and Parquet have the whole table, unless `top` is given. Default: as `Accept` says, "
    "else JSON.",
    choices=tuple(FORMATS),
)

PART_ROWS = 50_000
"""Rows of which the text is in memory at a time."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def format_of(call: Call) -> str:
    """The format that a request wants: `json`, `csv` or `parquet`."""
    chosen: str | None = call.values["format"]
    return chosen or _accepted(call.request)


def _accepted(request: Request) -> str:
    """The first of the best formats that a client accepts; JSON if it accepts none."""
    weights: dict[str, float] = {}
    for each in request.headers.get("accept", "").split(","):
        media, *parameters = (part.strip() for part in each.split(";"))
        weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        weights[media.lower()] = float(weight) if re.fullmatch(r"[01](\.\d{0,3})?", weight) else 0.0
    found = {name: weights.get(media, 0.0) for name, media in FORMATS.items()}
    found["json"] = max(found["json"], weights.get("*/*", 0.0), weights.get("application/*", 0.0))
    return max(found, key=found.__getitem__)


def file_name(*words: str) -> str:
    """A name for a file that a client keeps, of plain letters."""
    return "-".join(_NOT_IN_NAMES.sub("_", word).strip("_") or "_" for word in words)


def as_download(name: str) -> dict[str, str]:
    """The header that has a browser keep an answer as a file."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


class HeldFile(FileResponse):
    """A file that is let go when it was sent, or when the client went away."""

    def __init__(self, hold: Hold[Any], **more: Any) -> None:
        super().__init__(hold.path, **more)
        self._hold = hold

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the base class."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._hold.release()


async def table_file(
    call: Call, form: str, name: str, stamps: Sequence[Any], rows: pl.LazyFrame | pl.DataFrame, tag: str
) -> Response:
    """A whole table as a file.

    Args:
        form: `csv` or `parquet`.
        name: Its name, without an ending.
        stamps: Stamps of the runs that it is about.
        rows: The table.
        tag: ETag of the answer.
    """
    headers = {**ALWAYS, "ETag": tag, "Vary": "Accept", **as_download(f"{name}.{form}")}
    if form == "csv":
        return StreamingResponse(csv_parts(rows), headers=headers, media_type=CSV)

    def write(target: Any) -> None:
        if isinstance(rows, pl.DataFrame):
            rows.write_parquet(target, compression="zstd", statistics=True)
        else:
            rows.sink_parquet(
                target, compression="zstd", statistics=True, maintain_order=True, engine="streaming", mkdir=False
            )

    hold = await call.service.files.get(call.question(*stamps, form), f"{name}.parquet", write)
    return HeldFile(hold, headers=headers, media_type=PARQUET)


def csv_parts(rows: pl.LazyFrame | pl.DataFrame) -> Iterator[bytes]:
    """A table as CSV, some rows at a time."""
    frames = batches(rows) if isinstance(rows, pl.LazyFrame) else iter([rows])
    is_first = True
    for frame in frames:
        for start in range(0, max(frame.height, 1), PART_ROWS):
            yield csv_text(frame.slice(start, PART_ROWS), header=is_first).encode()
            is_first = False
