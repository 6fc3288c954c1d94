"""Reading JSON files that others wrote: what is refused, and how, is the same for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.errors import UnreadableInput
from stepscope.json_files import read_object, value_in


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b'{"a": 1', "is cut off or damaged"),
        (b"NaN NaN", "is cut off or damaged"),
        (b"[1, 2]", "holds no JSON object"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is nested too deeply to be read"),
        (b'{"a": "' + b"x" * 2000 + b'"}', "is larger than 0 MiB"),
    ],
)
def test_a_file_that_is_no_object_is_refused_with_the_reason(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "info.json"
    file.write_bytes(content)

    with pytest.raises(UnreadableInput) as refused:
        read_object(file, "Copy it again", most_bytes=2000 if b"x" in content else 1 << 20)

    assert refused.value.problem.startswith(problem)
    assert (refused.value.path, refused.value.remedy) == (str(file), "Copy it again")


def test_a_missing_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="cannot be read: No such file"):
        read_object(tmp_path / "gone.json")


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'{"a": "\xff"}', {"a": "�"}),
        (b'{"a": [Infinity, -Infinity, 1]}', {"a": [float("inf"), float("-inf"), 1]}),
        (b'{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
    ],
)
def test_what_other_programs_write_is_read(tmp_path: Path, content: bytes, value: object) -> None:
    file = tmp_path / "info.json"
    file.write_bytes(content)

    assert read_object(file) == value


@pytest.mark.parametrize(
    ("text", "value"), [("[0, 1]", [0, 1]), ("", None), (None, None), ("[0, 1, ...", None), ("[" * 100_000, None)]
)
def test_a_damaged_text_in_a_cell_has_no_value(text: str | None, value: object) -> None:
    assert value_in(text) == value
