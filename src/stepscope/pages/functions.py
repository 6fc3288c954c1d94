"""Which Python functions of a rank cost the time."""

from __future__ import annotations

from stepscope.pages.base import Page, Section
from stepscope.pages.instead import OPERATORS, TOTALS, recorded_by

PAGE = Page(
    "functions",
    "Show which Python functions of a rank cost the time: total, self and idle time by function, file and line.",
    [
        Section("functions", "Python functions, by self time"),
        Section("idle_functions", "Python functions while the rank is idle, by cause"),
    ],
    more="Needs a recording with Python stacks: `stepscope record --stacks` (with_stack=True). Idle time is self time "
    "during which the rank did nothing else.",
    instead=recorded_by(
        "Operators without Python need no stacks",
        OPERATORS,
        TOTALS,
    ),
)
