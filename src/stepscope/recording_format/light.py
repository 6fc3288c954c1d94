"""Light records: the JSON lines that live workers and MindCluster's TaskD write, one marker of a range per line.

A range has a start and an end marker on the host, and, if it was timed on the device, two more, all with one `Id`. Name
and domain stand on the start marker of the host only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from stepscope.json_values import as_index, as_text, list_of, object_of, small_number, whole_number
from stepscope.recording_format import marks
from stepscope.recording_format.element_types import element_bytes
from stepscope.recording_format.marks import MarkKind

FIELDS = ("Kind", "Flag", "SourceKind", "Timestamp", "Id", "MsptiObjectId", "Name", "Domain")
"""Keys of a marker, in the order in which they are written."""


class RecordKind(IntEnum):
    """`Kind` of a record. Only markers are written by default."""

    MARKER = 1
    KERNEL = 2
    API = 3
    HCCL = 4
    MEMORY = 5
    MEMSET = 6
    MEMCPY = 7
    EXTERNAL_CORRELATION = 8


class Flag(IntEnum):
    """`Flag` of a marker."""

    INSTANT = 1
    HOST_START = 2
    HOST_END = 4
    DEVICE_INSTANT = 8
    START = 16
    """Start of a range that is timed on the device as well; on host and device markers."""
    END = 32
    """Its end."""


class Source(IntEnum):
    """`SourceKind`: where the time was taken."""

    HOST = 0
    DEVICE = 1


GROUP_FILE = "parallel_group.json"
"""Beside the records of a rank: its process groups, as `{name: {group_name, group_rank, global_ranks}}`."""
WORKER_FILE = "worker.json"
"""Beside them: what records do not hold, such as the host and the framework, as the `Hello` of our worker."""
_LONGEST_NAME = 15
"""Digits of the name of a record file; longer numbers are no times in seconds."""
FILE_BYTES = 10 * 1024 * 1024
"""A worker starts a new file once the newest one is larger."""
DEFAULT_GROUP = "default_group"
"""Name of the group of all ranks in `GROUP_FILE`."""
DEFAULT_DOMAIN, COMMUNICATION_DOMAIN = "default", "communication"
"""`Domain` of all kinds of range but communication, and of that."""
FORWARD, DATALOADER, SAVE_CHECKPOINT, STEP_PREFIX = "forward", "dataloader", "save_checkpoint", "step "
"""Names of ranges in the default domain; a step is followed by its number."""


def groups_in(content: Mapping[str, Any]) -> Iterator[tuple[str, str, list[int]]]:
    """Key, name (may be empty) and members of the groups in a `GROUP_FILE`; those without members are left out."""
    for key in content:
        about = object_of(content, key)
        members = [rank for each in list_of(about, "global_ranks") if (rank := as_index(each)) is not None]
        if members:
            yield key, as_text(about.get("group_name")) or "", members


_PREFIXES = ("hcom", "hccl", "nccl", "rccl", "gloo", "mpi", "c10d")
_OPERATIONS = (
    ("sendrecv", "send_recv"),
    ("neighborexchange", "send_recv"),
    ("reducescatter", "reduce_scatter"),
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("bcast", "broadcast"),
    ("barrier", "barrier"),
    ("send", "send"),
    ("recv", "recv"),
    ("receive", "recv"),
    ("scatter", "scatter"),
    ("gather", "gather"),
    ("reduce", "reduce"),
)
"""What the name of a call contains, without case and underscores, and its operation; the first match counts."""
_LONGEST_OPERATION = 64
_WRITTEN = {"send_recv": "HcclBatchSendRecv", "all_to_all": "HcclAlltoAll", "recv": "HcclRecv"}


def is_record_name(name: str) -> bool:
    """Whether a name is that of a record file: a time in seconds, in digits."""
    return name.isascii() and name.isdecimal() and len(name) <= _LONGEST_NAME


def call_of(operation: str) -> str:
    """The `opName` of an operation.

    Examples:
        >>> call_of("all_reduce"), call_of("send_recv")
        ('HcclAllReduce', 'HcclBatchSendRecv')
    """
    return _WRITTEN.get(operation) or "Hccl" + "".join(word.capitalize() for word in operation.split("_"))


def operation_of(name: str) -> str:
    """The operation of an `opName`, however a framework spells it, as in the table `collectives`.

    Examples:
        >>> [operation_of(name) for name in ("hcclAllgather", "HcomReduceScatter_", "HcclAlltoAllV", "isend")]
        ['all_gather', 'reduce_scatter', 'all_to_all', 'send']
    """
    bare = name.lower().replace("_", "").replace("::", "").replace(":", "")
    for prefix in _PREFIXES:
        bare = bare.removeprefix(prefix)
    own = bare if bare.isidentifier() and len(bare) <= _LONGEST_OPERATION else "unknown"
    return next((operation for part, operation in _OPERATIONS if part in bare), own)


_KINDS: dict[str, MarkKind] = {FORWARD: marks.FORWARD, DATALOADER: marks.DATA, SAVE_CHECKPOINT: marks.CHECKPOINT}
_BYTES = {"fp8": 1, "fp16": 2, "bfp16": 2, "bf16": 2, "fp32": 4, "fp64": 8}
"""Types of elements as HCCL spells them, where others spell them otherwise."""
_LONGEST_STEP, _LONGEST_GROUP = 10, 1024


def kind_of(name: str, domain: str) -> tuple[MarkKind, int] | None:
    """The kind of mark that a range corresponds to, and the number of a step (else 0); None if it is none of ours.

    Examples:
        >>> kind_of("Step 12", "default"), kind_of("save_checkpoint", "default"), kind_of("my range", "default")
        (('step', 12), ('checkpoint', 0), None)
    """
    if domain.lower() == COMMUNICATION_DOMAIN:
        return marks.COLLECTIVE, 0
    lower = name.strip().lower()
    number = lower.removeprefix(STEP_PREFIX).strip()
    if lower.startswith(STEP_PREFIX) and number.isascii() and number.isdecimal() and len(number) < _LONGEST_STEP:
        return marks.STEP, int(number)
    kind = _KINDS.get(lower)
    return None if kind is None else (kind, 0)


class Call(NamedTuple):
    """What the name of a call says; None is unknown.

    Args:
        operation: As in the table `collectives`.
        size_bytes: Payload of this rank.
        peer: The other rank of sends and receives.
    """

    operation: str
    group: str | None = None
    size_bytes: int | None = None
    element_type: str | None = None
    group_size: int | None = None
    peer: int | None = None
    is_async: bool = False


@lru_cache(maxsize=4096)
def call_in(name: str) -> Call:
    """The call that a range in the domain of communication is, from its name, which is JSON. Calls repeat, so this is
    cached. A name that is no JSON is taken for that of the operation."""
    try:
        known = msgspec.json.decode(name)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        known = None
    if not isinstance(known, dict):
        return Call(operation_of(name[: 2 * _LONGEST_OPERATION]))
    kind = as_text(known.get("dataType"))
    count, size = whole_number(known.get("count")), whole_number(known.get("sizeBytes"))
    each = element_bytes(kind) or _BYTES.get((kind or "").lower())
    if size is None and count is not None and each is not None:
        size = whole_number(count * each)
    operation = operation_of(as_text(known.get("opName")) or "unknown")
    side = ("srcRank", "destRank") if operation == "recv" else ("destRank", "srcRank")
    peers = [number for key in side if (number := small_number(known.get(key))) is not None and number >= 0]
    return Call(
        operation,
        (as_text(known.get("groupName")) or "")[:_LONGEST_GROUP] or None,
        size if size is not None and size >= 0 else None,
        kind,
        small_number(known.get("groupSize")),
        peers[0] if peers and operation in ("send", "recv", "send_recv") else None,
        known.get("async") == "true",
    )
