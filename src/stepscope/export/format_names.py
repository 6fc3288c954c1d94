"""The names of the formats in which a run can be exported; `formats.py` says what they are."""

from typing import Literal

FormatName = Literal["chrome", "perfetto", "classic", "ascend-text", "ascend-db", "parquet", "otlp"]
