"""Communication: which device work is communication, and what each call was."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import polars as pl

from stepscope.json_files import value_in
from stepscope.json_values import whole_number
from stepscope.recording_format.element_types import element_bytes
from stepscope.sources.communication_names import is_library_kernel
from stepscope.sources.distinct import Distinct

HOST_CALL = r"^(gloo|mpi|ucc):"
DEVICE_CALL = r"^(nccl|rccl|xccl|hccl|ucc|mpi):"


TRANSFER = r"^\w+:(send|recv)\b"
"""Annotations of sends and receives."""

TRANSFER_CALL = r"^c10d::(send|recv_)$"
"""Operators that make them: their third input is the other side's place in the group."""


def is_communication(work: pl.DataFrame) -> pl.Series:
    """Whether each piece of device work (`name`, `comm_name`) is communication, by its arguments or its name."""
    return work["comm_name"].is_not_null() | Distinct(work["name"]).judged(is_library_kernel)


_OPERATIONS = (
    (r"reduce_?scatter", "reduce_scatter"),
    (r"all_?reduce|cross_device_reduce", "all_reduce"),
    (r"all_?gather", "all_gather"),
    (r"all_?to_?all", "all_to_all"),
    (r"broadcast|bcast", "broadcast"),
    (r"barrier", "barrier"),
    (r"send_?recv", "send_recv"),
    (r"\b_?send|_send\b", "send"),
    (r"recv|receive", "recv"),
    (r"scatter", "scatter"),
    (r"gather", "gather"),
    (r"reduce", "reduce"),
)


def operation_of(text: pl.Expr) -> pl.Expr:
    """The kind of call, from the first word that a library, an annotation or a kernel uses for it."""
    words = text.str.to_lowercase()
    bare = words.str.replace(r"^\w+:([^:])", "${1}").str.strip_prefix("void ")
    recorded = bare.str.extract(r"^(?:nccl\w*kernel_)?(?:\w+::)*(\w+)", 1)
    known = [pl.when(words.str.contains(pattern)).then(pl.lit(name)) for pattern, name in _OPERATIONS]
    return pl.coalesce(*known, recorded, pl.lit("unknown"))


def peer_in(name: pl.Expr) -> pl.Expr:
    """The other side that the annotation of a send or receive names, as in `nccl:send 0->1` and `nccl:recv 1<-0`."""
    return name.str.extract(r"^\w+:(?:send|recv) \d+(?:->|<-)(\d+)", 1).cast(pl.Int32, strict=False)


def peer_of(values: str | None) -> int | None:
    """The other side of a send or receive, from the recorded inputs of its operator."""
    inputs = value_in(values)
    peer = inputs[2] if isinstance(inputs, list) and len(inputs) > 2 else None
    return int(peer) if isinstance(peer, str) and peer.isascii() and peer.isdigit() and len(peer) < 10 else None


def size_bytes(elements_in: int | None, elements_out: int | None, element_type: str | None) -> int | None:
    """The larger side of a call: the whole gathered or scattered buffer, as bandwidth formulas take it."""
    each = element_bytes(element_type)
    sides = [n for n in (elements_in, elements_out) if n is not None and n >= 0]
    return whole_number(max(sides) * each) if each and sides else None


def tensor_bytes(shapes: str | None, types: str | None) -> tuple[int | None, str | None]:
    """Bytes and data type of the tensors of an annotation, from its recorded shapes and types."""
    parsed_shapes, parsed_types = value_in(shapes), value_in(types)
    if not isinstance(parsed_shapes, list) or not isinstance(parsed_types, list) or not parsed_types:
        return None, None
    element_type = str(parsed_types[0])
    each = element_bytes(element_type)
    counts = list(_element_counts(parsed_shapes))
    size = sum(counts) * each if each and counts and min(counts) >= 0 else None
    return whole_number(size), element_type


def _element_counts(shape: list[Any]) -> Iterator[int]:
    """Elements of each tensor in nested lists of shapes."""
    if shape and all(isinstance(n, int) for n in shape):
        yield prod(shape)
        return
    for part in shape:
        if isinstance(part, list) and part:
            yield from _element_counts(part)
