"""The readers of Ascend exports: how each recognises its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stepscope.sources.ascend.rank_files import DATABASE, OUTPUT, find_rank_files
from stepscope.sources.ascend.recognise import text_part
from stepscope.sources.base import PROFILER_REASONS, Found, Input, Sink
from stepscope.sources.rank_tables import beside

_REASONS: Mapping[str, str] = {
    **PROFILER_REASONS,
    **dict.fromkeys(
        ("groups", "collectives", "communication_tasks"), "one device only, or recorded at profiler level 0"
    ),
    "kernels": "recorded without NPU activities",
    "kernel_counters": "recorded without aic_metrics",
    "counters": "no hardware counters were sampled",
    "input_pipeline": "only MindSpore's dataset profiling records it",
    "host_usage": "host usage was not sampled",
}


class _Export:
    """What the readers of both exports share."""

    name: str
    family = "ascend"
    own_tables = frozenset({"communication_tasks"})
    _is_database: bool

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """Recognise a rank directory, or its output folder; one that has both exports is read as a database."""
        files = find_rank_files(directory, names, has_database=self._is_database)
        if files is None:
            return None
        if not (self._is_database or files.has_text):
            return None
        root = directory.parent if directory.name == OUTPUT else directory
        table = beside(root, root.parent)
        return Found((Input(self.name, directory, (*files.files, *([] if table is None else [table]))),))


class AscendText(_Export):
    """Reader of the text export."""

    name = "ascend_text"
    version = 13
    reasons: Mapping[str, str] = {
        **_REASONS,
        "links": "communication_matrix.json is missing or empty",
        "transports": "communication.json is missing or empty",
    }
    _is_database = False

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """Recognise one file of the text export by its first bytes, whatever its name."""
        return Input(self.name, file, (file,)) if text_part(head) else None

    def read(self, item: Input, sink: Sink) -> None:
        """See `read_text`."""
        from stepscope.sources.ascend.text import read_text

        read_text(item, sink)


class AscendDb(_Export):
    """Reader of the database export."""

    name = "ascend_db"
    version = 15
    reasons: Mapping[str, str] = {
        **_REASONS,
        "links": "the database has no communication matrix",
        "transports": "the database has no bandwidth table",
    }
    _is_database = True

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """Recognise one database by its tables, of any name; report one named as an export but without tables."""
        if not head.startswith(b"SQLite format 3\0"):
            return None
        from stepscope.sources.ascend.db_checks import looks_ours

        return Input(self.name, file, (file,)) if looks_ours(file) or DATABASE.search(file.name) else None

    def read(self, item: Input, sink: Sink) -> None:
        """See `read_database`."""
        from stepscope.sources.ascend.db import read_database

        read_database(item, sink)
