"""Damaged contents of files in the making: one seeded change to a JSON, CSV, SQLite, text or other file.

What a value may become is chosen for what tables and formulas have limits for: numbers beyond 32 and 64 bits, numbers
below zero, no numbers at all, nothing, texts in the place of numbers and numbers in the place of texts.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sqlite3
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

Mutation = Callable[[random.Random, bytes], bytes]

NUMBERS: tuple[int | float, ...] = (
    0, 1, -1, -5, 0.5, 2**15, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63),
    -(2**63) - 1, 2**64 - 1, 2**64, 10**30, -(10**30), 1e15, 1e18, 1e300, -1e300, 1e-300,
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
TEXTS = (
    "", " ", "many", "N/A", "nan", "-", "0x10", "1e999", "12345678901234567890", "-9223372036854775809", "1,5", "é",
    "\0", "a\nb", '"', "[2147483648, 4294967296]", "4294967296,4294967296;4294967296", "[]", "{}", "true", "::", "@",
    "x" * 100_000,
)  # fmt: skip
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [1], {"a": 1}, [[2**40, 2**40], [2**40]], [None], ["x"])
SHAPES = (
    "4294967296,4294967296;4294967296,4294967296", "[3037000500, 3037000500]", "-1,-1;-1,-1", "0,0;0,0",
    "9223372036854775807", "1;1;1;1", ",,,;,,", '"8,16;16,4"', "[8, 16], [16, 4", "99999999999999999999,2;2,2",
)  # fmt: skip


def value(source: random.Random) -> Any:
    """A value that a file may hold and its writer never wrote there."""
    return source.choice(source.choice((NUMBERS, NUMBERS, TEXTS, OTHERS, SHAPES)))


def mutated(source: random.Random, content: bytes) -> bytes:
    """The content with one change that suits its kind; some changes leave it as it is."""
    try:
        change = source.choice(RAW) if source.random() < 0.15 else _change_for(content)
        return change(source, content)
    except (ValueError, LookupError, TypeError, RecursionError, OSError, EOFError, zlib.error):  # not with such content
        return _flip(source, content)


def _change_for(content: bytes) -> Mutation:
    """What changes content of its kind."""
    start = content.lstrip()[:1]
    if content.startswith(b"\x1f\x8b"):
        return lambda source, packed: gzip.compress(mutated(source, gzip.decompress(packed)), 1)
    if content.startswith(b"SQLite format 3\0"):
        return _database
    if start in (b"{", b"["):
        return _document if _is_document(content) else _lines
    return _table if b"," in content.partition(b"\n")[0] else _words


def _is_document(content: bytes) -> bool:
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def _document(source: random.Random, content: bytes) -> bytes:
    return json.dumps(_json(source, json.loads(content))).encode("utf-8", "surrogatepass")


def _flip(source: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 8, 64)) if content else 0):
        changed[source.randrange(len(changed))] = source.randrange(256)
    return bytes(changed)


def _cut(source: random.Random, content: bytes) -> bytes:
    return content[: source.randint(0, len(content))]


def _hole(source: random.Random, content: bytes) -> bytes:
    start = source.randint(0, len(content))
    return content[:start] + content[start + source.choice((1, 3, 20, 500)) :]


def _twice(source: random.Random, content: bytes) -> bytes:
    start = source.randint(0, len(content))
    return content[:start] + content[max(0, start - source.choice((1, 10, 300))) :]


def _zeros(source: random.Random, content: bytes) -> bytes:
    start = source.randint(0, len(content))
    length = min(len(content) - start, source.choice((1, 16, 512)))
    return content[:start] + bytes(length) + content[start + length :]


def _packed(_source: random.Random, content: bytes) -> bytes:
    return gzip.compress(content, 1)


RAW: tuple[Mutation, ...] = (
    *(_flip, _flip, _cut, _hole, _twice, _zeros, _packed),
    lambda _source, _content: b"",
    lambda _source, content: b"\xef\xbb\xbf" + content,
    lambda _source, content: content.replace(b"\n", b"\r\n"),
    lambda _source, content: content.decode("utf-8", "replace").encode("utf-16"),
)


def _json(source: random.Random, document: Any) -> Any:
    """A document with one value, or all values of one key, changed, lost, renamed or in another order."""
    places = list(_places(document))
    if not places:
        return value(source)
    chosen, key = source.choice(places)
    every = [(place, name) for place, name in places if name == key] if isinstance(key, str) else [(chosen, key)]
    act = source.choice((_replace, _replace, _replace, _drop, _rename, _retype, _shuffle, _repeat))
    for place, name in every if source.random() < 0.5 else [(chosen, key)]:
        act(source, place, name)
    return document


def _places(document: Any) -> Any:
    for key, part in document.items() if isinstance(document, dict) else enumerate(document):
        yield document, key
        if isinstance(part, (dict, list)):
            yield from _places(part)


def _replace(source: random.Random, place: Any, key: Any) -> None:
    place[key] = value(source)


def _drop(_source: random.Random, place: Any, key: Any) -> None:
    if isinstance(place, dict) or key < len(place):
        del place[key]


def _rename(source: random.Random, place: Any, key: Any) -> None:
    if isinstance(place, dict):
        place[source.choice(("other", key.upper(), key + " ", source.choice(list(place))))] = place.pop(key)


def _retype(source: random.Random, place: Any, key: Any) -> None:
    kinds: tuple[Callable[[Any], Any], ...] = (str, lambda part: [part], lambda part: {"a": part}, json.dumps)
    place[key] = source.choice(kinds)(place[key])


def _shuffle(source: random.Random, place: Any, key: Any) -> None:
    if isinstance(place[key], list):
        source.shuffle(place[key])
    elif isinstance(place[key], dict):
        items = list(place[key].items())
        source.shuffle(items)
        place[key] = dict(items)


def _repeat(source: random.Random, place: Any, key: Any) -> None:
    if isinstance(place, list):
        place.insert(source.randint(0, len(place)), place[key])
    elif isinstance(place[key], list):
        place[key] = place[key] * 2


def _lines(source: random.Random, content: bytes) -> bytes:
    """JSON lines, or text that only begins like JSON: one line changed, all the same key changed, or lines moved."""
    lines = content.split(b"\n")
    if source.random() < 0.3:
        source.shuffle(lines)
        return b"\n".join(lines)
    at = source.randrange(len(lines))
    chosen = range(len(lines)) if source.random() < 0.3 else [at]
    seed = source.random()
    for number in chosen:
        try:
            document = json.loads(lines[number])
        except (ValueError, RecursionError):
            continue
        if isinstance(document, (dict, list)):
            lines[number] = json.dumps(_json(random.Random(seed), document)).encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


def _words(source: random.Random, content: bytes) -> bytes:
    """Text of columns that spaces, semicolons or colons part."""
    part = source.choice([mark for mark in (b" ", b";", b":", b"\n") if mark in content] or [b"\n"])
    words = content.split(part)
    act = source.choice(("replace", "replace", "drop", "repeat", "shuffle"))
    at = source.randrange(len(words))
    if act == "replace":
        words[at] = _text(value(source)).encode("utf-8", "surrogatepass")
    elif act == "drop":
        del words[at]
    elif act == "repeat":
        words.insert(at, words[at])
    else:
        source.shuffle(words)
    return part.join(words)


def _table(source: random.Random, content: bytes) -> bytes:
    """CSV with a cell, a column or rows changed."""
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8", "surrogateescape"))))
    except csv.Error:
        return _flip(source, content)
    rows = [row for row in rows if row] or [[""]]
    source.choice(_ON_ROWS)(source, rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogateescape")


def _cell(source: random.Random, rows: list[list[str]]) -> None:
    row = source.choice(rows)
    if row:
        row[source.randrange(len(row))] = _text(value(source))


def _column(source: random.Random, rows: list[list[str]]) -> None:
    at, cell = source.randrange(max(map(len, rows))), _text(value(source))
    for row in rows[1:]:
        if at < len(row) and source.random() < 0.9:
            row[at] = cell


def _header(source: random.Random, rows: list[list[str]]) -> None:
    at = source.randrange(len(rows[0]))
    names = ("other", rows[0][at].upper(), f"{rows[0][at]}(ms)", source.choice(rows[0]), "")
    rows[0][at] = source.choice(names)


def _without_column(source: random.Random, rows: list[list[str]]) -> None:
    at = source.randrange(max(map(len, rows)))
    for row in rows:
        del row[at : at + 1]


def _columns_moved(source: random.Random, rows: list[list[str]]) -> None:
    order = list(range(max(map(len, rows))))
    source.shuffle(order)
    rows[:] = [[row[at] for at in order if at < len(row)] for row in rows]


def _rows_moved(source: random.Random, rows: list[list[str]]) -> None:
    body = rows[1:]
    source.shuffle(body)
    rows[1:] = body


def _rows_repeated(source: random.Random, rows: list[list[str]]) -> None:
    rows.extend([list(row) for row in source.choices(rows, k=source.choice((1, 3, 20)))])


_ON_ROWS: tuple[Callable[[random.Random, list[list[str]]], None], ...] = (
    *(_cell, _cell, _cell, _column, _column, _column, _header, _without_column, _columns_moved),
    *(_rows_moved, _rows_repeated),
    lambda _source, rows: rows.pop(0) and None,
)


def _text(made: Any) -> str:
    return made if isinstance(made, str) else "" if made is None else json.dumps(made)


def _database(source: random.Random, content: bytes) -> bytes:
    """A database with a cell, a column, rows or a table changed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy.db"
        path.write_bytes(content)
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                _on_table(source, connection)
        except sqlite3.Error:
            return _flip(source, content)
        return path.read_bytes()


def _on_table(source: random.Random, connection: sqlite3.Connection) -> None:
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if not tables:
        return
    table = f'"{source.choice(tables)}"'
    column = f'"{source.choice(connection.execute(f"PRAGMA table_info({table})").fetchall())[1]}"'
    new = value(source)
    if isinstance(new, int) and not -(2**63) <= new < 2**63:
        new = float(new)
    new = json.dumps(new) if isinstance(new, (list, dict)) else source.choice((new, new, new, b"\0\xff"))
    some = source.choice(("", "WHERE rowid % 2", f"WHERE rowid = (SELECT min(rowid) FROM {table})"))
    query, values = source.choice(
        (
            (f"UPDATE OR IGNORE {table} SET {column} = ? {some}", (new,)),
            (f"UPDATE OR IGNORE {table} SET {column} = ? {some}", (new,)),
            (f"UPDATE OR IGNORE {table} SET {column} = ? {some}", (new,)),
            (f"UPDATE OR IGNORE {table} SET {column} = NULL {some}", ()),
            (f"UPDATE OR IGNORE {table} SET {column} = -{column} {some}", ()),
            (f"UPDATE OR IGNORE {table} SET rowid = ? WHERE rowid = (SELECT max(rowid) FROM {table})", (2**63 - 1,)),
            (f"DELETE FROM {table} {some}", ()),
            (f"INSERT INTO {table} SELECT * FROM {table}", ()),
            (f"DROP TABLE {table}", ()),
            (f"ALTER TABLE {table} RENAME TO other", ()),
            (f"ALTER TABLE {table} RENAME COLUMN {column} TO other", ()),
            (f"ALTER TABLE {table} DROP COLUMN {column}", ()),
        )
    )
    connection.execute(query, values)
