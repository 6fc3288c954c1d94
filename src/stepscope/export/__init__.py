"""Writing what was recorded in the forms of other tools: classic `profiler/` files and `*_ascend_ms` directories.

One file of code a kind of output, each with a function of a `Job`; `exporters.py` lists them, `exporting.py` asks them.
"""
