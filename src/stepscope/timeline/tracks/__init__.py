"""The tracks of a timeline, in the order in which viewers show them. A new family is a module and a line."""

from stepscope.timeline.tracks import (
    communication,
    counters,
    device,
    explained,
    host,
    light,
    marks,
    overlap,
    recorded,
    scopes,
    steps,
)
from stepscope.timeline.tracks.base import Family

FAMILIES: tuple[Family, ...] = (
    explained.CRITICAL_PATH,
    explained.FINDINGS,
    steps.FAMILY,
    overlap.FAMILY,
    explained.IDLE,
    scopes.FAMILY,
    communication.FAMILY,
    communication.PLANES,
    recorded.FAMILY,
    device.FAMILY,
    host.FAMILY,
    light.FAMILY,
    marks.FAMILY,
    counters.QUEUES,
    counters.MEMORY,
    counters.USE,
    counters.DEVICE,
)
