"""Build step: compile the trace decoder where a C compiler is at hand; without one the package is pure Python.

Also puts `stepscope_start.pth` beside the package, so that the environment can start the recorder.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/stepscope/sources/trace_events")
START = "src/stepscope_start.pth"
FLAGS = ("-O3", "-fPIC", "-shared", "-fvisibility=hidden")


class CompileDecoder(BuildHookInterface):
    """Makes `_scan.so` beside `_scan.c`, for wheels and for editable installs alike."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's words
        """Compile, and mark the wheel as made for this platform if that worked."""
        if self.target_name != "wheel":
            return
        for how in ("force_include", "force_include_editable"):
            build_data.setdefault(how, {})[str(Path(self.root) / START)] = Path(START).name
        folder = Path(self.root) / FOLDER
        built = folder / "_scan.so"
        if compiled(folder / "_scan.c", built):
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["artifacts"].append(str(FOLDER / built.name))


def compiled(source: Path, target: Path) -> bool:
    """Compile `source`; on any trouble say so, leave nothing behind and go on without."""
    target.unlink(missing_ok=True)
    compiler = (
        shlex.split(os.environ.get("CC", ""))
        or [found for found in map(shutil.which, ("cc", "gcc", "clang")) if found][:1]
    )
    if not compiler or sys.platform == "win32" or os.environ.get("STEPSCOPE_NATIVE") == "0":
        print("stepscope: no C compiler is used; traces are decoded in Python, at a third of the speed")
        return False
    draft = target.with_suffix(".tmp")
    try:
        subprocess.run([*compiler, *FLAGS, "-o", str(draft), str(source), "-lm"], check=True, capture_output=True)
        draft.replace(target)
    except (OSError, subprocess.CalledProcessError) as error:
        draft.unlink(missing_ok=True)
        print(f"stepscope: the decoder could not be compiled ({error}); traces are decoded in Python")
        return False
    return True
