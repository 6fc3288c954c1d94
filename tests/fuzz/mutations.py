"""Odd and damaged texts of trace events and CSV tables, drawn from a seeded source of chance."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

NUMBERS = (
    "0", "-0", "-1", "1", "1.0", "1.5", "-0.0005", "1e3", "1E-3", "1e15", "1e16", "-1e15", "1.25e2", "1e999",
    "1e-999", "9007199254740993", "1234567890123456", "1234567890123456.7895", "12345678901234567",
    "123456789012345678", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
    "18446744073709551615", "18446744073709551616", "123456789012345678901234567890", "0.1", "0.30000000000000004",
    "100000.0", "1e22", "1e23", "4503599627370497.5", "01", "+1", "1.", ".5", "0x10", "1_000", "NaN", "Infinity",
    "-Infinity", "2147483648",
)  # fmt: skip
WORDS = (
    "", " ", "0", "7", "-7", " 7", "7 ", "+7", "007", "1e15", "1.0", "1234567890123456", "9223372036854775808",
    "null", "true", "nan", "inf", "1_0", "٣", "é", "\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\\u0000", "\\n", "\\/",
    "\\x", "twelve bytes", "thirteen byte", "a long name of a kernel<float, 4>", "[1, 2]", "-", "--1", "N/A", "0.5",
    "1,5",
)  # fmt: skip
OTHERS = (
    "null", "true", "false", "{}", "[]", '{"a": 1}', "[1,2,,3]", "[1, 2]", "[[1,2], [], 3]", "[ 1 ,2 ]", '{"a" 1}',
    '{"a":}', "[1 2]", "[,]", "[1,]", "[tru]", "[nul]", "[01]", "[1.]", "[NaN]", '["\\ud800"]', '["a" "b"]', "nul",
    "", "[[[[[[[[[[]]]]]]]]]]", "{1: 2}", '{"a": 1,}', "[+1]", "[-]", "[1e]", "[\t1\n]", '["\\q"]', "]", "}",
    '{"a": 1, "a": 2}',
)  # fmt: skip
KEYS = (
    "ph", "name", "cat", "pid", "tid", "ts", "dur", "id", "args", "s", "bp", "External id", "correlation", "stream",
    "Input Dims", "Input type", "bytes", "device", "Sequence number", "Call stack", "Addr", "Bytes", "other",
)  # fmt: skip
TOKENS = (
    b'"', b"\\", b",", b":", b"{", b"}", b"[", b"]", b" ", b"\n", b"\t", b"\x00", b"\x0b", b"\xff", b"\xc3",
    b"\xed\xa0\x80", b"\xc2\xa0", b"0", b"-", b"e", b".", b'""', b"null",
)  # fmt: skip

CELLS = (
    b"0", b"7", b"12.5", b"1760000000000462.9049\t", b"0.30000000000000004", b"aten::add", b"NPU:3", b'"""4,1;2"""',
    b"", b"N/A", b"NA", b"-1.5", b"-0", b"1e-3", b"1e22", b"1e999", b"-1e400", b"1e-999", b"9007199254740993",
    b"123456789012345678", b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"2147483648",
    b"nan", b"inf", b"-Infinity", b"007", b"+1", b"1.", b".5", b"0x10", b"1_0", b"true", b"null", b" x ", b" ",
    b"\t7", b" 7", b"7 ", b"\x0b7", b"\x0ca\x0c", b"x\xc3\xa9y", b"\xc3\xa9", b" \xc2\xa0x", b"x\xc2\xa0 ",
    b"\xe3\x80\x80x", b" \xe2\x80\x83", b"\x1fx\x1f", b"\x85", b"\xff", b'"b, c"', b'""', b'"N/A"', b'" x "', b'"7"',
    b'"""a""b"""', b'""""', b'"a\nb"', b'a"b', b'"a"b', b"1,2", b"a\rb", b"\r", b"9000000000000000",
    b"9000000000000001.5", b"12.", b"12.5.6", b"-0.5", b"--1", b"1-2", b"12.3456789012", b"\xd9\xa3", b"12 .5",
    b"1 2", b"'", b"\x00", b"NPU:", b"3 NPU", b"-9223372036854775808", b"0.1\t ",
)  # fmt: skip
"""Fields of CSV tables; the first of them are of an ordinary kind."""
ORDINARY_CELLS = 8

_VALUE = re.compile(rb'(?<=:)\s*("(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|\[[^\[\]{}]*\]|null|true|false)')
_KEY = re.compile(rb'"([A-Za-z][A-Za-z0-9 ]{0,30})"(?=\s*:)')
_BETWEEN = re.compile(rb'(?<=[0-9\]}"])\s*([,:\]}])|(?<=[\[{,:])')


def event_text(source: random.Random, events: Sequence[bytes]) -> bytes:
    """A few events, separated by commas, most of them with something odd in them."""
    start = source.randrange(len(events))
    chosen = [events[(start + n) % len(events)] for n in range(source.randint(1, 4))]
    if source.random() < 0.3:
        chosen.append(source.choice(events))
    for _ in range(source.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        at = source.randrange(len(chosen))
        chosen[at] = source.choice(MUTATIONS)(source, chosen[at])
    text = source.choice((b",", b", ", b",\n  ", b" ,\n")).join(chosen)
    return damaged(source, text) if source.random() < 0.1 else text


def damaged(source: random.Random, text: bytes) -> bytes:
    """The text with one byte or token changed, or its end cut off."""
    return source.choice((_cut, _token, _flip))(source, text)


def csv_text(source: random.Random, width: int) -> bytes:
    """A header and a few rows of so many fields, some of them odd."""
    end = source.choice((b"\n", b"\n", b"\r\n"))
    ordinary = source.choices(CELLS[:ORDINARY_CELLS], k=width)
    rows = [[f"column {n}".encode() for n in range(width)]]
    for _ in range(source.randint(1, 6)):
        rows.append([source.choice(CELLS) if source.random() < 0.1 else cell for cell in ordinary])
    text = end.join([*map(b",".join, rows), b""])
    return damaged(source, text) if source.random() < 0.1 else text


def _number(source: random.Random, text: bytes) -> bytes:
    return _replaced(source, text, source.choice(NUMBERS))


def _word(source: random.Random, text: bytes) -> bytes:
    return _replaced(source, text, f'"{source.choice((*WORDS, *NUMBERS))}"')


def _other(source: random.Random, text: bytes) -> bytes:
    return _replaced(source, text, source.choice(OTHERS))


def _replaced(source: random.Random, text: bytes, value: str) -> bytes:
    """The text with another value in the place of one of its values."""
    places = list(_VALUE.finditer(text))
    if not places:
        return text
    place = source.choice(places)
    return text[: place.start(1)] + value.encode() + text[place.end(1) :]


def _added(source: random.Random, text: bytes) -> bytes:
    """A key more, or a key again, somewhere in the event or its arguments."""
    brace = [at for at, byte in enumerate(text) if byte == 0x7B]
    if not brace:
        return text
    at = source.choice(brace) + 1
    value = source.choice((source.choice(NUMBERS), f'"{source.choice(WORDS)}"', source.choice(OTHERS)))
    return text[:at] + f'"{source.choice(KEYS)}": {value}, '.encode() + text[at:]


def _doubled(source: random.Random, text: bytes) -> bytes:
    """A key and value of the event again behind it."""
    pairs = list(re.finditer(rb'"[^"\\]+"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9.]+)', text))
    if not pairs:
        return text
    pair = source.choice(pairs)
    return text[: pair.end()] + b", " + source.choice(pairs)[0] + text[pair.end() :]


def _renamed(source: random.Random, text: bytes) -> bytes:
    keys = list(_KEY.finditer(text))
    if not keys:
        return text
    key = source.choice(keys)
    name = source.choice((*KEYS, "\\u0070h", "ti\\u0064", "nam\\u0065", "TS", ""))
    return text[: key.start(1)] + name.encode() + text[key.end(1) :]


def _space(source: random.Random, text: bytes) -> bytes:
    places = list(_BETWEEN.finditer(text))
    if not places:
        return text
    at = source.choice(places).start()
    return text[:at] + source.choice((b" ", b"\n", b"\t", b"\r\n", b"  ", b"\x0c", b"\xc2\xa0")) + text[at:]


def _token(source: random.Random, text: bytes) -> bytes:
    at = source.randint(0, len(text))
    return text[:at] + source.choice(TOKENS) + text[at + source.choice((0, 0, 1)) :]


def _flip(source: random.Random, text: bytes) -> bytes:
    if not text:
        return text
    at = source.randrange(len(text))
    return text[:at] + bytes([source.randrange(256)]) + text[at + 1 :]


def _removed(source: random.Random, text: bytes) -> bytes:
    if not text:
        return text
    at = source.randrange(len(text))
    return text[:at] + text[at + source.choice((1, 1, 2, 5, 20)) :]


def _cut(source: random.Random, text: bytes) -> bytes:
    return text[: source.randint(0, len(text))]


MUTATIONS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _number, _number, _word, _word, _other, _other, _added, _added, _doubled, _renamed, _space, _space, _token,
    _flip, _removed, _cut,
)  # fmt: skip
