"""Reading Chrome trace events: the JSON that Kineto and the Ascend tools write.

One small interface, `trace events -> column batches` (`read_events`), hides the decoder, so that it can be
replaced by a native one.
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
