"""The report of a run: one HTML file, a workbook, Markdown, or JSON for programs."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import Response

from stepscope.report.answers import answers
from stepscope.report.contents import Contents, contents
from stepscope.report.json_report import to_json
from stepscope.report.markdown_report import to_markdown
from stepscope.web.api.calls import ALWAYS, JSON, Call, Operation
from stepscope.web.api.files import HeldFile, as_download, file_name
from stepscope.web.api.parameters import LANGUAGE

HTML, XLSX = "text/html", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MARKDOWN = "text/markdown"

ALONE = "sandbox allow-scripts allow-popups allow-modals allow-downloads"
"""Policy of the report as a page: its scripts run, and have nothing to do with this server."""


async def _html(call: Call) -> Response:
    entry = call.entry()
    tag = call.tag(entry.stamp, HTML)
    if (same := call.unchanged(tag)) is not None:
        return same
    body = await call.service.asking.report(call.run, call.language)
    return call.sent(body, HTML, tag=tag, Content_Security_Policy=ALONE)


async def _json(call: Call) -> Response:
    entry, catalogue = call.entry(), call.service.catalogue

    def compute() -> bytes:
        run = catalogue.open(entry.id)
        return to_json(run, answers(run), call.language) + b"\n"

    return await call.kept([entry.stamp], compute)


async def _markdown(call: Call) -> Response:
    entry = call.entry()
    name = file_name(call.run, "report") + ".md"

    def compute() -> bytes:
        return to_markdown(_contents(call)).encode("utf-8", "backslashreplace")

    return await call.kept([entry.stamp], compute, media_type=MARKDOWN, **_download(name))


async def _workbook(call: Call) -> Response:
    from stepscope.report.xlsx import write_workbook  # noqa: PLC0415 - it needs a library that may be missing

    entry = call.entry()
    tag = call.tag(entry.stamp, XLSX)
    if (same := call.unchanged(tag)) is not None:
        return same

    def write(target: Path) -> None:
        write_workbook(_contents(call), target)

    hold = await call.service.files.get(call.question(entry.stamp, XLSX), "report.xlsx", write)
    headers = {**ALWAYS, "ETag": tag, **as_download(file_name(call.run, "report") + ".xlsx")}
    return HeldFile(hold, headers=headers, media_type=XLSX)


def _contents(call: Call) -> Contents:
    run = call.service.catalogue.open(call.run)
    return contents(run, answers(run), call.language)


def _download(name: str) -> dict[str, str]:
    return {key.replace("-", "_"): value for key, value in as_download(name).items()}


OPERATIONS = (
    Operation(
        "report_html",
        "/runs/{run}/report.html",
        "Show the whole report as one HTML file that opens anywhere.",
        _html,
        (LANGUAGE,),
        returns={HTML: {"type": "string"}},
        subject="Reports",
    ),
    Operation(
        "report_workbook",
        "/runs/{run}/report.xlsx",
        "Give the report as a workbook with all rows.",
        _workbook,
        (LANGUAGE,),
        returns={XLSX: {"type": "string", "format": "binary"}},
        subject="Reports",
    ),
    Operation(
        "report_markdown",
        "/runs/{run}/report.md",
        "Give the report as Markdown, e.g. for a pull request.",
        _markdown,
        (LANGUAGE,),
        returns={MARKDOWN: {"type": "string"}},
        subject="Reports",
    ),
    Operation(
        "report_json",
        "/runs/{run}/report.json",
        "Give what `stepscope analyze --json` prints.",
        _json,
        (LANGUAGE,),
        returns={JSON: {"type": "object"}},
        subject="Reports",
    ),
)
