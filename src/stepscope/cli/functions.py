"""`stepscope functions`: which Python functions of a rank cost the time."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.cli.asking import Table, asks


@asks
def functions() -> Sequence[Table]:
    """Show which Python functions of a rank cost the time: total, self and idle time by function, file and line.

    They are recorded with `stepscope record --stacks` (with_stack=True). Idle time is self time in which the rank had
    nothing else to do.
    """
    return [
        Table(
            "functions",
            "Python functions, by self time",
            keeps=("function", "self_ns", "file", "line", "idle_ns", "total_ns", "calls", "share_ratio"),
        ),
        Table(
            "idle_functions",
            "Python functions while the rank is idle, by cause",
            keeps=("function", "idle_ns", "cause", "file", "line", "share_ratio"),
        ),
    ]
