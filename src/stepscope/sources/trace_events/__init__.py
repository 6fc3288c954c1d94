"""Reading Chrome trace events: the JSON that Kineto and the Ascend tools write.

One small interface, `trace events -> column batches` (`read_events`), hides the decoder, so that it can be
replaced by a native one.
"""

from stepscope.sources.trace_events.base import Arg, Batch, EventClass, Layout, TraceHeader

__all__ = ["Arg", "Batch", "EventClass", "Layout", "TraceHeader"]
