"""A Python program that does not train, and reports what could have been left in it. Run as a script, by any Python."""

import json
import os
import signal
import sys
import threading


def look(*_):
    """What there is."""
    modules = sorted(name for name in sys.modules if name.startswith(("stepscope", "_stepscope", "msgspec", "psutil")))
    found = {"modules": modules, "finders": len(sys.meta_path), "threads": threading.active_count()}
    found["files"] = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    print(json.dumps({**found, "names": sorted(globals())}), flush=True)


def run_line(*_):
    """Run the line that a test has written."""
    with open(os.environ["STEPSCOPE_TEST_LINE"]) as file:  # noqa: PTH123
        line = file.read()
    exec(line, {})


signal.signal(signal.SIGUSR1, look)
signal.signal(signal.SIGUSR2, run_line)
print("ready", flush=True)
while True:
    sum(range(1000))
