"""The reader of dumps of PyTorch's flight recorder, written by NCCL's watchdog or asked for by the user."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.json_files import object_in
from stepscope.json_values import as_index, as_text
from stepscope.sources.base import PROFILER_REASONS, Found, Input, Sink
from stepscope.sources.flight_recorder.calls import Dump, TooMuch, dump_of
from stepscope.sources.flight_recorder.pickled import MOST_BYTES, RefusedPickle, plain_data, starts_like_pickle
from stepscope.sources.head import is_json
from stepscope.tables import GROUPS, RANK_FIGURES, RANKS, RECORDED_CALLS, STACKS

_KEYS = (
    *(b"pg_config", b"pg_status", b"nccl_comm_state", b"comm_lib_version", b"entries", b"record_id"),
    *(b"profiling_name", b"collective_seq_id", b"time_discovered_completed_ns"),
)
_OWN = (b"pg_config", b"pg_status", b"nccl_comm_state", b"collective_seq_id")
"""Keys that only such dumps have."""

_RANK = re.compile(r"rank[_-]?(\d{1,7})(?!\d)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!\d)(\d{1,6})(?:\.(?:json|pkl|pickle|pt|bin|dump))?(?:\.gz)?$", re.IGNORECASE)
_GZIP = b"\x1f\x8b"
_AGAIN = "Copy the file again, or use the dump that the rank wrote"


class FlightRecorderSource:
    """Reads one dump: a pickle of plain data, or JSON."""

    name = "flight_recorder"
    version = 2
    family = "flight_recorder"
    reasons: Mapping[str, str] = {
        **PROFILER_REASONS,
        **dict.fromkeys(
            (*PROFILER_REASONS, "steps", "slices", "kernels", "collectives"),
            "a flight recorder lists the last calls between ranks only",
        ),
        "recorded_calls": "the recorder was off (TORCH_FR_BUFFER_SIZE), or the rank made no call",
        "groups": "members of process groups were not recorded (gloo records none)",
        "stacks": "JSON dumps have no stacks",
    }
    own_tables = frozenset({RECORDED_CALLS.name})

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:  # noqa: ARG002
        """None: a dump is a file."""
        return None

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """A pickle or JSON object with the keys of a dump."""
        if not starts_like_pickle(head) and not is_json(head):
            return None
        if not any(key in head for key in _OWN) or sum(key in head for key in _KEYS) < 2:
            return None
        return Input(self.name, file, (file,))

    def read(self, item: Input, sink: Sink) -> None:
        """Read a dump.

        Raises:
            UnreadableInput: If it is damaged, cut off, too large, or asks for anything but plain data.
        """
        file = item.path
        content = _content(file)
        try:
            dump = dump_of(content)
        except TooMuch as error:
            raise UnreadableInput(file, str(error), _AGAIN) from error
        if dump.lost:
            problem = f"{dump.lost} entries lack a number, a group or a name and are left out"
            sink.issue("warning", file, problem, _AGAIN, lost=dump.lost)
        sink.write(RANKS, _rank_row(file, dump, content))
        sink.write(RANK_FIGURES, _figures(file, content))
        _write_calls(dump, file, sink)
        sink.advance(file.stat().st_size)


def _write_calls(dump: Dump, file: Path, sink: Sink) -> None:
    if not dump.rows:
        problem = "lists no call: the recorder was off, or the rank made none"
        sink.issue("warning", file, problem, "Set TORCH_FR_BUFFER_SIZE on all ranks", place=RECORDED_CALLS.name)
        return
    sink.write(
        RECORDED_CALLS, RECORDED_CALLS.unchecked(**{name: [row[name] for row in dump.rows] for name in dump.rows[0]})
    )
    if known := {key: members for key, members in dump.groups.items() if members}:
        names = [dump.names[key] for key in known]
        members = pl.Series(list(known.values()), dtype=pl.List(pl.Int32))
        sink.write(GROUPS, GROUPS.unchecked(group=list(known), name=names, members=members))
    if dump.stacks:
        sink.write(STACKS, STACKS.unchecked(stack=list(range(len(dump.stacks))), text=dump.stacks))


def _content(file: Path) -> dict[str, Any]:
    """What a dump says.

    Raises:
        UnreadableInput: If it cannot be read.
    """
    try:
        raw = file.read_bytes() if file.stat().st_size <= MOST_BYTES else b""
        if raw.startswith(_GZIP):
            with gzip.open(file) as packed:
                raw = packed.read(MOST_BYTES + 1)
        too_large = not raw or len(raw) > MOST_BYTES
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableInput(file, f"is damaged or cut off ({error})", _AGAIN) from error
    except OSError as error:
        raise UnreadableInput(
            file, f"cannot be read: {error.strerror or error}", "Check the file and its disk"
        ) from error
    if too_large:
        raise UnreadableInput(file, f"is empty or larger than {MOST_BYTES >> 20} MiB", _AGAIN)
    if is_json(raw[:64]):
        return object_in(raw, file, _AGAIN)
    try:
        content = plain_data(raw)
    except RefusedPickle as error:
        raise UnreadableInput(file, str(error), _AGAIN) from error
    if not isinstance(content, dict):
        raise UnreadableInput(file, "holds no dump of a flight recorder", _AGAIN)
    return content


def rank_in(name: str) -> int | None:
    """The rank in the name of a dump, e.g. `nccl_trace_rank_3`; dumps do not state it.

    Examples:
        >>> rank_in("nccl_trace_rank_3"), rank_in("rank_12.json"), rank_in("dump-7.pkl.gz"), rank_in("dump")
        (3, 12, 7, None)
    """
    found = _RANK.search(name) or _NUMBER.search(name)
    return as_index(found[1]) if found else None


def _rank_row(file: Path, dump: Dump, content: Mapping[str, Any]) -> pl.DataFrame:
    """The rank. Its times are left out: dumps of one job may be of different times if their rings differ in length."""
    stated = as_index(content.get("rank"))
    rank = rank_in(file.name) if stated is None else stated
    return RANKS.unchecked(
        rank=[rank],
        rank_origin=[None if rank is None else "file name" if stated is None else "content"],
        world_size=[dump.world_size],
        framework=["pytorch"],
        device_kind=[_device_kind(dump.backends)],
        format=[FlightRecorderSource.name],
        backend=[",".join(sorted(dump.backends)) or None],
    )


def _device_kind(backends: set[str]) -> str | None:
    """The kind of device that these libraries are for; gloo alone is for none."""
    of_devices = {"nccl": "cuda", "hccl": "npu"}
    kinds = {kind for backend, kind in of_devices.items() if backend in backends}
    return "cpu" if backends == {"gloo"} else kinds.pop() if len(kinds) == 1 else None


def _figures(file: Path, content: Mapping[str, Any]) -> pl.DataFrame:
    """When the dump was written, as the file system says, and the version of its format."""
    return RANK_FIGURES.unchecked(
        name=["dump_written_ns", "dump_version"],
        value=[float(file.stat().st_mtime_ns), None],
        text=[None, as_text(content.get("version"))],
    )
