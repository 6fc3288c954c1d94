"""The format of our own recordings (docs/recording.md), shared by the recorder, the sources and the exporter.

`layout.py` has names of files and directories, `about.py` the keys of `recording.json`, `rows.py` columns and rows of
the CSV files, `marks.py` the content of a mark, `export_list.py` the list of exported files; `reading.py` reads the
JSON files. All but the last are imported in training processes, so they use only the standard library.
"""
