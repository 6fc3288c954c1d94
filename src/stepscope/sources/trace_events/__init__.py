"""Reading Chrome trace events: the JSON that Kineto and the Ascend tools write.

`read_events` gives a trace's events as batches of columns. Whether the compiled decoder or Python read them is hidden.
"""

from stepscope.sources.trace_events.base import Arg, Batch, EventClass, Layout, Problem, TraceHeader
from stepscope.sources.trace_events.reader import Report, TraceEvents, read_events
from stepscope.sources.trace_events.stream import open_stream

__all__ = [
    "Arg",
    "Batch",
    "EventClass",
    "Layout",
    "Problem",
    "Report",
    "TraceEvents",
    "TraceHeader",
    "open_stream",
    "read_events",
]
