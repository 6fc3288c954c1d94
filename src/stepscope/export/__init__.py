"""Writing a recording as files of other tools: the classic `profiler/` directory and `*_ascend_ms` directories.

Each kind of output is a function of a `RankExport`; `exporting.py` lists and calls them.
"""
