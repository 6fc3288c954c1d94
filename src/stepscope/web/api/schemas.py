"""What answers look like, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from stepscope.web.catalogue.entry import STATES

Schema = dict[str, Any]

NS = "ns since 1970-01-01T00:00:00Z, or since the zero of a recording that has no other clock"


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None, about: str = "") -> Schema:
    found: Schema = {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}
    return {**found, "description": about} if about else found


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _map(of: Schema) -> Schema:
    return {"type": "object", "additionalProperties": of}


def _or_null(kind: str, **more: Any) -> Schema:
    return {"type": [kind, "null"], **more}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
YES: Schema = {"type": "boolean"}
LARGE: Schema = {"type": ["integer", "string", "null"], "description": f"{NS}; a string with `int64=text`"}
ROWS: Schema = _list({"type": "object", "additionalProperties": True})

PAGING: dict[str, Schema] = {
    "top": {**WHOLE, "description": "Rows of a page."},
    "page": WHOLE,
    "pages": WHOLE,
    "total": {**WHOLE, "description": "Rows in all, as far as they were looked for."},
    "links": {
        **_map(_or_null("string")),
        "description": "Addresses of this page (`self`), `first`, `prev`, `next` and `last`; null for none.",
    },
}

_ABOUT_TABLES: dict[str, Schema] = {
    "run": TEXT,
    "rows": {**_map(WHOLE), "description": "Rows of each table, as far as they were looked for."},
    "tables": {**_map(ROWS), "description": "By name, the rows of this page."},
    "columns": {**_map(_list(_ref("Column"))), "description": "By table, what its columns are."},
}
_AROUND: dict[str, Schema] = {
    "unavailable": {**_map(TEXT), "description": "Why a table is missing, by its name."},
    "notes": {**_list(TEXT), "description": "What the tables rest on and cannot know."},
    "issues": {**ROWS, "description": "What could not be read, and what is doubtful."},
    "rank": WHOLE,
    "ranks": _list(WHOLE),
    "step": {},
    "steps": {},
    "summary": _list(TEXT),
    "base": {"type": "object"},
    "new": {"type": "object"},
}

SCHEMAS: dict[str, Schema] = {
    "Problem": _object(
        {
            "type": {**TEXT, "description": "Address of the description of this kind of problem."},
            "title": TEXT,
            "status": WHOLE,
            "detail": {**TEXT, "description": "What is wrong here, and what there is instead."},
            "instance": {**TEXT, "description": "The address that was asked."},
        },
        {
            "parameters": _list(_object({"parameter": TEXT, "problem": TEXT})),
            "state": {**TEXT, "description": "State of the run, if that is the reason."},
            "progress": NUMBER,
        },
        "Problem details of RFC 9457.",
    ),
    "Column": _object(
        {"name": TEXT},
        {
            "title": TEXT,
            "type": TEXT,
            "unit": {**TEXT, "description": "Unit of its values; empty for texts, counts and plain numbers."},
            "meaning": TEXT,
            "moment": {**YES, "description": f"Its values are moments: {NS}."},
            "values": _list(TEXT),
        },
    ),
    "ShownTable": _object({"heading": TEXT, "columns": _list(_ref("Column")), "rows": ROWS}),
    "Run": _object(
        {
            "id": {**TEXT, "description": "Its name in addresses, the same after a restart."},
            "name": TEXT,
            "state": {**TEXT, "enum": list(STATES)},
            "progress": {**NUMBER, "description": "How much of it is read, 0 to 1."},
            "problem": TEXT,
            "path": {**TEXT, "description": "Its path below the served directory."},
            "ranks": WHOLE,
            "world_size": _or_null("integer"),
            "steps": _or_null("integer", description="Steps that any rank recorded; null if none are marked."),
            "start_ns": LARGE,
            "changed_ns": LARGE,
            "input_bytes": WHOLE,
            "formats": _list(TEXT),
            "frameworks": _list(TEXT),
            "devices": _list(TEXT),
            "unread": {**WHOLE, "description": "Inputs that could not be read."},
            "findings": {**_map(WHOLE), "description": "Findings by severity; empty until they are known."},
            "top": _or_null("object", description="Its most important finding, in words."),
            "links": _map(TEXT),
        }
    ),
    "Runs": _object({"runs": _list(_ref("Run")), "states": _map(WHOLE), **PAGING}),
    "Progress": _object({"id": TEXT, "state": TEXT, "progress": NUMBER, "problem": TEXT, "is_readable": YES}),
    "PageAnswer": _object(_ABOUT_TABLES, {**_AROUND, "top": WHOLE, "links": _map(TEXT)}),
    "TableAnswer": _object({**_ABOUT_TABLES, **PAGING}, _AROUND),
    "QueryAnswer": _object(
        {
            "columns": _list(_ref("Column")),
            "rows": ROWS,
            "total": {**WHOLE, "description": "Rows of the whole answer."},
            "is_cut": {**YES, "description": "There are more rows than are here."},
        }
    ),
    "Overview": _object(
        {
            "title": TEXT,
            "language": TEXT,
            "start_ns": LARGE,
            "facts": _list(_object({"name": TEXT, "text": TEXT})),
            "shares": {
                **_list(_object({"key": TEXT, "name": TEXT, "ratio": NUMBER})),
                "description": "How the average step splits; ratios are 0 to 1.",
            },
            "verdict": _list(TEXT),
            "alert": TEXT,
            "counts": _map(WHOLE),
            "problems": _list({"type": "object"}),
            "unread": {"type": "object"},
            "missing": _list(TEXT),
        }
    ),
    "Findings": _object(
        {
            "total": {**WHOLE, "description": "Findings in all."},
            "found": {**WHOLE, "description": "Those that were looked for."},
            "findings": {**_list({"type": "object"}), "description": "As `docs/json.md` describes them."},
        }
    ),
    "Figure": _object(
        {
            "name": TEXT,
            "title": TEXT,
            "shows": TEXT,
            "figure": _object({"data": _list({"type": "object"}), "layout": {"type": "object"}}),
            "tables": _list(_ref("ShownTable")),
            "notes": _list(TEXT),
        }
    ),
}
