"""All tables of a run as Parquet files, for pandas, DuckDB, Spark and others, with a description of every column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from stepscope._version import __version__
from stepscope.analysis.registry import ANALYSES
from stepscope.errors import StepscopeError, Unavailable
from stepscope.export.made import Made
from stepscope.export.run_tables import table_of
from stepscope.export.whole_directory import whole_directory
from stepscope.paths import shown
from stepscope.run import Run
from stepscope.tables import TABLES
from stepscope.tables.base import Column

SCHEMA_FILE = "schema.json"
ANSWERS = "answers"
_FORMAT = "stepscope tables, 1"
_EPOCH = "ns since 1970-01-01T00:00:00Z, by the rank's own clock with `clock_offset_ns` added if that was measured"
_OWN_ZERO = "ns since the zero of the recording, which has no other clock"


def write_parquet(run: Run, directory: Path, *, answers: bool = False) -> Made:
    """Write each table of a run that has rows as `<table>.parquet`, and `schema.json` that describes them.

    Tables have all their columns, in order, with `rank`; columns are of the types of `docs/tables.md`, which are
    standard ones of Parquet. Rows are those of the run's ranks and steps; tables without steps have all their rows.
    Each file is written a part at a time, whatever its size.

    Args:
        run: The run, perhaps narrowed to some ranks and steps.
        directory: Where to: new or empty.
        answers: Also write the answer of each analysis that has one as `answers/<question>.parquet`. This computes all
            of them, so it takes much longer, and the memory of the largest answer.

    Returns:
        What was written; answers that there are not are left out, with the reason.

    Raises:
        StepscopeError: If the directory has files, is in a recording or cannot be written: then nothing is there.
    """
    made = Made()
    with whole_directory(directory, run) as draft:
        tables = {}
        for name in TABLES:
            rows = table_of(run, name)
            if rows is None:
                continue
            number = _write(rows, draft / f"{name}.parquet")
            if number:
                tables[name] = _described(name, number)
        answered = _write_answers(run, draft, made) if answers else {}
        contents = {
            "format": _FORMAT,
            "stepscope_version": __version__,
            "run": run.name,
            "ranks": [rank.rank for rank in run.ranks],
            "steps": run.steps,
            "steps_are_iterations": run.iterations is not None,
            "sources": [_source(run, number) for number in range(len(run.ranks))],
            "tables": tables,
            ANSWERS: answered,
            "left_out": made.left_out,
        }
        text = msgspec.json.format(msgspec.json.encode(contents), indent=1)
        (draft / SCHEMA_FILE).write_bytes(text + b"\n")
        files = [SCHEMA_FILE, *(one["file"] for one in (*tables.values(), *answered.values()))]
    made.files = [directory / file for file in files]
    zeros = [rank.rank for rank in run.ranks if rank.facts["start_ns"] is None]
    if zeros:
        made.notes.append(
            f"Times of {len(zeros)} of {len(run.ranks)} ranks count from the zero of their recording, not from 1970; "
            f"{SCHEMA_FILE} says of which."
        )
    return made


def _write(rows: pl.LazyFrame, file: Path, *, keep_empty: bool = False) -> int:
    """Write rows as they are read; a file without any is removed, unless it says that there are none.

    Returns:
        The number of rows.

    Raises:
        OSError: If it cannot be written, or its rows not be read.
    """
    try:
        rows.sink_parquet(file, compression="zstd", statistics=True, maintain_order=True, engine="streaming")
    except pl.exceptions.ComputeError as error:  # also what Polars makes of a full disk
        raise OSError(f"{file.name}: {error}") from error
    number = int(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item())
    if not number and not keep_empty:
        file.unlink()
    return number


def _write_answers(run: Run, draft: Path, made: Made) -> dict[str, dict[str, Any]]:
    """Write the answers that there are, each described."""
    (draft / ANSWERS).mkdir(mode=0o700)
    written = {}
    for name, analysis in sorted(ANALYSES.items()):
        file = f"{ANSWERS}/{name}.parquet"
        if not analysis.columns:
            continue
        try:
            answer = run.analyse(name)
        except Unavailable as reason:
            made.left_out[file] = str(reason)
            continue
        except StepscopeError as reason:  # e.g. one of a plugin
            made.left_out[file] = f"it failed: {reason}"
            continue
        _write(answer.lazy(), draft / file, keep_empty=True)
        doc = (analysis.function.__doc__ or "").split("\n\n")[0]
        written[name] = {
            "file": file,
            "rows": answer.height,
            "meaning": " ".join(doc.split()),
            "columns": _columns(analysis.columns),
        }
    return written


def _described(name: str, rows: int) -> dict[str, Any]:
    """A table for `schema.json`."""
    table = TABLES[name]
    key = [] if table.key is None else ["rank", *(column for column in table.key if column != "rank")]
    return {
        "file": f"{name}.parquet",
        "rows": rows,
        "meaning": table.doc,
        "key": key,
        "columns": _columns(table.columns),
    }


def _columns(columns: Sequence[Column]) -> list[Mapping[str, Any]]:
    return [
        {
            "name": column.name,
            "type": column.dtype,
            "unit": column.unit,
            "nullable": column.nullable,
            "meaning": column.full_doc,
        }
        for column in columns
    ]


def _source(run: Run, number: int) -> dict[str, Any]:
    """Where the rows of a rank come from, and what its times count from."""
    rank = run.ranks[number]
    facts = rank.facts
    return {
        "rank": rank.rank,
        "path": shown(rank.path),
        "reader": rank.recording.source,
        "files": [shown(file) for file in rank.recording.files],
        "clock": _OWN_ZERO if facts["start_ns"] is None else _EPOCH,
        "base_ns": facts["base_ns"],
        "clock_offset_ns": facts["clock_offset_ns"],
    }
