"""`stepscope export`: a run as files for other tools."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from stepscope.cli import options as shared
from stepscope.cli.formatted import chosen_form
from stepscope.errors import StepscopeError
from stepscope.export.format_names import FormatName

if TYPE_CHECKING:
    import polars as pl

Form = Annotated[
    FormatName,
    shared.worded(get_args(FormatName), "--format", "-f", help="What to write; see above.", show_default=False),
]
Directory = Annotated[
    Path,
    typer.Option(
        "--output", "-o", help="Directory for the files: new, empty, or without files of these names.", metavar="DIR"
    ),
]
LimitMb = Annotated[
    float | None,
    typer.Option(
        "--limit-mb",
        help="Maximum size of each timeline. What does not fit is left out and reported.",
        metavar="MB",
        show_default=False,
    ),
]

NAMED = 12
"""Files and directories that are listed; of more, only the number is shown."""


def export(
    paths: shared.Paths,
    *,
    form: Form,
    output: Directory,
    run: shared.OneRun = None,
    ranks: shared.Ranks = None,
    steps: shared.Steps = None,
    limit_mb: LimitMb = None,
    no_store: shared.NoStore = False,
    engine: shared.EngineOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was made and left out as JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print the files as CSV.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only errors.")] = False,
    debug: shared.Debug = False,
) -> None:
    """Write a run as files for other tools, whoever recorded it.

    chrome: a timeline as trace events (JSON), for any viewer of these. perfetto: a timeline for ui.perfetto.dev and
    `stepscope view`. classic: `profiler/` of MindSpore, for MindInsight. ascend-text, ascend-db: directories of Ascend
    devices with text files or databases, for msprof-analyze and MindStudio Insight. parquet: all tables. otlp: spans of
    OpenTelemetry.

    Files appear all or none, readable by you alone. Nothing is overwritten, and nothing is written into a recording.
    What was not recorded, or has no place in a format, is left out and named.
    """
    from stepscope.cli.opening import opened
    from stepscope.cli.output import Output, print_document, print_frame
    from stepscope.cli.warning_lines import show_warnings
    from stepscope.export.formats import check_wishes, export_run
    from stepscope.export.placing import check_place

    shown_as = chosen_form(None, json=json, csv=csv)
    check_wishes(form, limit_mb)
    if str(output) == "-":
        raise StepscopeError("-o -: an export is written to a directory. Give its name")
    check_place(output, (), paths)
    chosen = opened(
        paths, run=run, ranks=ranks, steps=steps, use_store=not no_store, engine=engine, quiet=quiet or json or csv
    )
    made = export_run(chosen, output, form, limit_mb=limit_mb, inputs=paths, strict=debug)
    sizes = {file: file.stat().st_size for file in made.files}
    if shown_as == "json":
        left_out = [{"subject": what, "reason": why} for what, why in made.left_out.items()]
        content = {"output": str(output), "format": form, "files": _files(sizes, output), "left_out": left_out}
        print_document({**content, "notes": made.notes})
    elif shown_as == "csv":
        print_frame(_files(sizes, output), "csv")
    elif not quiet:
        _say(sizes, output, form, made.left_out, made.notes)
        show_warnings(Output(), chosen, quiet=True)


def _files(sizes: dict[Path, int], output: Path) -> pl.DataFrame:
    import polars as pl

    rows = [(file.relative_to(output).as_posix(), size) for file, size in sizes.items()]
    return pl.DataFrame(rows, schema={"file": pl.String, "size_bytes": pl.Int64}, orient="row")


def _say(sizes: dict[Path, int], output: Path, form: str, left_out: dict[str, str], notes: Sequence[str]) -> None:
    from stepscope import present
    from stepscope.cli.output import Output
    from stepscope.paths import natural

    out = Output()
    parts = [(file.relative_to(output).parts, size) for file, size in sizes.items()]
    count, total = Counter(place[0] for place, _ in parts), Counter[str]()
    for place, size in parts:
        total[place[0]] += size
    whole = present.size(sum(sizes.values()))
    out.say(f"{output}: {present.plural(len(sizes), 'file')}, {whole}, as {form}", "bold")
    for name in sorted(count, key=natural)[:NAMED]:
        is_file = any(place == (name,) for place, _ in parts)
        held = (
            present.size(total[name])
            if is_file
            else f"{present.plural(count[name], 'file')}, {present.size(total[name])}"
        )
        out.say(f"  {name}{'' if is_file else '/'}: {held}", indent=4)
    if len(count) > NAMED:
        out.say(f"  and {len(count) - NAMED} more", indent=4)
    for note in notes:
        out.say(note, indent=2)
    if left_out:
        out.say("Left out", "bold")
        for reason, subjects in _by_reason(left_out.items()):
            out.say(f"  {subjects}: {reason}", indent=4)


def _by_reason(left_out: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """What was left out for the same reason, put together; ranks are named once."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for subject, reason in left_out:
        name, of, ranks = subject.partition(" of rank")
        found[reason, of + ranks].append(name)
    return [(reason, f"{', '.join(names)}{ranks}") for (reason, ranks), names in found.items()]
