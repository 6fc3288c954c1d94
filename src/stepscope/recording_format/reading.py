"""Reading the JSON files of recordings and of exports."""

from __future__ import annotations

from pathlib import Path

from stepscope.errors import UnreadableInput
from stepscope.json_files import read_object
from stepscope.json_values import whole_number
from stepscope.recording_format.about import FORMAT, VERSION, About
from stepscope.recording_format.export_list import ExportList, is_list_name
from stepscope.recording_format.layout import ABOUT
from stepscope.recording_format.rows import MARKS, WINDOWS

_REMEDY = "Copy the recording again"


def is_recording(directory: Path) -> bool:
    """Whether a directory with a `recording.json` is our recording, of any version; it may be damaged."""
    try:
        return read_object(directory / ABOUT).get("format") == FORMAT
    except UnreadableInput:
        return any((directory / file.name).exists() for file in (MARKS, WINDOWS))


def read_about(directory: Path) -> About:
    """Read `recording.json`.

    Raises:
        UnreadableInput: If it is damaged or has an unknown version.
    """
    path = directory / ABOUT
    values = read_object(path, _REMEDY)
    if values.get("format") != FORMAT:
        raise UnreadableInput(path, "does not describe a recording", _REMEDY)
    version = whole_number(values.get("version"))
    if version is None or version > VERSION:
        raise UnreadableInput(
            path,
            f"has format version {values.get('version')}; this stepscope reads up to version {VERSION}",
            "Update stepscope to at least the version that recorded it",
        )
    return About.of(directory, values)


def read_export_list(path: Path) -> ExportList | None:
    """Read a list of exported files; None if the file is not one, or is damaged."""
    try:
        return ExportList.of(path, read_object(path)) if is_list_name(path.name) else None
    except UnreadableInput:
        return None
