"""Raw recordings of `stepscope.Profiler` (docs/recording.md) -> tables."""

from stepscope.sources.recording.source import RecordingSource

__all__ = ["RecordingSource"]
