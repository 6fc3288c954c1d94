"""What happens to files on disks and in copies: each damage makes a file's content another one."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable

Damage = Callable[[str, bytes], bytes | None]
"""Name and content of a file to what is left of it; None where the damage cannot happen to such a file."""
_NUMBER = re.compile(rb'(?<![\w."-])-?\d+(?:\.\d+)?(?![\w."-])')
_WITH_HEADER = ("minddata_aicpu", "minddata_getnext", "cpu_ms_memory", "flops_0.txt", "output_timeline_data")


def is_json(name: str) -> bool:
    """Whether a file holds JSON."""
    return ".json" in name


def is_table(name: str) -> bool:
    """Whether a file is CSV, whatever its name ends with."""
    return name.endswith(".csv") or name in ("flops_0.txt", "output_timeline_data_0.txt")


def empty(_name: str, _content: bytes) -> bytes:
    return b""


def header_only(name: str, content: bytes) -> bytes | None:
    has_header = name.endswith(".csv") or name.startswith(_WITH_HEADER)
    return content.partition(b"\n")[0] + b"\n" if has_header else None


def cut_early(_name: str, content: bytes) -> bytes:
    return content[: len(content) // 10]


def cut_late(_name: str, content: bytes) -> bytes:
    return content[: len(content) * 9 // 10 - 3]


def other_header(name: str, content: bytes) -> bytes:
    if is_json(name):
        return b'{"something": {"else": 1}}'
    return b"alpha,beta\n" + content.partition(b"\n")[2]


def _numbers_as(word: bytes) -> Damage:
    def damaged(name: str, content: bytes) -> bytes | None:
        if name.endswith(".pb"):
            return None
        header, newline, rest = content.partition(b"\n")
        if header_only(name, content) is None:
            return _NUMBER.sub(word, content)
        return header + newline + _NUMBER.sub(word, rest)

    return damaged


text = _numbers_as(b"many")
not_a_number = _numbers_as(b"nan")
huge = _numbers_as(b"1e300")
large = _numbers_as(b"999999999999999")
negative = _numbers_as(b"-5")


def binary(_name: str, _content: bytes) -> bytes:
    return bytes(range(256)) * 8


def utf_16(_name: str, content: bytes) -> bytes:
    return content.decode("utf-8", "replace").encode("utf-16")


def deep(name: str, _content: bytes) -> bytes:
    return b'{"a":' * 100_000 if is_json(name) or name.endswith(".pb") else b"[" * 200_000


def _leaves_as(value: object) -> Damage:
    def turned(part: object) -> object:
        if isinstance(part, dict):
            return {key: turned(one) for key, one in part.items()}
        return [turned(one) for one in part] if isinstance(part, list) else value

    def damaged(name: str, content: bytes) -> bytes | None:
        return json.dumps(turned(json.loads(content))).encode() if is_json(name) else None

    return damaged


lists_for_values = _leaves_as([1])
objects_for_values = _leaves_as({"a": 1})


def other_json(name: str, _content: bytes) -> bytes | None:
    return b'"text"' if is_json(name) else None


def open_quote(name: str, content: bytes) -> bytes | None:
    return content.replace(b"\n", b'\n"', 1) if is_table(name) else None


def other_order(name: str, content: bytes) -> bytes | None:
    if is_table(name):
        return _table([row[::-1] for row in _rows(content)])
    value = json.loads(content) if is_json(name) else None
    return json.dumps(dict(reversed(value.items()))).encode() if isinstance(value, dict) else None


def new_column(name: str, content: bytes) -> bytes | None:
    if not is_table(name):
        return None
    return _table([["novelty" if at == 0 else "7", *row] for at, row in enumerate(_rows(content))])


def without_column(at: int) -> Damage:
    """The damage of a table that lacks one column."""

    def damaged(name: str, content: bytes) -> bytes | None:
        rows = _rows(content) if is_table(name) else [[]]
        if at >= len(rows[0]):
            return None
        return _table([[cell for place, cell in enumerate(row) if place != at] for row in rows])

    return damaged


def line_ends(name: str, content: bytes) -> bytes | None:
    return None if name.endswith(".pb") else content.replace(b"\n", b"\r\n")


def byte_order_mark(name: str, content: bytes) -> bytes | None:
    return None if name.endswith(".pb") else b"\xef\xbb\xbf" + content


def _rows(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode())))


def _table(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


HARMLESS = (other_order, new_column, line_ends, byte_order_mark)
"""Changes that take nothing away."""
DAMAGES: dict[str, Damage] = {
    function.__name__: function
    for function in (
        *(empty, header_only, cut_early, cut_late, other_header, binary, utf_16, deep, other_json, open_quote),
    )
} | {
    "text": text,
    "nan": not_a_number,
    "huge": huge,
    "large": large,
    "negative": negative,
    "lists for values": lists_for_values,
    "objects for values": objects_for_values,
}
