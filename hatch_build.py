"""Build step: compile the trace decoder if a C compiler is available, and install the recorder's start file.

Without a compiler the package is pure Python. `STEPSCOPE_NATIVE=0` asks for that; with `STEPSCOPE_NATIVE=1`, a decoder
that cannot be compiled fails the build. The start file, `stepscope_start.pth`, is put beside the package, so that the
environment can start the recorder.
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

FOLDER = Path("src/stepscope/sources/native")
LIBRARY = "_native.so"
START = "src/stepscope_start.pth"
FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden")


class CompileDecoder(BuildHookInterface):
    """Makes `_native.so` from the C files beside it, for wheels and for editable installs alike."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - given by the interface
        """Compile, and mark the wheel as made for this platform, but for every version of Python, if that worked."""
        if self.target_name != "wheel":
            return
        for how in ("force_include", "force_include_editable"):
            build_data.setdefault(how, {})[str(Path(self.root) / START)] = Path(START).name
        if compiled(Path(self.root) / FOLDER):
            platform = self.build_config.builder.get_best_matching_tag().rpartition("-")[2]
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
            build_data["artifacts"].append(str(FOLDER / LIBRARY))


def compiled(folder: Path) -> bool:
    """Compile the C files of a folder into a library beside them; False if there is none afterwards.

    Raises:
        RuntimeError: If it fails and `STEPSCOPE_NATIVE=1`.
    """
    target = folder / LIBRARY
    target.unlink(missing_ok=True)
    wanted = os.environ.get("STEPSCOPE_NATIVE")
    problem = "switched off by STEPSCOPE_NATIVE=0" if wanted == "0" else compiling_problem(folder, target)
    if problem is None:
        return True
    if wanted == "1":
        raise RuntimeError(f"stepscope: the decoder was not compiled: {problem}")
    print(f"stepscope: the decoder was not compiled ({problem}); reading traces takes about three times as long")
    return False


def compiling_problem(folder: Path, target: Path) -> str | None:
    """Compile; why it failed, or None if it did not."""
    found = filter(None, map(shutil.which, ("cc", "gcc", "clang")))
    compiler = shlex.split(os.environ.get("CC", "")) or list(found)[:1]
    if not compiler or sys.platform == "win32":
        return "no C compiler was found" if sys.platform != "win32" else "it is not made for Windows"
    draft = target.with_suffix(".tmp")
    command = [*compiler, *FLAGS, *architectures(), "-o", str(draft), *map(str, sorted(folder.glob("*.c"))), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
        draft.replace(target)
    except subprocess.CalledProcessError as error:
        return f"{shlex.join(command)} failed:\n{error.stderr}"
    except OSError as error:
        return str(error)
    finally:
        draft.unlink(missing_ok=True)
    return None


def architectures() -> list[str]:
    """On macOS, the processors that the wheel's tag promises; elsewhere the compiler's own."""
    return shlex.split(os.environ.get("ARCHFLAGS", "")) if sys.platform == "darwin" else []
