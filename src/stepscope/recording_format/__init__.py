"""The format of our own recordings (docs/recording.md): what the recorder writes, sources read and the exporter lists.

`layout.py` has names of files and directories, `about.py` the keys of `recording.json`, `rows.py` the columns of the
CSV files and how a row becomes text, `marks.py` what stands in a mark, `export_list.py` the list of exported files;
`reading.py` reads the JSON files. All but the last is loaded in training processes, so it needs the standard library
alone.
"""
