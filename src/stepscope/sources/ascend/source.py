"""The readers of Ascend exports: how each recognises its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stepscope.sources.ascend.rank_files import DATABASE, find_rank_files
from stepscope.sources.ascend.recognise import text_part
from stepscope.sources.base import Found, Input, Sink
from stepscope.sources.missing import ASCEND

_SQLITE = b"SQLite format 3\0"


class AscendText:
    """Reader of the text export."""

    name = "ascend_text"
    version = 8
    family = "ascend"
    reasons: Mapping[str, str] = {
        **ASCEND,
        "links": "communication_matrix.json is missing or empty",
        "transports": "communication.json is missing or empty",
    }
    own_tables = frozenset[str]()

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """Recognise a rank directory, or its output folder, that has the text export and no database."""
        files = find_rank_files(directory, names)
        if files is None or files.database is not None or not files.has_text:
            return None
        return Found((Input(self.name, directory, files.files),))

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """Recognise one file of the text export by its first bytes, whatever its name."""
        return Input(self.name, file, (file,)) if text_part(head) else None

    def read(self, item: Input, sink: Sink) -> None:
        """See `read_text`."""
        from stepscope.sources.ascend.text import read_text

        read_text(item, sink)


class AscendDb:
    """Reader of the database export."""

    name = "ascend_db"
    version = 5
    family = "ascend"
    reasons: Mapping[str, str] = {
        **ASCEND,
        "links": "the database has no communication matrix",
        "transports": "the database has no bandwidth table",
    }
    own_tables = frozenset[str]()

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """Recognise a rank directory, or its output folder, that has a database."""
        files = find_rank_files(directory, names)
        if files is None or files.database is None:
            return None
        return Found((Input(self.name, directory, files.files),))

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """Recognise one database by its tables, of any name; report one named as an export but without tables."""
        if not head.startswith(_SQLITE) or not (self._looks_ours(file) or DATABASE.search(file.name)):
            return None
        return Input(self.name, file, (file,))

    def read(self, item: Input, sink: Sink) -> None:
        """See `read_database`."""
        from stepscope.sources.ascend.db import read_database

        read_database(item, sink)

    @staticmethod
    def _looks_ours(file: Path) -> bool:
        from stepscope.sources.ascend.db_checks import looks_ours

        return looks_ours(file)
