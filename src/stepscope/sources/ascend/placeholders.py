"""Rows of databases that say nothing: our own export adds them where other tools fail without any, readers skip them.

Such tools want to know of each communication call when the host launched it, and of each rank at least one copy.
"""

from __future__ import annotations

NOT_RECORDED = "not recorded"
"""Name of a call of the host that only stands for an unknown launch."""
MADE_UP_CONNECTION = 1 << 52
"""Numbers of connections from here on are made up for calls whose launch is unknown."""
ALIAS = 1 << 53
"""Added to the number of a connection in rows of the host that tools must not take for the launch of a call: they
expect one for each call, but several layers of the host share its number."""
NO_TASK = -1
"""Number of a task of no duration that only stands for there being none."""
