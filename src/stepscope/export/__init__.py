"""Writing a run as files of other tools: timelines, the classic `profiler/`, Ascend directories, tables.

`export_run` writes a run, whoever recorded it (`formats.py` lists the formats); `exporting.py` makes the classic files
and `*_ascend_ms` directories of our own recordings beside them. Each kind of both is a function of a `RankExport`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.export.formats import FORMATS, Format, export_run
    from stepscope.export.made import Made

__all__ = ["FORMATS", "Format", "Made", "export_run"]


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415 - `python -m stepscope.export` loads Polars later

    if name not in __all__:
        raise AttributeError(f"module 'stepscope.export' has no attribute {name!r}")
    return getattr(import_module("stepscope.export.made" if name == "Made" else "stepscope.export.formats"), name)
