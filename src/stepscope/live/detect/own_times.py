"""What of a step a rank spent on its own work, as far as its digest shows.

In synchronous jobs the steps of all ranks are equally long, as the others wait for a late one. Only times without these
waits show who is late. What is known decides how the own time is measured:

- `calls`: the step less all waits. The waits are the calls between ranks (on the device, or blocking on the host) and
  what a backward pass waits for gradients of others; batches and checkpoints are apart.
- `device`: forward passes on the device; those on its host are only launches.
- `parts`: forward pass, backward pass until the own gradients were ready, and optimizer.
- `forward`: forward passes and optimizer on the host. These may contain waits within a tensor-parallel group.

Times of different measures are never compared.
"""

from __future__ import annotations

from typing import NamedTuple

from stepscope.live.messages import Calls, Digest

CALLS, DEVICE, PARTS, FORWARD = "calls", "device", "parts", "forward"
MEASURES = (CALLS, DEVICE, PARTS, FORWARD)
MOST_NS = 10**15
"""Eleven days: longer times are not believed."""


class Own(NamedTuple):
    """What a rank spent one round on, ns a step; None is unknown."""

    steps: int
    step: float
    own: float | None
    measure: str
    busy: float | None
    """Own time, batches and checkpoints: what delays the others."""
    data: float | None
    checkpoint: float | None
    garbage: float | None
    """Part of the own time as recorded, but not of `own`: collections strike any rank now and then."""
    units: float | None
    parts: tuple[float | None, float | None, float | None]
    """Forward, own part of backward, optimizer: which part is longer."""
    knows_calls: bool
    run_delay: float | None = None
    """How long its thread waited for a processor."""


def is_sane(digest: Digest) -> bool:
    """Whether the times of a digest can be true."""
    if not (0 < digest.step_ns < MOST_NS and 0 < digest.step < MOST_NS and digest.rank >= 0):
        return False
    times = (digest.forward_ns, digest.backward_ns, digest.backward_own_ns, digest.optimizer_ns, digest.data_ns)
    more = (digest.checkpoint_ns, digest.communication_ns, digest.garbage_ns, digest.device_step_ns)
    rest = (digest.device_forward_ns, digest.units, digest.run_delay_ns)
    return all(value is None or 0 <= value < MOST_NS for value in (*times, *more, *rest))


def own_of(digest: Digest, steps: int = 1) -> Own:
    """What a rank spent its time on, from a digest or the sum of several."""
    step, forward, back = digest.step_ns, digest.forward_ns, digest.backward_own_ns
    data, checkpoint, garbage = digest.data_ns, digest.checkpoint_ns, digest.garbage_ns
    waits = _waits(digest)
    apart = (data or 0) + (checkpoint or 0)
    own: float | None = None
    measure = ""
    hidden = 0
    if back is not None and digest.backward_ns is not None:
        hidden = max(0, digest.backward_ns - back)
    parts = None
    if forward is not None and back is not None:
        parts = forward + back + (digest.optimizer_ns or 0)
    if waits is not None and data is not None and (waits or hidden):
        base = digest.device_step_ns if _on_device(digest) and digest.device_step_ns else step
        # waits for gradients may be among the calls, too
        own, measure = max(base - max(waits, hidden) - apart, parts or 0), CALLS
    elif digest.device_forward_ns is not None:
        own, measure = digest.device_forward_ns, DEVICE
    elif parts is not None:
        own, measure = parts, PARTS
    elif forward is not None:
        own, measure = forward + (digest.optimizer_ns or 0), FORWARD
    busy = None
    if own is not None:
        busy = (max(own, garbage or 0) + apart) / steps
        own -= min(garbage or 0, own // 2)
    return Own(
        steps,
        step / steps,
        None if not own or own <= 0 else own / steps,
        measure,
        busy,
        _each(data, steps),
        checkpoint,
        _each(garbage, steps),
        _each(digest.units, steps),
        (_each(forward, steps), _each(back, steps), _each(digest.optimizer_ns, steps)),
        digest.communication_ns is not None or bool(digest.calls),
        _each(digest.run_delay_ns, steps),
    )


def summed(one: Digest, other: Digest) -> Digest:
    """Two digests of a rank as one; what is unknown in either is unknown."""
    return Digest(
        one.rank,
        one.step,
        max(one.end_at_ns, other.end_at_ns),
        one.step_ns + other.step_ns,
        _sum(one.forward_ns, other.forward_ns),
        _sum(one.backward_ns, other.backward_ns),
        _sum(one.backward_own_ns, other.backward_own_ns),
        _sum(one.optimizer_ns, other.optimizer_ns),
        _sum(one.data_ns, other.data_ns),
        _sum(one.checkpoint_ns, other.checkpoint_ns),
        _sum(one.communication_ns, other.communication_ns),
        _sum(one.garbage_ns, other.garbage_ns),
        _sum(one.run_delay_ns, other.run_delay_ns),
        _sum(one.device_step_ns, other.device_step_ns),
        _sum(one.device_forward_ns, other.device_forward_ns),
        _sum(one.units, other.units),
        _all_calls(one.calls, other.calls),
    )


def _waits(digest: Digest) -> int | None:
    """Time in calls between ranks, waits included; None if it is not known or contains none."""
    if not digest.calls:
        return digest.communication_ns
    total = 0
    for call in digest.calls:
        if call.device_ns is not None:
            total += call.device_ns
        elif call.launched:
            return None
        else:
            total += call.time_ns
    return total if 0 <= total < MOST_NS else None


def _on_device(digest: Digest) -> bool:
    return any(call.device_ns is not None for call in digest.calls)


def _each(value: int | None, steps: int) -> float | None:
    return None if value is None else value / steps


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _all_calls(one: list[Calls], other: list[Calls]) -> list[Calls]:
    if not one or not other:
        return one or other
    found = {(call.operation, call.group, call.peer, call.launched): call for call in one}
    for call in other:
        key = (call.operation, call.group, call.peer, call.launched)
        known = found.get(key)
        found[key] = call if known is None else _both(known, call)
    return list(found.values())


def _both(one: Calls, other: Calls) -> Calls:
    return Calls(
        one.operation,
        one.group,
        one.count + other.count,
        one.time_ns + other.time_ns,
        min(one.shortest_ns, other.shortest_ns),
        _sum(one.device_ns, other.device_ns),
        _sum(one.size_bytes, other.size_bytes),
        one.peer,
        one.launched,
        _least(one.shortest_device_ns, other.shortest_device_ns),
    )


def _least(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)
