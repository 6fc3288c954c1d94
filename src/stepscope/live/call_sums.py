"""The calls of communication in a step, summed up by operation, group and peer: live, and from stored records."""

from __future__ import annotations

from stepscope.live.messages import Calls

MOST_CALLS = 256
"""Different calls in a digest; further ones are only in its sum."""
_LONGEST_NS = 2**63 - 1


class CallSums:
    """Sums up calls as they come."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, int | None, bool], _Sums] = {}

    def add(
        self,
        operation: str,
        group: str,
        peer: int | None,
        *,
        launched: bool,
        time_ns: int,
        device_ns: int | None,
        size_bytes: int | None,
    ) -> None:
        """One call; for its data see `Calls`."""
        key = (operation, group, peer, launched)
        sums = self._sums.get(key)
        if sums is None:
            if len(self._sums) >= MOST_CALLS:
                return
            sums = self._sums[key] = _Sums()
        sums.count += 1
        sums.time_ns += time_ns
        sums.shortest_ns = min(sums.shortest_ns, time_ns)
        if device_ns is None or sums.device_ns is None:
            sums.device_ns = None
        else:
            sums.device_ns += device_ns
            sums.shortest_device_ns = min(sums.shortest_device_ns, device_ns)
        sums.size_bytes = None if size_bytes is None or sums.size_bytes is None else sums.size_bytes + size_bytes

    def as_calls(self) -> list[Calls]:
        """All that were added."""
        return [
            Calls(
                operation=operation,
                group=group,
                count=sums.count,
                time_ns=sums.time_ns,
                shortest_ns=sums.shortest_ns,
                device_ns=sums.device_ns,
                size_bytes=sums.size_bytes,
                peer=peer,
                launched=launched,
                shortest_device_ns=None if sums.device_ns is None else sums.shortest_device_ns,
            )
            for (operation, group, peer, launched), sums in self._sums.items()
        ]


class _Sums:
    """The calls of one key; of an unknown size or duration, all are unknown."""

    __slots__ = ("count", "device_ns", "shortest_device_ns", "shortest_ns", "size_bytes", "time_ns")

    def __init__(self) -> None:
        self.count = self.time_ns = 0
        self.shortest_ns = self.shortest_device_ns = _LONGEST_NS
        self.device_ns: int | None = 0
        self.size_bytes: int | None = 0
