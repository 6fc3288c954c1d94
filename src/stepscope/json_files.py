"""Reading a JSON file that stands beside recorded data: its size, damage and wrong kinds of content are judged here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from stepscope.errors import UnreadableInput

LARGEST_BYTES = 1 << 30
"""Larger than any file that is read whole: traces, which may be larger, are read in pieces."""
SMALL_BYTES = 16 << 20
"""Larger than any file that only describes a recording."""
COPY_AGAIN = "Copy the file again, or run the profiler's analysis again"
_BOM = b"\xef\xbb\xbf"
T = TypeVar("T")


def read_object(path: Path, remedy: str = COPY_AGAIN, *, most_bytes: int = LARGEST_BYTES) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        UnreadableInput: If the file cannot be read, is larger than `most_bytes`, or is not one JSON object;
            `remedy` is what the user can do then.
    """
    return object_in(_text_of(path, remedy, most_bytes), path, remedy)


def read_as(path: Path, decoder: msgspec.json.Decoder[T]) -> T | None:
    """The value of a JSON file, decoded as a type, in half the time that objects of unknown form take.

    None if it cannot be read or has any other form; `read_object` then takes what it can and says what is wrong.
    """
    try:
        return decoder.decode(_text_of(path, "", LARGEST_BYTES))
    except (UnreadableInput, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _text_of(path: Path, remedy: str, most_bytes: int) -> bytes:
    """The bytes of a file; raises `UnreadableInput` if it cannot be read or is larger than `most_bytes`."""
    try:
        with path.open("rb") as file:
            text = file.read(most_bytes + 1)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise UnreadableInput(path, problem, "Check the file and its disk") from error
    if len(text) > most_bytes:
        raise UnreadableInput(path, f"is larger than {most_bytes >> 20} MiB", remedy)
    return text


def object_in(text: bytes, path: Path, remedy: str = COPY_AGAIN) -> dict[str, Any]:
    """The JSON object that the text of a file is.

    Raises:
        UnreadableInput: If it is something else.
    """
    if not text.strip():
        raise UnreadableInput(path, "is empty", remedy)
    try:
        value = _decoded(text.removeprefix(_BOM))
    except RecursionError as error:
        raise UnreadableInput(path, "is nested too deeply to be read", remedy) from error
    except ValueError as error:
        raise UnreadableInput(path, f"is cut off or damaged ({error})", remedy) from error
    if not isinstance(value, dict):
        raise UnreadableInput(path, "holds no JSON object", remedy)
    return value


def value_in(text: str | None) -> Any:
    """The value of a JSON text in a cell of a table or in another file; None if there is none, or it is damaged."""
    try:
        return _decoded(text.encode("utf-8", "replace")) if text else None
    except (ValueError, RecursionError):
        return None


def _decoded(text: bytes) -> Any:
    """The value of a JSON text; bytes that are no UTF-8 become replacement characters.

    Raises:
        ValueError: If it is damaged.
        RecursionError: If it is nested too deeply.
    """
    try:
        return msgspec.json.decode(text)
    except UnicodeDecodeError:
        return _decoded(text.decode("utf-8", "replace").encode())
    except msgspec.MsgspecError:
        if b"NaN" not in text and b"Infinity" not in text:
            raise
        return json.loads(text)  # what Python writes, and so profilers written in it
