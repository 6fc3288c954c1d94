"""`python -m stepscope.record.device_exports RECORDING... [-- COMMAND...]`: export raw windows, then run the command.

The profiler of an Ascend device writes raw data that only the vendor's software can export as tables. That takes longer
than the window itself, starts processes and may fail, so each window is exported in its own process after training.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from stepscope.errors import UnreadableInput
from stepscope.record.analysing import is_raw, raw_windows, written_by_device
from stepscope.record.files import DIRECTORY_MODE, protect
from stepscope.recording_format.reading import read_about

_TORCH = "import sys; from torch_npu.profiler.profiler import analyse; analyse(sys.argv[1])"
_MINDSPORE = (
    "import sys; from mindspore.profiler.profiler import analyse;"
    " analyse(sys.argv[1], data_simplification=sys.argv[2] == 'True')"
)


def main(arguments: Sequence[str]) -> int:
    """Export raw windows, report failures on standard error, then exec the command, if any.

    Args:
        arguments: Directories of recordings; after `--` the command.

    Returns:
        1 if any window is still raw, else 0.
    """
    split = arguments.index("--") if "--" in arguments else len(arguments)
    recordings, command = [Path(place) for place in arguments[:split]], list(arguments[split + 1 :])
    os.umask(0o777 & ~DIRECTORY_MODE)
    for recording in recordings:
        for window in raw_windows(recording):
            _export(window, simplify=_simplifies(recording))
    if command:
        os.execvp(command[0], command)
    return int(any(window for recording in recordings for window in raw_windows(recording)))


def _export(window: Path, *, simplify: bool) -> None:
    """Export one window; the output of the vendor's software goes to the output of this process."""
    is_torch = any(path.name.endswith("_pt") for path in written_by_device(window))
    code = _TORCH if is_torch else _MINDSPORE
    framework = "torch_npu" if is_torch else "mindspore"
    try:
        done = subprocess.run([sys.executable, "-c", code, str(window), str(simplify)], check=False)
    except OSError as error:
        _report(window, str(error))
        return
    if done.returncode or any(is_raw(path) for path in written_by_device(window)):
        _report(window, f"{framework} failed to export it (exit status {done.returncode})")
    protect(window)


def _report(window: Path, problem: str) -> None:
    print(f"stepscope: {window} is not exported: {problem}", file=sys.stderr, flush=True)


def _simplifies(recording: Path) -> bool:
    """Whether raw data may be deleted after the export; kept if the user's choice is unknown."""
    try:
        return read_about(recording).options.get("data_simplification") is True
    except UnreadableInput:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
