"""Reading a pickle without running anything: an interpreter of the few opcodes that build plain data.

Python's own reader calls what a file names. This one knows no classes and no calls: a file that asks for one is
refused. Sizes are bounded before memory is taken, and nothing here is recursive.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

PROTOCOLS = range(2, 6)

MOST_BYTES = 256 << 20
"""Larger than any dump: a ring of 20,000 calls takes 40 MB."""

MOST_VALUES = 10_000_000
"""Values that a file may make; each costs up to a hundred bytes of memory, whatever it takes in the file."""

MOST_INTEGER_BYTES = 16
"""Longer integers than any id or time."""


class RefusedPickle(ValueError):
    """The file is damaged, too large, or asks for more than plain data."""


def starts_like_pickle(head: bytes) -> bool:
    """Whether a file with these first bytes is a pickle of a known protocol."""
    return len(head) > 1 and head[0] == 0x80 and head[1] in PROTOCOLS


def plain_data(content: bytes) -> Any:
    """The value in a pickle that consists of dicts, lists, tuples, texts, bytes, numbers, True, False and None.

    A part may be the same object at several places, so a caller that walks through the value must bound its work.

    Raises:
        RefusedPickle: If it has anything else, is damaged or cut off, or is too large.
    """
    if len(content) > MOST_BYTES:
        raise RefusedPickle(f"is larger than {MOST_BYTES >> 20} MiB")
    if not starts_like_pickle(content):
        raise RefusedPickle("is not a pickle")
    try:
        return _Reader(content).value()
    except (IndexError, KeyError, struct.error, TypeError, UnicodeDecodeError) as error:
        raise RefusedPickle("is cut off or damaged") from error


class _Reader:
    """The machine that a pickle is a program of: a stack, and a memory of numbered values."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 2
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memory: dict[int, Any] = {}

    def value(self) -> Any:
        """Run the program to its end."""
        content, made = self._content, 0
        while True:
            opcode = content[self._at]
            self._at += 1
            if opcode == 0x2E:
                if len(self._stack) != 1 or self._marks:
                    raise RefusedPickle("is damaged: more than one value is left at its end")
                return self._stack[0]
            step = _STEPS.get(opcode)
            if step is None:
                raise RefusedPickle(f"asks for more than plain data (opcode {chr(opcode)!r} at byte {self._at - 1})")
            step(self)
            made += 1
            if made > MOST_VALUES:
                raise RefusedPickle(f"has more than {MOST_VALUES} values")

    def _bytes(self, count: int) -> bytes:
        found = self._content[self._at : self._at + count]
        if len(found) < count:
            raise RefusedPickle("is cut off")
        self._at += count
        return found

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _text(self, form: str) -> None:
        self._stack.append(self._bytes(self._number(form)).decode("utf-8", "replace"))

    def _raw(self, form: str) -> None:
        self._stack.append(self._bytes(self._number(form)))

    def _integer(self, form: str) -> None:
        count = self._number(form)
        if not 0 <= count <= MOST_INTEGER_BYTES:
            raise RefusedPickle("has an integer of a size that no dump has")
        self._stack.append(int.from_bytes(self._bytes(count), "little", signed=True))

    def _skip_frame(self) -> None:
        self._at += 8

    def _mark(self) -> None:
        self._marks.append(len(self._stack))

    def _since_mark(self) -> list[Any]:
        start = self._marks.pop()
        found = self._stack[start:]
        del self._stack[start:]
        return found

    def _top(self, kind: type) -> Any:
        """The container on top of the stack, which must be above the last mark."""
        if self._marks and len(self._stack) <= self._marks[-1]:
            raise RefusedPickle("is damaged: something is added to nothing")
        found = self._stack[-1]
        if type(found) is not kind:
            raise RefusedPickle("is damaged: something is added to a value of another type")
        return found

    def _append(self) -> None:
        value = self._stack.pop()
        self._top(list).append(value)

    def _extend(self) -> None:
        values = self._since_mark()
        self._top(list).extend(values)

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._top(dict)[_key(key)] = value

    def _set_items(self) -> None:
        values = self._since_mark()
        if len(values) % 2:
            raise RefusedPickle("is damaged: a key has no value")
        target = self._top(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            target[_key(key)] = value

    def _tuple(self, count: int) -> None:
        if len(self._stack) < count:
            raise RefusedPickle("is damaged: a tuple lacks values")
        values = tuple(self._stack[-count:])
        del self._stack[-count:]
        self._stack.append(values)

    def _keep(self, form: str) -> None:
        self._memory[self._number(form)] = self._stack[-1]

    def _keep_next(self) -> None:
        self._memory[len(self._memory)] = self._stack[-1]

    def _recall(self, form: str) -> None:
        self._stack.append(self._memory[self._number(form)])

    def _push(self, value: Any) -> None:
        self._stack.append(value)


def _key(value: Any) -> Any:
    """A key of a dict: texts and numbers, with which a file cannot stretch the time.

    Integers beyond this size may all have one hash, and then each is compared with all before it.
    """
    if not isinstance(value, (str, int, float, bytes)) and value is not None:
        raise RefusedPickle("has a key that is neither a text nor a number")
    if isinstance(value, int) and abs(value) >= 1 << 60:
        raise RefusedPickle("has a key of a size that no dump has")
    return value


_STEPS: dict[int, Callable[[_Reader], None]] = {
    0x95: _Reader._skip_frame,
    ord("}"): lambda reader: reader._push({}),
    ord("]"): lambda reader: reader._push([]),
    ord(")"): lambda reader: reader._push(()),
    ord("N"): lambda reader: reader._push(None),
    0x88: lambda reader: reader._push(True),
    0x89: lambda reader: reader._push(False),
    ord("X"): lambda reader: reader._text("<I"),
    0x8C: lambda reader: reader._text("<B"),
    0x8D: lambda reader: reader._text("<Q"),
    ord("B"): lambda reader: reader._raw("<I"),
    ord("C"): lambda reader: reader._raw("<B"),
    ord("J"): lambda reader: reader._push(reader._number("<i")),
    ord("K"): lambda reader: reader._push(reader._number("<B")),
    ord("M"): lambda reader: reader._push(reader._number("<H")),
    0x8A: lambda reader: reader._integer("<B"),
    0x8B: lambda reader: reader._integer("<i"),
    ord("G"): lambda reader: reader._push(reader._number(">d")),
    ord("("): _Reader._mark,
    ord("a"): _Reader._append,
    ord("e"): _Reader._extend,
    ord("s"): _Reader._set_item,
    ord("u"): _Reader._set_items,
    ord("t"): lambda reader: reader._push(tuple(reader._since_mark())),
    0x85: lambda reader: reader._tuple(1),
    0x86: lambda reader: reader._tuple(2),
    0x87: lambda reader: reader._tuple(3),
    ord("q"): lambda reader: reader._keep("<B"),
    ord("r"): lambda reader: reader._keep("<I"),
    0x94: _Reader._keep_next,
    ord("h"): lambda reader: reader._recall("<B"),
    ord("j"): lambda reader: reader._recall("<I"),
}
"""What each opcode does. Those that name, call or build objects are not here."""
