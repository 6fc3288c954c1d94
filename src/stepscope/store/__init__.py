"""Rows that were read once, kept as Parquet in a cache directory and opened in milliseconds."""

from stepscope.store.answers import About, KeptRecords, StoredRank, StoredSupplement, list_answers
from stepscope.store.cache import Store, StoreEntry, cache_directory, max_bytes
from stepscope.store.manifest import Manifest, identify, schema_version, size_of, write_manifest
from stepscope.store.recording import MemoryRecording, Recording, StoredRecording, read_together, scan_together
from stepscope.store.sinks import MemorySink, StoreError, StoreSink, write_compressed

__all__ = [
    "About",
    "KeptRecords",
    "Manifest",
    "MemoryRecording",
    "MemorySink",
    "Recording",
    "Store",
    "StoreEntry",
    "StoreError",
    "StoreSink",
    "StoredRank",
    "StoredRecording",
    "StoredSupplement",
    "cache_directory",
    "identify",
    "list_answers",
    "max_bytes",
    "read_together",
    "scan_together",
    "schema_version",
    "size_of",
    "write_compressed",
    "write_manifest",
]
