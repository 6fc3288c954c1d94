"""Files of a classic profile as they were recorded: no table has all that they say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stepscope.export.rank_export import RankExport
from stepscope.recording_format.export_list import is_list_name
from stepscope.sources.classic.files import is_known, kind_of

_SOURCE = "classic"
_FOLDER = "host_info"
"""The folder of a profile with files of a rank."""


def write_originals(export: RankExport) -> None:
    """Copy the files of a classic profile in the place of those made of its tables.

    With a choice of steps nothing is copied, since they cover all steps. The raw data of a device (`PROF_...`) stays
    where it is, and so do files larger than the limit of timelines.
    """
    recording = export.run.ranks[0].recording
    if recording.source != _SOURCE:
        return
    found = originals_of(recording.files, export.rank)
    if export.steps is None:
        _remove_made(export, found)
    for name, file in found.items():
        if export.steps is not None:
            if name not in export.written:
                export.leave_out(name, "the recorded file covers all steps, and is not copied for some of them")
        elif file.stat().st_size <= export.timeline_limit_bytes or "timeline_display" not in name:
            export.copy(name, file)
            export.left_out = {what: why for what, why in export.left_out.items() if what.partition(" (")[0] != name}


def _remove_made(export: RankExport, found: Mapping[str, Path]) -> None:
    """Remove files that were made of the tables where the profile has one of their kind under another name."""
    kinds = {kind[0] for name in found if (kind := kind_of(name))}
    for name in [name for name in export.written if name not in found]:
        kind = kind_of(name)
        if kind is not None and kind[0] in kinds:
            (export.directory / name).unlink()
            export.written.remove(name)


def originals_of(files: tuple[Path, ...], rank: int) -> Mapping[str, Path]:
    """Files of a rank by their names in a profile. Those of an old cluster are named by device, and are left out."""
    found = {}
    for file in files:
        name = f"{_FOLDER}/{file.name}" if file.parent.name == _FOLDER else file.name
        kind = kind_of(name)
        is_numbered = kind is not None and kind[1] == rank
        if (is_numbered or (kind is None and is_known(name))) and not is_list_name(name) and file.is_file():
            found[name] = file
    return found
