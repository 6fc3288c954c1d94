"""The `rank-<R>_<stamp>_ascend_ms` directory that msprof-analyze and MindStudio Insight read."""

from __future__ import annotations

from stepscope.export.ascend_ms.directory import write_ascend_ms

__all__ = ["write_ascend_ms"]
