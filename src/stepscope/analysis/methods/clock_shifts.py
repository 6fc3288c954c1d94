"""How far clocks are apart that only sends and receives connect, e.g. those of hosts of different pipeline stages.

Nothing is received before it was sent. So the least time from sending to receiving bounds how far the receiver's clock
is ahead, and that of transfers the other way how far it is behind.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.analysis.methods.call_positions import CALL

CERTAIN = 0.05
"""Share of the transfers that may contradict a bound, chosen by us: single times or matches may be wrong."""


def transfers(calls: pl.DataFrame) -> pl.DataFrame:
    """Sends with their receives: `sender`, `receiver` (clocks) and `delay_ns`, from sending to having received.

    Args:
        calls: `clock`, `group`, `sequence`, `operation`, `start_ns`, `end_ns` on clocks that agree within a set.
    """
    once = pl.len().over(*CALL, "operation") == 1
    known = calls.filter(once)
    sends = known.filter(pl.col("operation") == "send").select(*CALL, "start_ns", sender="clock")
    received = known.filter(pl.col("operation") == "recv").select(*CALL, "end_ns", receiver="clock")
    pairs = sends.join(received, on=CALL).filter(pl.col("sender") != pl.col("receiver"))
    return pairs.select("sender", "receiver", delay_ns=pl.col("end_ns") - pl.col("start_ns"))


def shifts(transfers: pl.DataFrame, sets: Mapping[str, str]) -> dict[str, int]:
    """By how much the clocks of each set are ahead of the others.

    Clocks that no transfer contradicts agree, else their difference is the middle of what is possible. Where
    transfers contradict each other, nothing follows.

    Args:
        transfers: The result of `transfers`.
        sets: The set of each clock: clocks whose differences are known otherwise.

    Returns:
        ns by set: the set with most clocks, and all that nothing is known of, have 0.
    """
    of_clock = pl.DataFrame(
        {"clock": list(sets), "set": list(sets.values())}, schema={"clock": pl.String, "set": pl.String}
    )
    rows = transfers
    for end in ("sender", "receiver"):
        rows = rows.join(of_clock.rename({"clock": end, "set": f"{end}_set"}), on=end)
    least = (
        rows.filter(pl.col("sender_set") != pl.col("receiver_set"))
        .group_by("sender_set", "receiver_set")
        .agg(pl.col("delay_ns").quantile(CERTAIN, "lower").cast(pl.Int64))
        .sort("sender_set", "receiver_set")
    )
    most_ahead = {(sender, receiver): delay for sender, receiver, delay in least.iter_rows()}
    ahead: dict[str, dict[str, int]] = {}
    for (one, other), most in most_ahead.items():
        back = most_ahead.get((other, one))
        if back is None or -back > most:
            continue
        ahead.setdefault(one, {})[other] = 0 if -back <= 0 <= most else (most - back) // 2
    sizes = [*sets.values()]
    order = sorted({*sizes}, key=lambda one: (-sizes.count(one), one))
    found: dict[str, int] = {}
    for first in order:
        if first in found:
            continue
        found[first], near = 0, [first]
        while near:
            one = near.pop(0)
            for other, by in ahead.get(one, {}).items():
                if other not in found:
                    found[other] = found[one] + by
                    near.append(other)
    return found
