"""Light records: the JSON lines that live workers and MindCluster's TaskD write, one marker of a range per line.

A range has a start and an end marker on the host, and, if it was timed on the device, two more, all with one `Id`. Name
and domain stand on the start marker of the host only.
"""

from __future__ import annotations

from enum import IntEnum

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
FILE_BYTES = 10 * 1024 * 1024
"""A worker starts a new file once the newest one is larger."""
DEFAULT_GROUP = "default_group"
"""Name of the group of all ranks in `GROUP_FILE`."""
FORWARD, DATALOADER, SAVE_CHECKPOINT, STEP_PREFIX = "forward", "dataloader", "save_checkpoint", "step "
"""Names of ranges in the default domain; a step is followed by its number."""


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
_WRITTEN = {"send_recv": "HcclBatchSendRecv", "all_to_all": "HcclAlltoAll", "recv": "HcclRecv"}


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
    return next((operation for part, operation in _OPERATIONS if part in bare), bare[:64] or "unknown")
