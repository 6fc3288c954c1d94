"""Reading CSV files that other tools wrote: columns known by header, values in our units, damage told row by row."""

from stepscope.sources.csv_files.layout import Field, FileLayout, Kind, column_key
from stepscope.sources.csv_files.reading import header_of, read_csv, read_csv_parts
from stepscope.sources.csv_files.values import whole

__all__ = ["Field", "FileLayout", "Kind", "column_key", "header_of", "read_csv", "read_csv_parts", "whole"]
