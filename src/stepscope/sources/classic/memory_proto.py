"""`memory_usage_N.pb`: the memory plan as MindSpore writes it, before its analysis makes JSON of it.

Protobuf messages, numbered as MindSpore's `memory_profiling.proto` defines them (1.2 to 2.4, unchanged):

    file    1 graphs (repeated)  2 memory of the device
    graph   1 id  2 static memory  3 nodes (repeated)  4 tensors (repeated)
            5 name of the first node of the forward pass  6 name of the last node of the backward pass
    node    1 name  2 id in the order of execution  3 inputs  4 outputs  5 workspaces (ids of tensors)
    tensor  1 id  2 size  3 type  4 first node  5 last node  6 lifetime

Sizes are bytes. MindSpore writes the ids of the outputs for the workspaces too, so these are useless.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepscope.sources.base import Sink
from stepscope.sources.classic.memory_plan import NO_LIFETIME, GraphPlan
from stepscope.sources.side_files import AGAIN, report_unreadable

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class _Damaged(Exception):
    """The content is not a message."""


def read_proto(path: Path, sink: Sink) -> tuple[list[GraphPlan], int | None]:
    """The graphs of a file and the memory of the device in bytes (null if not recorded), up to any damage."""
    try:
        content = path.read_bytes()
    except OSError as error:
        report_unreadable(error, path, sink)
        return [], None
    message, plans = _Message(), []
    try:
        message.take(content)
        plans = [_plan(part, message) for part in message.parts[1]]
    except _Damaged as error:
        sink.issue("error", path, f"is not the memory plan of a profile: {error}", AGAIN)
        return [], None
    if message.is_cut:
        sink.issue("error", path, "is truncated; the part before is read", AGAIN, place=f"byte {len(content)}")
    elif not plans:
        sink.issue("warning", path, "holds no graphs" if content else "is empty", AGAIN)
    return plans, message.number(2)


class _Message:
    """The fields of one message: numbers, and the bytes of texts, packed numbers and messages within."""

    def __init__(self) -> None:
        self.numbers: dict[int, list[int]] = defaultdict(list)
        self.parts: dict[int, list[bytes]] = defaultdict(list)
        self.is_cut = False

    def take(self, content: bytes) -> _Message:
        """Read the fields; a truncated message has the fields before the end, and what there is of the last one."""
        at = 0
        try:
            while at < len(content):
                key, at = _varint(content, at)
                number, kind = key >> 3, key & 7
                if kind == _VARINT:
                    value, at = _varint(content, at)
                    self.numbers[number].append(value)
                elif kind == _BYTES:
                    size, at = _varint(content, at)
                    self.parts[number].append(content[at : at + size])
                    at += size
                elif kind in (_FIXED32, _FIXED64):
                    at += 4 if kind == _FIXED32 else 8
                if number == 0 or kind not in (_VARINT, _FIXED64, _BYTES, _FIXED32):
                    raise _Damaged(f"no field starts at byte {at}")
        except IndexError:
            self.is_cut = True
        self.is_cut |= at > len(content)
        return self

    def within(self, content: bytes) -> _Message:
        """Read a message that is a field of this one."""
        inner = _Message().take(content)
        self.is_cut |= inner.is_cut
        return inner

    def number(self, field: int) -> int | None:
        """The last number of a field."""
        return self.numbers[field][-1] if self.numbers[field] else None

    def listed(self, field: int) -> Iterator[int]:
        """All numbers of a field, packed or not."""
        yield from self.numbers[field]
        for packed in self.parts[field]:
            at = 0
            while at < len(packed):
                try:
                    value, at = _varint(packed, at)
                except IndexError:
                    return
                yield value

    def text(self, field: int) -> str | None:
        """The last text of a field."""
        return self.parts[field][-1].decode("utf-8", "replace") or None if self.parts[field] else None


def _plan(content: bytes, file: _Message) -> GraphPlan:
    graph = file.within(content)
    plan = GraphPlan(graph.number(1) or 0, graph.number(2) or 0)
    nodes = [graph.within(part) for part in graph.parts[3]]
    tensors = [graph.within(part) for part in graph.parts[4]]
    file.is_cut |= graph.is_cut
    sizes = {tensor.number(1) or 0: tensor.number(2) or 0 for tensor in tensors}
    makers: dict[int, int] = {}
    for node in nodes:
        outputs = list(node.listed(4))
        makers |= {tensor: node.number(2) or 0 for tensor in outputs if tensor not in makers}
        plan.nodes.append(_node_row(node, [sizes[tensor] for tensor in outputs if tensor in sizes]))
    plan.tensors = [_tensor_row(tensor, makers) for tensor in tensors]
    numbers = {node["full_name"]: node["node"] for node in reversed(plan.nodes)}
    plan.forward_start, plan.backward_end = (numbers.get(name) if (name := graph.text(at)) else None for at in (5, 6))
    return plan


def _node_row(node: _Message, sizes: list[int]) -> dict[str, Any]:
    name = node.text(1)
    return {
        "node": node.number(2) or 0,
        "name": name.rpartition("/")[2] if name else None,
        "full_name": name,
        "size_bytes": sum(sizes),
        "allocations": len(sizes),
    }


def _tensor_row(tensor: _Message, makers: dict[int, int]) -> dict[str, Any]:
    number, lifetime = tensor.number(1) or 0, tensor.text(6)
    return {
        "tensor": number,
        "node": makers.get(number),
        "type": tensor.text(3),
        "size_bytes": tensor.number(2) or 0,
        "lifetime": None if lifetime == NO_LIFETIME else lifetime,
        "life_start": tensor.number(4) or 0,
        "life_end": tensor.number(5) or 0,
    }


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """The number at a place, as a signed one of 64 bits, and the place behind it.

    Raises:
        IndexError: If the content ends in it.
        _Damaged: If it is longer than any number.
    """
    value = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= (1 << 64) - 1
            return (value - (1 << 64) if value >> 63 else value), at
    raise _Damaged(f"the number at byte {at} does not end")
