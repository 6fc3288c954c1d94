"""The timeline of a run as a file, for the Perfetto UI and other viewers."""

from __future__ import annotations

from starlette.responses import Response

from stepscope.pages.base import RANKS, STEPS
from stepscope.timeline import KINDS, TimelineOptions
from stepscope.web.api.calls import ALWAYS, Call, Operation
from stepscope.web.api.files import HeldFile, as_download, file_name
from stepscope.web.api.parameters import NUMBERS, Parameter, of_option
from stepscope.web.api.problems import BadRequest
from stepscope.web.timelines import FILE_FORMATS, LARGEST_MB, Wanted, timeline_file

_FORMAT = Parameter("format", "text", "Format of the file.", "perfetto", choices=tuple(FILE_FORMATS))
_OPTIONS = (
    Parameter(
        "kind",
        "text",
        "summary: steps, their phases, and when each rank computed and communicated. detail: all that was recorded, "
        "and where time was lost.",
        "detail",
        choices=KINDS,
    ),
    Parameter("graphs", "text", "Only steps of these graphs (models), e.g. 1,3-4. Default: all.", pattern=NUMBERS),
    Parameter("merge_graphs", "flag", "Iterations of all graphs on one track, or one each.", True),
    Parameter("scope_names", "flag", "Also draw the scopes in the names of operators (MindSpore), by level.", False),
    Parameter("align", "flag", "Correct the clocks of ranks by the ends of their calls.", True),
    Parameter(
        "explain",
        "flag",
        "Also draw what analyses show: idle time by cause, critical path, findings. Default: only if there are at most "
        "a million ranges.",
    ),
    Parameter("limit_mb", "number", "Maximum size of the file, MB.", minimum=0.01, maximum=LARGEST_MB),
)
_WINDOW = (
    Parameter("start_ns", "integer", "Only what ends after this moment, ns on the clock of the run."),
    Parameter("end_ns", "integer", "Only what begins before this moment, ns on the clock of the run."),
)


async def _download(call: Call) -> Response:
    entry, values = call.entry(), call.values
    tag = call.tag(entry.stamp)
    if (same := call.unchanged(tag)) is not None:
        return same
    start, end = values["start_ns"], values["end_ns"]
    if start is not None and end is not None and end < start:
        raise BadRequest(f"end_ns {end}: give a moment that is not before start_ns")
    limit_mb = values["limit_mb"]
    options = TimelineOptions(
        **call.chosen("kind", "graphs", "merge_graphs", "scope_names", "align", "explain"),
        limit_bytes=None if limit_mb is None else round(limit_mb * 1e6),
        window_ns=None if start is None and end is None else (start, end),
    )
    wanted = Wanted(values["format"], values["ranks"], values["steps"], options)
    hold = await timeline_file(call.service.catalogue, call.service.files, call.run, wanted)
    ending, media_type = FILE_FORMATS[wanted.format]
    headers = {**ALWAYS, "ETag": tag, **as_download(file_name(call.run, values["kind"]) + ending)}
    return HeldFile(hold, headers=headers, media_type=media_type)


OPERATIONS = (
    Operation(
        "download_timeline",
        "/runs/{run}/timeline",
        "Give what ran when on all ranks as one file, which ui.perfetto.dev and others open.",
        _download,
        (_FORMAT, of_option(RANKS), of_option(STEPS), *_OPTIONS, *_WINDOW),
        returns={media: {"type": "string", "format": "binary"} for _, media in FILE_FORMATS.values()},
        problems=("busy",),
        subject="Reports",
    ),
)
