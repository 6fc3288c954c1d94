"""Fixed numbers of the classic timeline: which process and thread is what, and how its events are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from stepscope.export.rank_export import RankExport
from stepscope.timeline.writing.events import arguments, complete, json_text, names

AI_CPU, COMMUNICATION, HOST, OVERLAP, ACTIVITY = 9000, 10000, 11000, 12000, 13000
"""Processes, besides the first, with the steps, scopes and operators: of an Ascend device, else of the host, where the
kernels of a GPU are activities."""
STEPS, SCOPE_NAMES = 100000, 100001
HOST_THREAD = 100003
OVERLAPS = {
    "computing": ("computation_op", 7999, "Merged Computation Op"),
    "communication_alone": ("pure_communication_op", 8000, "Pure Communication Op"),
    "communication": ("communication_op", 8001, "Merged Communication Op"),
    "free": ("free_time", 8002, "Free Time"),
}
"""Name, thread and label of each of `overlaps`."""
_SHARED = {COMMUNICATION: "Communication Op", HOST: "Host CPU OP", OVERLAP: "Op Overlap Analyse"}

Thread = tuple[int, int | str, str, int]
"""Process, number, name, and place among those of the process."""


@dataclass(frozen=True)
class Layout:
    """What the timeline of a kind of device looks like.

    Args:
        kind: How its files begin.
        processes: Labels by number, in the order in which they are shown. The first has steps and scopes, and operators
            of an Ascend device, whose number it has.
        operators: The process with the operators of the host.
    """

    kind: Literal["ascend", "gpu", "cpu"]
    processes: dict[int, str]
    operators: int

    @property
    def first(self) -> int:
        """The number of the first process."""
        return next(iter(self.processes))

    @property
    def on_ascend(self) -> bool:
        """Whether it is that of an Ascend device."""
        return self.kind == "ascend"

    def metadata(self, threads: Iterable[Thread]) -> Iterator[str]:
        """Names and order of processes and threads."""
        for order, (pid, label) in enumerate(self.processes.items()):
            yield from names("process", (pid, 0), labels=label, name=label, sort_index=10 * order)
        fixed: list[Thread] = [(self.first, STEPS, "Steps", -4), (self.first, SCOPE_NAMES, "Scope Name", -3)]
        fixed += [(OVERLAP, tid, label, tid) for _, tid, label in OVERLAPS.values()]
        for pid, tid, name, order in (*fixed, *threads, (HOST, HOST_THREAD, "Phases", HOST_THREAD)):
            yield from names("thread", (pid, tid), name=name, sort_index=order)


def layout_of(export: RankExport) -> Layout:
    """The layout for the device of a rank."""
    if export.facts["device_kind"] == "npu":
        device = export.facts["device"]
        first = export.rank if device is None else int(device)
        return Layout("ascend", {first: "AICORE OP", AI_CPU: "AICPU OP", **_SHARED}, HOST)
    activities = {**_SHARED, ACTIVITY: "Activity Op"}
    if export.on_gpu:
        return Layout("gpu", {0: f"GPU {export.rank}", **activities}, 0)
    return Layout("cpu", {0: "Host CPU OP", **activities}, 0)


def event(
    name: str, pid: int, tid: int | str, start_ns: int, ns: int, *, args: dict[str, Any] | None = None, more: str = ""
) -> str:
    """One complete event as JSON; its times are decimals, exact to the nanosecond."""
    return complete(name, (pid, tid), start_ns, ns, args=arguments((args or {}).items()), more=more)


@lru_cache(maxsize=65536)
def work_arguments(kind: str, full: str) -> str:
    """The arguments of an operator or kernel."""
    return f',"args":{{"type":{json_text(kind)},"fullname":{json_text(full)}}}'
