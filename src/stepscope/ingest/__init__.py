"""Reading inputs into the store: each once, several at a time, none at the cost of another."""

from stepscope.ingest.inputs import Ingested, Progress, Stored, find_stored, ingest

__all__ = ["Ingested", "Progress", "Stored", "find_stored", "ingest"]
