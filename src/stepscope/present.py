"""How figures are formatted: titles, units and counts, the same on every surface."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, Literal, get_args

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
"""Languages of findings and verdict; other words are English."""

SEVERITY_COLOURS = {"high": "#B5495B", "medium": "#fcaf17", "low": "#65c294"}
"""Colours of severities, red, yellow and green, as the Ascend advisor's report has them."""

SUFFIXES = {"_ns": "", "_ratio": " %", "_factor": "", "_bytes_per_s": "", "_bytes": ""}
"""Unit suffixes and their replacement in titles: a share needs a mark to distinguish it from its figure."""


def title(column: str) -> str:
    """The title made from a column's name, without unit suffix and underscores.

    Examples:
        >>> title("cost_ns"), title("cost_ratio")
        ('cost', 'cost %')
    """
    for suffix, instead in SUFFIXES.items():
        if column.endswith(suffix):
            return column.removesuffix(suffix).replace("_", " ") + instead
    return column.replace("_", " ")


def cell(column: str, value: Any) -> str:
    """A value as text, with its unit by the column's suffix; null is a dash.

    In the answer to a query, also texts and moments may be called as numbers are.
    """
    if value is None:
        return "-"
    if isinstance(value, str):
        return data_type(value) if column.endswith("data_type") else value
    if isinstance(value, (int, float)):
        for suffix, text in TEXTS.items():
            if column.endswith(suffix):
                return text(value)
    return f"{value:.2f}".replace("-0.00", "0.00") if isinstance(value, float) else str(value)


def duration(ns: float) -> str:
    """A duration in the unit that keeps it short: ns under 0.1 us, us under 1 ms, ms under 1 s, else s.

    Examples:
        >>> duration(0), duration(40), duration(999_960), duration(1.5e9)
        ('0 us', '40 ns', '1.00 ms', '1.50 s')
    """
    magnitude = abs(ns)
    if magnitude >= 0.999995e9:  # would round to 1000.00 ms
        return f"{ns / 1e9:.2f} s"
    if magnitude >= 0.99995e6:
        return f"{ns / 1e6:.2f} ms"
    if magnitude >= 100 or not magnitude:
        return f"{ns / 1e3:.1f} us" if magnitude else "0 us"
    return f"{ns:.0f} ns"


def size(count: float) -> str:
    """A size in decimal units, as communication libraries report it."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(count) >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count:.0f} B"


DATED_NS = 10**18
"""Clocks show this since September 2001; one that shows less counts from something else, e.g. the start of its host."""


def minute(time_ns: int | None) -> str:
    """A moment to the minute, in UTC; empty if unknown.

    Examples:
        >>> minute(1_700_000_000 * 10**9), minute(None), minute(5)
        ('2023-11-14 22:13', '', '')
    """
    if time_ns is None or time_ns < DATED_NS:
        return ""
    try:
        return f"{datetime.fromtimestamp(time_ns // 10**9, timezone.utc):%Y-%m-%d %H:%M}"
    except (OverflowError, OSError, ValueError):  # a damaged recording may hold any number
        return ""


def operations(count: float) -> str:
    """Floating point operations, in the unit that keeps them short.

    Examples:
        >>> operations(2.4e9), operations(12.0)
        ('2.40 GFLOP', '12 FLOP')
    """
    for factor, unit in ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP")):
        if abs(count) >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count:.0f} FLOP"


TEXTS: dict[str, Callable[[Any], str]] = {
    "_ns": duration,
    "_ratio": lambda ratio: f"{ratio:.1%}".replace("-0.0%", "0.0%"),
    "_factor": "{:.2f}x".format,
    "_bytes_per_s": lambda rate: f"{rate / 1e9:.2f} GB/s",
    "_bytes": size,
    "flops_per_s": lambda rate: f"{operations(rate)}/s",
    "flops": operations,
}
"""Unit suffixes and their formatting functions."""


_TYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bf16",
    "long int": "int64",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "byte": "uint8",
}
"""Frameworks' names of data types (lower case, without prefix) and the usual names."""


def data_type(name: str) -> str:
    """The usual name of a data type.

    Examples:
        >>> data_type("float"), data_type("c10::BFloat16"), data_type("DT_BF16"), data_type("FLOAT16")
        ('float32', 'bf16', 'bf16', 'float16')
    """
    plain = name.lower().removeprefix("c10::").removeprefix("dt_")
    return _TYPES.get(plain, plain if plain.isidentifier() and name.isascii() else name)


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun.

    Examples:
        >>> plural(1, "step"), plural(2, "step"), plural(0, "entry", "entries")
        ('1 step', '2 steps', '0 entries')
    """
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def listed(words: list[str], last: str = "and") -> str:
    """Words listed as in a sentence.

    Examples:
        >>> listed(["a", "b", "c"])
        'a, b and c'
    """
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def printable(text: str, keep: str = "") -> str:
    r"""Text made safe for a terminal: control, format and unpaired surrogate characters become escapes.

    Names of files and operators may hold anything. Characters to `keep` stay.

    Examples:
        >>> printable("a\x1b[31m\n")
        'a\\x1b[31m\\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or not _is_obeyed(c) else _escape(c) for c in text)


def _is_obeyed(character: str) -> bool:
    """Control (Cc), format such as writing direction (Cf), surrogates (Cs), line and paragraph ends (Zl, Zp)."""
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escape(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte of a file name that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
