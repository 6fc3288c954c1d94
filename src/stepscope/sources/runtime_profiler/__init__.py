"""What MindSpore writes with `MS_ENABLE_RUNTIME_PROFILER=1`: `rank_<r>/RuntimeProfilerDetail<ns>.csv` and others.

The detail is the source: events by step, to the ns. `RuntimeProfilerJson<ns>.json` has the same events without steps,
to a quarter of a us, and is read if the detail is missing. `RuntimeProfilerSummary<ns>.csv` sums the detail up.
"""

from stepscope.sources.runtime_profiler.source import RuntimeProfilerSource

__all__ = ["RuntimeProfilerSource"]
