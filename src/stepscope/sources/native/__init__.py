"""The compiled decoder: what it accepts, it reads as the Python code beside it does, several times as fast.

It is written in C (`*.c`) without the interpreter's API: its functions take and give pointers, run without the
interpreter's lock and serve every version of Python. `library` loads it; the other modules move columns to it and back.
Anything that is not plain enough for it raises `Refused`, and the caller uses Python. If there is no compiled decoder,
results are the same and reading takes about three times as long.
"""
