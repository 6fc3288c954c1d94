"""Reading CSV files that other tools wrote: columns known by header, values in our units, damage reported by row."""

from stepscope.sources.csv_files.heading import header_of, is_data, raw_rows
from stepscope.sources.csv_files.layout import Field, FileLayout, Kind, column_key, order
from stepscope.sources.csv_files.reading import read_csv, read_csv_parts
from stepscope.sources.csv_files.values import whole

__all__ = [
    "Field",
    "FileLayout",
    "Kind",
    "column_key",
    "header_of",
    "is_data",
    "order",
    "raw_rows",
    "read_csv",
    "read_csv_parts",
    "whole",
]
