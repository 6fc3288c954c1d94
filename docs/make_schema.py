"""Write what describes answers in the JSON Schema of `analyze --json`: `python docs/make_schema.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stepscope import report
from stepscope.analysis import ANALYSES
from stepscope.pages.job import PAGE as JOB
from stepscope.tables import RANKS, Column

PAGE = Path(report.__file__).with_name("analysis.schema.json")

TYPES = {"int": "integer", "float": "number", "string": "string", "bool": "boolean"}
"""How names of types begin, and what JSON Schema calls them."""

LINE = 110


def page(text: str) -> str:
    """The schema with the sections of answers as their analyses declare them."""
    schema = json.loads(text)
    schema["properties"]["ranks"] = {"type": "array", "items": rows(RANKS.columns)}
    for section in JOB.sections:
        items = rows(ANALYSES[section.question].columns)
        schema["properties"][section.key] = {"type": "array", "items": items}
    return laid_out(schema) + "\n"


def rows(columns: tuple[Column, ...]) -> dict[str, Any]:
    """What a row of these columns is."""
    return {
        "type": "object",
        "properties": {column.name: value(column) for column in columns},
        "required": [column.name for column in columns],
        "additionalProperties": False,
    }


def value(column: Column) -> dict[str, Any]:
    """What a value of a column is."""
    if column.values:
        return {"description": column.doc, "enum": [*column.values, *[None] * column.nullable]}
    kind = column.dtype.removeprefix("list[")
    dtype = next(name for start, name in TYPES.items() if kind.startswith(start))
    if kind != column.dtype:
        return {"description": column.doc, "type": "array", "items": {"type": dtype}}
    return {"description": column.doc, "type": [dtype, "null"] if column.nullable else dtype}


def laid_out(part: Any, indent: str = "") -> str:
    """JSON in which whatever fits a line stands on one."""
    whole = json.dumps(part, ensure_ascii=False)
    if len(indent) + len(whole) <= LINE or not isinstance(part, dict | list):
        return whole
    deeper = indent + " "
    if isinstance(part, dict):
        lines = [f"{deeper}{json.dumps(key)}: {laid_out(one, deeper)}" for key, one in part.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(deeper + laid_out(one, deeper) for one in part) + f"\n{indent}]"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
