"""The reader of packed recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stepscope._version import __version__
from stepscope.sources.base import Found, Input, Sink
from stepscope.store.packed import MAGIC, PackedFile
from stepscope.tables import RANKS, TABLES

_KIND = MAGIC.rpartition(b" ")[0]


class PackedSource:
    """Reads what another machine has read of a recording. `ranks.format` stays that of the recording."""

    name = "packed"
    version = 1
    family = "packed"
    reasons: Mapping[str, str] = {}
    own_tables: frozenset[str] = frozenset()
    starts_threads = True
    """Polars reads Parquet files by threads of its own."""

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:  # noqa: ARG002
        """None: they are recognised file by file."""
        return None

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """A file that begins as all of them do, of any version."""
        return Input(self.name, file, (file,)) if head.startswith(_KIND) else None

    def read(self, item: Input, sink: Sink) -> None:
        """Pass the rows on; every value is checked as those of any source.

        Raises:
            UnreadableInput: If it is damaged, or of another version.
        """
        with PackedFile(item.path) as packed:
            header = packed.header
            known = {column.name for column in RANKS.columns}
            facts = {name: [value] for name, value in header.facts.items() if name in known and value is not None}
            sink.write(RANKS, RANKS.unchecked(**facts))
            if header.stepscope != __version__:
                sink.issue(
                    "note",
                    item.path,
                    f"was packed by stepscope {header.stepscope[:40]}, and this is {__version__}: readers may differ",
                    "Install the same version here and on the hosts",
                )
            for table in header.tables:
                for rows in packed.rows(table):
                    sink.write(TABLES[table], rows)
            sink.advance(item.path.stat().st_size)
