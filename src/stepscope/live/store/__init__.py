"""Light records on disk: written in bounded files, aged, and read as they grow."""

from stepscope.live.store.records import DEFAULT_LIMIT_MB, RecordStore, limit_from_environment

__all__ = ["DEFAULT_LIMIT_MB", "RecordStore", "limit_from_environment"]
