"""The OpenAPI document, made from the declared operations, and the same as a page for people."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from stepscope._version import __version__
from stepscope.web.addresses import PREFIX
from stepscope.web.api.calls import LONGEST_NAME, Operation, Place
from stepscope.web.api.problems import KINDS, MEDIA_TYPE
from stepscope.web.api.schemas import NS, SCHEMAS

_ABOUT = f"""Runs below the served directories, asked by programs: the same answers as the commands of stepscope.

Names of columns end in their unit: `_ns` are nanoseconds, `_bytes` bytes, `_ratio` 0 to 1. Moments are {NS}. They are
whole numbers beyond 2^53, which JavaScript rounds: `int64=text` gives such numbers as strings.

Answers have an `ETag`, but those of `health` and of queries; asked with `If-None-Match`, the server answers 304 without
computing anything. Lists are paged by `top` and `page`, with links to the other pages. Every address that takes GET
takes HEAD.

Problems are `{MEDIA_TYPE}` (RFC 9457): `detail` says what is wrong and what there is instead.

If the server demands a token, send it as `Authorization: Bearer TOKEN`."""

_ALL = ("bad-request", "failed")
_OF_RUNS = ("unknown-run", "not-ready", "gone", "broken-run")


def document(operations: Sequence[Operation], root: str = "") -> dict[str, Any]:
    """The OpenAPI document.

    Args:
        operations: All operations.
        root: Path below which a proxy has the server.
    """
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        for place in operation.variants or [{}]:
            paths.setdefault(_path(operation, place), {})[operation.method.lower()] = _described(operation, place)
    return {
        "openapi": "3.1.0",
        "info": {"title": "stepscope", "version": __version__, "description": _ABOUT},
        "servers": [{"url": root + PREFIX}],
        "tags": [{"name": name} for name in dict.fromkeys(each.subject for each in operations)],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _path(operation: Operation, place: Place) -> str:
    path = operation.path
    for name, value in place.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def _described(operation: Operation, place: Place) -> dict[str, Any]:
    """An operation at an address."""
    words = [value for value in place.values() if not value.startswith("{")]
    found: dict[str, Any] = {
        "operationId": "_".join([operation.identity, *words]).replace("-", "_"),
        "tags": [operation.subject],
        "summary": (f"{words[0]}: " if words else "") + operation.help.partition(". ")[0].rstrip("."),
        "description": operation.help,
        "parameters": [*_names(operation, place), *(each.schema() for each in operation.parameters_at(place))],
        "responses": {**_good(operation), **_bad(operation)},
    }
    if operation.body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": operation.body}}}
    return found


def _names(operation: Operation, place: Place) -> Iterator[dict[str, Any]]:
    path = _path(operation, place)
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    known = operation.names_at(place)
    for name in names:
        schema = {"type": "string", "maxLength": LONGEST_NAME}
        listed = {"type": "string", "enum": list(known[name])} if name in known else schema
        about = "Id of a run, as `/runs` lists them." if name == "run" else f"Name of the {name}."
        yield {"name": name, "in": "path", "required": True, "description": about, "schema": listed}


def _good(operation: Operation) -> dict[str, Any]:
    content = {media: {"schema": schema} for media, schema in operation.returns.items()}
    found: dict[str, Any] = {"200": {"description": "The answer.", "content": content}}
    if operation.method == "GET":
        found["200"]["headers"] = {"ETag": {"description": "Changes with the answer.", "schema": {"type": "string"}}}
        found["304"] = {"description": "The client has this answer already (`If-None-Match`)."}
    return found


def _bad(operation: Operation) -> dict[str, Any]:
    kinds = [*_ALL, *(_OF_RUNS if operation.is_about_run or operation.subject == "Comparisons" else ())]
    kinds += operation.problems
    if operation.path.count("{") > operation.is_about_run:
        kinds.append("unknown-page")
    by_status: dict[int, list[str]] = {}
    for kind in dict.fromkeys(kinds):
        by_status.setdefault(KINDS[kind][0], []).append(kind)
    problem = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        str(status): {"description": ". ".join(KINDS[kind][1] for kind in kinds) + ".", "content": problem}
        for status, kinds in sorted(by_status.items())
    }


def page(document: Mapping[str, Any]) -> str:
    """The document as a page for people, which loads nothing."""
    operations = [
        (each["tags"][0], method.upper(), path, each)
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    ]
    order = [tag["name"] for tag in document["tags"]]
    operations.sort(key=lambda found: order.index(found[0]))
    sections = "".join(
        f"<section><h2>{_text(tag)}</h2>{''.join(_operation(*found[1:]) for found in group)}</section>"
        for tag, group in groupby(operations, key=lambda found: found[0])
    )
    kinds = "".join(
        f'<dt id="{kind}"><code>{kind}</code> ({status})</dt><dd>{_text(title)}. {_prose(more)}</dd>'
        for kind, (status, title, more) in KINDS.items()
    )
    about = "".join(f"<p>{_prose(part)}</p>" for part in document["info"]["description"].split("\n\n"))
    base = document["servers"][0]["url"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>stepscope: REST API</title><style>{_STYLE}</style></head><body><main><h1>stepscope: REST API</h1>"
        f"{about}<p>All addresses begin with <code>{_text(base)}</code>. The same for programs: "
        f'<a href="{_text(base)}/openapi.json">openapi.json</a>.</p>{sections}'
        f"<section><h2>Problems</h2><dl>{kinds}</dl></section></main></body></html>"
    )


def _operation(method: str, path: str, each: Mapping[str, Any]) -> str:
    rows = "".join(_parameter(parameter) for parameter in each["parameters"])
    table = f"<table><tbody>{rows}</tbody></table>" if rows else ""
    medias = ", ".join(each["responses"]["200"]["content"])
    return (
        f'<details id="{_text(each["operationId"])}"><summary><code>{method} {_text(path)}</code> '
        f"{_text(each['summary'])}</summary><p>{_prose(each['description'])} <small>{_text(medias)}</small></p>"
        f"{table}</details>"
    )


def _parameter(parameter: Mapping[str, Any]) -> str:
    schema = parameter["schema"]
    kind = schema.get("type", "")
    said = " | ".join(schema["enum"]) if "enum" in schema else kind
    default = f", default {schema['default']}" if "default" in schema else ""
    required = ", required" if parameter["required"] else ""
    return (
        f"<tr><th><code>{_text(parameter['name'])}</code></th><td>{_text(said + default + required)}</td>"
        f"<td>{_prose(parameter['description'])}</td></tr>"
    )


def _text(text: object) -> str:
    return html.escape(str(text))


def _prose(text: str) -> str:
    """Escaped text in which what stands in backquotes is code."""
    parts = _text(text).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))


_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:0}"
    "main{max-width:72rem;margin:0 auto;padding:1rem}summary{cursor:pointer;padding:.25rem 0}"
    "table{border-collapse:collapse;margin:.5rem 0 1rem 1.2rem;font-size:.9rem}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8884}"
    "dt{margin-top:.6rem}dd{margin-left:1.2rem}details p{margin:.3rem 0 .3rem 1.2rem}"
    "h2{margin-top:2rem}code{font-size:.92em}dt:target{outline:2px solid #0072b2}"
)
