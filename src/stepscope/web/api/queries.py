"""SQL over the tables of a run: confined to them, and bounded in rows; another process bounds its time and memory."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl
from starlette.responses import Response

from stepscope.web.api.calls import JSON, Call, Operation
from stepscope.web.api.content import undeclared_columns
from stepscope.web.api.files import CSV, FORMAT, PARQUET, file_name, format_of, table_file
from stepscope.web.api.listings import MOST_ROWS
from stepscope.web.api.parameters import INT64
from stepscope.web.api.problems import ApiProblem, BadRequest

LONGEST_QUERY = 20_000
"""Characters of a query."""

LONGEST_BODY = 12 * LONGEST_QUERY + 1_000
"""Bytes of a body with it: a character may be written as two escapes."""

ROWS = 1_000
"""Rows of an answer unless others are asked for."""


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request.

    Args:
        sql: A SELECT over the tables of the run, or SHOW TABLES.
        limit: Rows of the answer in JSON.
    """

    sql: str
    limit: int = ROWS


async def _query(call: Call) -> Response:
    entry = call.entry()
    wanted = await _body(call)
    found = await call.service.asking.query(call.run, wanted.sql)
    if (form := format_of(call)) != "json":
        tag = call.tag(entry.stamp, wanted.sql, form)
        return await table_file(call, form, file_name(call.run, "query"), [entry.stamp, wanted.sql], found, tag)
    return call.sent(await call.apart(lambda: call.encoded(_plain(found, wanted.limit))), Cache_Control="no-store")


def _plain(found: pl.DataFrame, limit: int) -> dict[str, Any]:
    return {
        "columns": undeclared_columns(found.schema),
        "rows": found.head(limit),
        "total": found.height,
        "is_cut": found.height > limit,
    }


async def _body(call: Call) -> Query:
    """The query that was sent.

    Raises:
        ApiProblem: If it is none.
    """
    media = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != JSON:
        raise ApiProblem("wrong-content", f"the body is {media[:100] or 'of no stated type'}, not {JSON}")
    content = bytearray()
    async for part in call.request.stream():
        content += part
        if len(content) > LONGEST_BODY:
            raise ApiProblem("too-large", f"the body is longer than {LONGEST_BODY} bytes")
    try:
        found = msgspec.json.decode(bytes(content), type=Query)
    except msgspec.MsgspecError as error:
        raise BadRequest(f'body: {error}. Send e.g. {{"sql": "SELECT * FROM steps", "limit": 100}}') from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise BadRequest("body: this is no JSON in UTF-8") from error
    if not 1 <= len(found.sql) <= LONGEST_QUERY or "\0" in found.sql:
        raise BadRequest(f"sql: give a text of 1 to {LONGEST_QUERY} characters without code 0")
    if not 1 <= found.limit <= MOST_ROWS:
        raise BadRequest(f"limit: give a number from 1 to {MOST_ROWS}")
    return found


OPERATIONS = (
    Operation(
        "query",
        "/runs/{run}/query",
        "Ask a SELECT over the tables of a run; `list_tables` is their schema. Only tables of the run can be read: no "
        "file, no address, no other run.",
        _query,
        (FORMAT, INT64),
        returns={
            JSON: {"$ref": "#/components/schemas/QueryAnswer"},
            CSV: {"type": "string"},
            PARQUET: {"type": "string", "format": "binary"},
        },
        problems=("wrong-content", "too-large"),
        body={
            "type": "object",
            "required": ["sql"],
            "additionalProperties": False,
            "properties": {
                "sql": {"type": "string", "minLength": 1, "maxLength": LONGEST_QUERY, "example": "SELECT * FROM steps"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "default": ROWS},
            },
        },
        subject="Tables",
    ),
)
